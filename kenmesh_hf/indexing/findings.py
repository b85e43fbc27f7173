"""What candidates say about many articles, a batch at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..modeling.candidates_kenmesh import CandidateBatch, KenMeSHCandidates
from ..modeling.proposals_kenmesh import Findings
from ..reading import Article

_BATCH = 256


def find_candidates(
    candidates: KenMeSHCandidates, articles: Sequence[Article]
) -> Iterator[tuple[Sequence[Article], CandidateBatch]]:
    """Candidates of articles, a batch at a time."""
    for start in range(0, len(articles), _BATCH):
        batch = articles[start : start + _BATCH]
        yield batch, candidates(*_fields(batch))


def look_up(candidates: KenMeSHCandidates, articles: Sequence[Article]) -> Iterator[Findings]:
    """What every source says about each article."""
    for start in range(0, len(articles), _BATCH):
        yield from candidates.look_up(*_fields(articles[start : start + _BATCH]))


def _fields(articles: Sequence[Article]) -> tuple[list[Any], ...]:
    """Titles, abstracts, journals and PMIDs."""
    rows = ((article.title, article.abstract, article.journal_names, article.pmid) for article in articles)
    return tuple(map(list, zip(*rows, strict=True)))
