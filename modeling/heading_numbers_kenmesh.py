"""The numbers that tell whether a tag is a major topic, and under which qualifiers it stands."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .evidence_kenmesh import FEATURES, ROW
from .heading_counts_kenmesh import HeadingCounts, Shares, Tags, Tally, mixed
from .heading_table_kenmesh import QUALIFIER_NUMBERS as NUMBER_OF
from .indexed_articles_kenmesh import IndexedArticles
from .proposals_kenmesh import Findings
from .qualifiers_kenmesh import MeshQualifier, MeshQualifiers
from .vocabulary_kenmesh import CATEGORIES, MeshVocabulary
from .word_counts_kenmesh import places_of

VOTES = ("votes", "recent_votes", "first_votes", "nearest_votes")
_VOTERS = tuple(f"{name}_known" for name in VOTES)
_CATEGORIES = tuple(f"category_{letter}" for letter in CATEGORIES)
_TERMS = ("term_title", "term_abstract", "term_count", "term_in_title")
MAJOR_NUMBERS = (
    *(*FEATURES, "order", "rank"),
    *("prior", "recent_prior", "branch_prior", "known"),
    *(*VOTES, *_VOTERS, *_CATEGORIES),
)
PAIR_NUMBERS = (
    *("prior", "recent_prior", "branch_prior", "usual", "known"),
    *(*VOTES, *_VOTERS),
    *("category_share", "around", "words"),
    *("order", "rank", *_TERMS, *_CATEGORIES),
)
"""Names of the numbers of a tag and of a tag with a qualifier, in their order."""

# How many articles the wider is worth beside the narrower: a branch beside a descriptor, that beside votes.
_DESCRIPTOR, _VOTE = 4.0, 2.0
_LEAST = 1e-4


class Pairs(NamedTuple):
    """Tags with each qualifier they may have: which tag, which qualifier."""

    tags: np.ndarray
    qualifiers: np.ndarray


class _Found(NamedTuple):
    """What is counted for tags: everywhere, in recent articles, in branches, by and around neighbours."""

    everywhere: Tally
    recent: Tally
    usual: Shares
    branch: Shares
    votes: list[Tally]
    around: tuple[np.ndarray, np.ndarray]


class HeadingNumbers:
    """Works out the numbers of tags from the headings of indexed articles.

    An article that is itself in the index counts nowhere: not in votes, nor in any share.

    Args:
        articles: The indexed articles, with their headings.
        recent: Whether each is recent.
        vocabulary: The descriptors.
        qualifiers: Which qualifiers a descriptor may have.
    """

    def __init__(
        self,
        articles: IndexedArticles,
        recent: np.ndarray,
        vocabulary: MeshVocabulary,
        qualifiers: MeshQualifiers,
    ):
        self.counts = HeadingCounts(articles, recent, vocabulary)
        self._allow(vocabulary, qualifiers)

    def _allow(self, vocabulary: MeshVocabulary, qualifiers: MeshQualifiers) -> None:
        """Qualifiers that each label may have, and whether they are sure to be more than one article's."""
        by_place: dict[tuple[str, ...], list[int]] = {}
        allowed, sure = [], []
        for ui, place in zip(vocabulary.uis, self.counts.places, strict=True):
            if place not in by_place:
                by_place[place] = _numbers_of(qualifiers.allowed("", place))
            around = by_place[place]
            found = _numbers_of(qualifiers.allowed(ui)) if qualifiers.has_own(ui) else around
            allowed.append(found)
            sure += [number in around for number in found]
        self.allowed = np.array([number for row in allowed for number in row], np.int64)
        self.allowed_offsets = np.append(0, np.cumsum([len(row) for row in allowed]))
        # NLM's own lists are of descriptors alone, and sure.
        self.sure = np.array(sure, bool) | (not qualifiers.has_branches)

    def __call__(
        self, tags: Tags, findings: Sequence[Findings], words: np.ndarray
    ) -> tuple[np.ndarray, Pairs, np.ndarray]:
        """The numbers of tags and of tags with qualifiers.

        Args:
            tags: Of a batch of articles.
            findings: What was found out about each article.
            words: What words and tags of each article say about each qualifier, `(articles, qualifiers)`.

        Returns:
            Numbers of each tag `(tags, MAJOR_NUMBERS)`, the pairs, and theirs `(pairs, PAIR_NUMBERS)`.
        """
        counts = self.counts
        own, slots = counts.own(findings), counts.slots(tags, len(findings))
        everywhere, recent, by_itself = counts.of_labels(tags, own, slots)
        usual = counts.shares(own, len(findings))
        found = _Found(
            everywhere,
            recent,
            usual,
            counts.branch_shares(tags, own, usual),
            counts.votes(tags, findings, slots),
            counts.around(findings, usual),
        )
        pairs = self._pairs(tags, everywhere, by_itself)
        return self._of_tags(tags, found), pairs, self._of_pairs(tags, pairs, found, words)

    def _pairs(self, tags: Tags, everywhere: Tally, by_itself: Tally) -> Pairs:
        """Qualifiers that each tag may have; one that only the article itself was seen with is not known."""
        places, lengths = places_of(self.allowed_offsets, tags.labels)
        cell = np.repeat(np.arange(len(lengths)), lengths), self.allowed[places]
        alone = (by_itself.qualified[cell] > 0) & (everywhere.qualified[cell] <= 0)
        kept = self.sure[places] | ~alone
        return Pairs(cell[0][kept], cell[1][kept])

    def _of_tags(self, tags: Tags, found: _Found) -> np.ndarray:
        """Numbers of tags, as `MAJOR_NUMBERS` names them."""
        branch, votes = found.branch.major, found.votes
        priors = [
            mixed(part.major, part.majors_known, branch, _DESCRIPTOR)
            for part in (found.everywhere, found.recent)
        ]
        voted = [mixed(vote.major, vote.majors_known, priors[1], _VOTE) for vote in votes]
        columns = [*tags.features.T, tags.order, np.log1p(tags.rank)]
        columns += [*map(_logit, (*priors, branch)), np.log1p(found.recent.majors_known)]
        columns += [*map(_logit, voted), *(np.log1p(vote.majors_known) for vote in votes)]
        return np.column_stack([*columns, self.counts.categories[tags.labels]]).astype(np.float32)

    def _of_pairs(self, tags: Tags, pairs: Pairs, found: _Found, words: np.ndarray) -> np.ndarray:
        """Numbers of tags with a qualifier, as `PAIR_NUMBERS` names them."""
        tag, number = pairs
        row, label = tags.rows[tag], tags.labels[tag]
        branch = found.branch.qualified[tag, number]
        priors = [
            mixed(part.qualified[tag, number], part.known[tag], branch, _DESCRIPTOR)
            for part in (found.everywhere, found.recent)
        ]
        voted = [
            mixed(vote.qualified[tag, number], vote.known[tag], priors[1], _VOTE) for vote in found.votes
        ]
        by_category, by_article = found.around
        category = np.maximum(self.counts.category[label], 0)
        usual = found.usual.qualified[row, number]
        columns = [*map(_logit, (*priors, branch, usual)), np.log1p(found.recent.known[tag])]
        columns += [*map(_logit, voted), *(np.log1p(vote.known[tag]) for vote in found.votes)]
        columns += [_logit(by_category[row, category, number]), np.log1p(by_article[row, number])]
        columns += [words[row, number], tags.order[tag], np.log1p(tags.rank[tag])]
        columns += [tags.features[tag, ROW[name]] for name in _TERMS]
        return np.column_stack([*columns, self.counts.categories[label]]).astype(np.float32)


def _numbers_of(qualifiers: Iterable[MeshQualifier]) -> list[int]:
    return [NUMBER_OF[item.ui] for item in qualifiers if item.ui in NUMBER_OF]


def _logit(share: np.ndarray) -> np.ndarray:
    clipped = np.clip(share, _LEAST, 1 - _LEAST)
    return np.log(clipped / (1 - clipped))
