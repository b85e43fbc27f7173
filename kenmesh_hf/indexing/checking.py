"""Whether held-out articles could leak into candidates, and how many of their labels are proposed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import MismatchError
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.proposals_kenmesh import SOURCES
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..modeling.word_counts_kenmesh import hash_articles
from ..reading import Article
from .articles import hash_texts, label_ids
from .findings import look_up


def indexed(candidates: KenMeSHCandidates, articles: Sequence[Article]) -> list[bool]:
    """Whether the index holds each of the articles, by PMID or text."""
    found = candidates.articles.find(
        [article.pmid for article in articles], hash_articles(*hash_texts(articles))
    )
    return [len(own) > 0 for own in found]


def check_no_leak(candidates: KenMeSHCandidates, held_out: Sequence[Article]) -> None:
    """Refuses candidates whose tables hold an article that is kept for validation or test.

    Raises:
        MismatchError: An article's PMID or words are in the index.
    """
    found = indexed(candidates, held_out)
    leaked = [article for article, known in zip(held_out, found, strict=True) if known]
    if leaked:
        names = ", ".join(str(article.pmid or repr(article.title[:40])) for article in leaked[:5])
        raise MismatchError(
            f"{len(leaked)} held-out articles are in the candidate index (by PMID or text: {names}): their "
            "labels would leak. Build the index from training articles only."
        )


def candidate_report(
    candidates: KenMeSHCandidates, articles: Sequence[Article], vocabulary: MeshVocabulary
) -> dict[str, dict[str, Any]]:
    """Candidate recall and mean number of candidates for each source, together, and as capped.

    Descriptors that the vocabulary lacks count as missed.
    """
    options = candidates.options
    total = sum(len(article.descriptors) + len(article.unresolved) for article in articles)
    by_source = {source: replace(options, sources=(source,), min_candidates=0) for source in SOURCES}
    by_source["together"] = options
    report = {name: {"recall": 0.0, "size": 0.0} for name in (*by_source, "kept")}
    for article, findings in zip(articles, look_up(candidates, articles), strict=True):
        proposed = {name: findings.propose(chosen) for name, chosen in by_source.items()}
        proposed["kept"], _ = candidates.weigh(findings, options)
        gold = label_ids(article, vocabulary)
        for name, labels in proposed.items():
            report[name]["recall"] += np.isin(gold, labels).sum() / max(total, 1)
            report[name]["size"] += len(labels) / len(articles)
    return report
