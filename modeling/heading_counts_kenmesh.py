"""Headings of indexed articles, counted: how often a descriptor is major, and which qualifiers it has."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .evidence_kenmesh import FEATURES
from .heading_table_kenmesh import QUALIFIERS, HeadingTable
from .indexed_articles_kenmesh import IndexedArticles
from .proposals_kenmesh import Findings
from .vocabulary_kenmesh import CATEGORIES, MeshVocabulary
from .word_counts_kenmesh import places_of

SIZE = len(QUALIFIERS)
# Nearest articles whose headings vote, and those whose qualifiers count whatever the descriptor.
VOTERS, AROUND = 300, 50
# Voters: all of them, recent ones, and the first few that carry the descriptor.
FIRST = (8, 3)
# How many articles the wider is worth beside the narrower: all headings beside a branch, and beside a few.
_BRANCH, _SHARE = 20.0, 1.0


class Tags(NamedTuple):
    """Tags of a batch of articles, one article after the other.

    Attributes:
        rows: The article of each tag.
        labels: Its descriptor.
        features: The numbers of the candidate, `(tags, FEATURES)`.
        order: What the ranker makes of these.
        rank: Place of the tag among the candidates by that.
    """

    rows: np.ndarray
    labels: np.ndarray
    features: np.ndarray
    order: np.ndarray
    rank: np.ndarray

    @classmethod
    def of(
        cls,
        labels: Sequence[np.ndarray],
        candidates: Sequence[tuple[np.ndarray, np.ndarray]],
        ranker: np.ndarray,
    ) -> "Tags":
        """Tags with what is known of them.

        Args:
            labels: Of each article; one that is no candidate has no numbers.
            candidates: Labels of each article, ascending, and their numbers.
            ranker: Weights of these, the last one constant.
        """
        rows, features, orders, ranks = [], [], [], []
        for row, (given, (proposed, numbers)) in enumerate(zip(labels, candidates, strict=True)):
            if not len(proposed):
                proposed, numbers = np.full(1, -1), np.zeros((1, len(FEATURES)), np.float32)
            places = np.minimum(np.searchsorted(proposed, given), len(proposed) - 1)
            order = numbers @ ranker[:-1]
            rows.append(np.full(len(given), row))
            features.append(numbers[places] * (proposed[places] == given)[:, None])
            orders.append(order[places])
            ranks.append((order > order[places, None]).sum(1))
        return cls(*(np.concatenate(parts) for parts in (rows, labels, features, orders, ranks)))


class Tally(NamedTuple):
    """Headings counted in slots, such as tags or branches.

    Attributes:
        majors_known: Headings of articles that tell which are major.
        major: Those that are.
        known: Headings of articles that tell qualifiers.
        qualified: Those that have each of them, `(slots, qualifiers)`.
    """

    majors_known: np.ndarray
    major: np.ndarray
    known: np.ndarray
    qualified: np.ndarray

    @classmethod
    def of(
        cls,
        table: HeadingTable,
        slots: np.ndarray,
        headings: np.ndarray,
        articles: np.ndarray,
        weights: np.ndarray,
        size: int,
    ) -> "Tally":
        """Counts headings of articles, each with a weight."""
        return cls.of_each(table, slots, headings, articles, [weights], size)[0]

    @classmethod
    def of_each(
        cls,
        table: HeadingTable,
        slots: np.ndarray,
        headings: np.ndarray,
        articles: np.ndarray,
        weights: Sequence[np.ndarray],
        size: int,
    ) -> list["Tally"]:
        """The same headings counted several times, with other weights each time."""
        majors, known = table.majors_known(articles), table.qualifiers_known(articles)
        major = majors & table.major[headings]
        places, heading = table.entries(headings)
        cells = slots[heading].astype(np.int64) * SIZE + table.qualifiers[places]
        return [
            cls(
                np.bincount(slots, weight * majors, size),
                np.bincount(slots, weight * major, size),
                np.bincount(slots, weight * known, size),
                np.bincount(cells, weight[heading], size * SIZE).reshape(size, SIZE),
            )
            for weight in weights
        ]

    def at(self, slots: np.ndarray) -> "Tally":
        """The counts of some slots."""
        return Tally(*(part[slots] for part in self))

    def less(self, other: "Tally") -> "Tally":
        """These counts without others."""
        return Tally(*(part - without for part, without in zip(self, other, strict=True)))


class Own(NamedTuple):
    """Headings that the articles of a batch have in the index themselves: whose, which, where."""

    rows: np.ndarray
    headings: np.ndarray
    articles: np.ndarray


class Shares(NamedTuple):
    """Share of headings that are major, and that have each qualifier, `(…, qualifiers)`."""

    major: np.ndarray
    qualified: np.ndarray


def mixed(count: np.ndarray, total: np.ndarray, prior: np.ndarray, worth: float) -> np.ndarray:
    """A share, drawn towards another by what that is worth."""
    return (count + worth * prior) / (total + worth)


class HeadingCounts:
    """Headings of indexed articles, by descriptor, by branch, and near an article.

    Args:
        articles: The indexed articles, with their headings.
        recent: Whether each is recent.
        vocabulary: The descriptors.

    Attributes:
        all: Headings of each label, `Tally`.
        new: The same of recent articles.
        total: All headings of recent articles.
        places: Branches of each label.
        category: First category of each label, -1 if it has none, `(labels,)`.
        categories: Whether a label is in each category, `(labels, categories)`.
    """

    def __init__(self, articles: IndexedArticles, recent: np.ndarray, vocabulary: MeshVocabulary):
        if articles.headings is None:
            raise ValueError("Nothing is known of the headings of indexed articles but their descriptors.")
        self.articles, self.table, self.recent = articles, articles.headings, recent
        self.num_labels = len(vocabulary)
        self._place_labels(vocabulary)
        owner = np.repeat(np.arange(len(articles)), np.diff(articles.offsets))
        places, labels = np.arange(len(owner)), articles.labels.astype(np.int64)
        self.all, self.new = (
            Tally.of(self.table, labels, places, owner, weights, self.num_labels)
            for weights in (np.ones(len(owner)), recent[owner].astype(np.float64))
        )
        self.of_branches = self._count_branches(self.new)
        self.total = Tally(*(part.sum(0, keepdims=True) for part in self.new))

    def _place_labels(self, vocabulary: MeshVocabulary) -> None:
        """Branches (C04) and categories (C) of each label."""
        numbers: dict[str, int] = {}
        self.places = [tuple(sorted({number[:3] for number in given})) for given in vocabulary.tree_numbers]
        lengths = np.array([len(branches) for branches in self.places], np.int64)
        flat = [numbers.setdefault(branch, len(numbers)) for branches in self.places for branch in branches]
        self.num_branches = max(1, len(numbers))
        self.branches = np.array(flat, np.int64)
        self.branch_offsets = np.append(0, np.cumsum(lengths))
        letters = {letter: number for number, letter in enumerate(CATEGORIES)}
        letter_of = np.array([letters.get(branch[0], len(letters)) for branch in numbers], np.int64)
        table = np.zeros((len(lengths), len(letters) + 1), np.float32)
        table[np.repeat(np.arange(len(lengths)), lengths), letter_of[self.branches]] = 1
        self.categories = table[:, :-1]
        self.category = np.full(len(lengths), -1)
        placed = np.flatnonzero(lengths)
        self.category[placed] = letter_of[self.branches[self.branch_offsets[placed]]]
        self.category[self.category == len(letters)] = -1

    def _count_branches(self, tally: Tally) -> Tally:
        """Counts of labels, summed over the labels of each branch."""
        owner = np.repeat(np.arange(self.num_labels), np.diff(self.branch_offsets))
        order = np.argsort(self.branches, kind="stable")
        starts = np.searchsorted(self.branches[order], np.arange(self.num_branches))
        if not len(order):
            return Tally(*(np.zeros((1, *part.shape[1:])) for part in tally))
        return Tally(*(np.add.reduceat(part[owner[order]], starts) for part in tally))

    def slots(self, tags: Tags, size: int) -> np.ndarray:
        """Place of each label of each article among the tags, -1 where it is none, `(articles, labels)`."""
        slots = np.full((size, self.num_labels), -1, np.int32)
        slots[tags.rows, tags.labels] = np.arange(len(tags.labels))
        return slots

    def own(self, findings: Sequence[Findings]) -> Own:
        """The headings that the articles of a batch have in the index themselves."""
        articles = np.concatenate([np.zeros(0, np.int64), *(found.own for found in findings)])
        rows = np.repeat(np.arange(len(findings)), [len(found.own) for found in findings])
        headings, lengths = places_of(self.articles.offsets, articles)
        return Own(np.repeat(rows, lengths), headings, np.repeat(articles, lengths))

    def of_labels(self, tags: Tags, own: Own, slots: np.ndarray) -> tuple[Tally, Tally, Tally]:
        """Headings of each tag's label in all articles and in recent ones but its own, and in its own."""
        slot = slots[own.rows, self.articles.labels[own.headings]]
        here = np.flatnonzero(slot >= 0)
        counted = [
            Tally.of(
                self.table, slot[here], own.headings[here], own.articles[here], weights, len(tags.labels)
            )
            for weights in (np.ones(len(here)), self.recent[own.articles[here]].astype(np.float64))
        ]
        at = tags.labels
        return self.all.at(at).less(counted[0]), self.new.at(at).less(counted[1]), counted[0]

    def shares(self, own: Own, size: int) -> Shares:
        """Shares of all recent headings for each article of a batch, its own left out."""
        counts = self.total.at(np.zeros(size, np.int64))
        if len(own.rows):
            recent = self.recent[own.articles].astype(np.float64)
            counts = counts.less(Tally.of(self.table, own.rows, own.headings, own.articles, recent, size))
        return Shares(
            (counts.major + 1) / (counts.majors_known + 4),
            (counts.qualified + 1) / (counts.known[:, None] + 50),
        )

    def branch_shares(self, tags: Tags, own: Own, usual: Shares) -> Shares:
        """Shares in a tag's branches, the article itself left out; where it has none, the usual ones."""
        places, lengths = places_of(self.branch_offsets, tags.labels)
        branch, owner = self.branches[places], np.repeat(np.arange(len(lengths)), lengths)
        major, qualified = usual.major[tags.rows], usual.qualified[tags.rows]
        if not len(owner):
            return Shares(major, qualified)
        counts = self.of_branches.at(branch)
        if len(own.rows):
            counts = counts.less(self._own_branches(tags.rows[owner], branch, own))
        of_majors = mixed(counts.major, counts.majors_known, major[owner], _BRANCH)
        of_qualifiers = mixed(counts.qualified, counts.known[:, None], qualified[owner], _BRANCH)
        placed = np.flatnonzero(lengths)
        starts = (np.cumsum(lengths) - lengths)[placed]
        major[placed] = np.add.reduceat(of_majors, starts) / lengths[placed]
        qualified[placed] = np.add.reduceat(of_qualifiers, starts) / lengths[placed, None]
        return Shares(major, qualified)

    def _own_branches(self, rows: np.ndarray, branch: np.ndarray, own: Own) -> Tally:
        """What the articles themselves add to branches asked for: their recent headings there."""
        own = Own(*(part[self.recent[own.articles]] for part in own))
        labels = self.articles.labels[own.headings].astype(np.int64)
        places, lengths = places_of(self.branch_offsets, labels)
        keys, slots = np.unique(
            np.repeat(own.rows, lengths) * self.num_branches + self.branches[places], return_inverse=True
        )
        heading, article = np.repeat(own.headings, lengths), np.repeat(own.articles, lengths)
        # A slot more than there are keys, for branches where an article has no heading.
        tally = Tally.of(self.table, slots, heading, article, np.ones(len(slots)), len(keys) + 1)
        wanted = rows * self.num_branches + branch
        place = np.searchsorted(keys, wanted)
        there = np.append(keys, -1)[place] == wanted
        return tally.at(np.where(there, place, len(keys)))

    def carriers(self, tags: Tags, findings: Sequence[Findings]) -> Tally:
        """How many of the nearest articles carry a tag's descriptor, and how they treat it."""
        slots = self.slots(tags, len(findings))
        parts = [self._carriers(found, slots[row]) for row, found in enumerate(findings)]
        slot, heading, article, _ = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Tally.of(self.table, slot, heading, article, np.ones(len(slot)), len(tags.labels))

    def votes(self, tags: Tags, findings: Sequence[Findings], slots: np.ndarray) -> list[Tally]:
        """How the nearest articles that carry a tag's descriptor treat it; voters as said at `FIRST`."""
        parts = [self._carriers(found, slots[row]) for row, found in enumerate(findings)]
        slot, heading, article, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(slot, kind="stable")
        order = order[self.table.known[article[order]] > 0]
        slot, heading, article, weight = slot[order], heading[order], article[order], weight[order]
        place = np.arange(len(slot)) - np.searchsorted(slot, slot)
        chosen = (weight, weight * self.recent[article], *(weight * (place < first) for first in FIRST))
        return Tally.of_each(self.table, slot, heading, article, chosen, len(tags.labels))

    def _carriers(self, found: Findings, slots: np.ndarray) -> tuple[np.ndarray, ...]:
        """Tag, heading, article and weight of each neighbour's heading that is a tag, nearest first."""
        near, lengths, similar = found.near[:VOTERS], found.lengths[:VOTERS], found.similarities[:VOTERS]
        ends = np.cumsum(lengths)
        given = slots[found.voted[: lengths.sum()]]
        votes = np.flatnonzero(given >= 0)
        rank = np.searchsorted(ends, votes, "right")
        starts = self.articles.offsets[near].astype(np.int64) - (ends - lengths)
        weight = similar[rank] / max(float(similar.mean()), 1e-6) if len(similar) else similar
        return given[votes], starts[rank] + votes, near[rank], weight

    def around(self, findings: Sequence[Findings], usual: Shares) -> tuple[np.ndarray, np.ndarray]:
        """Each qualifier near an article: its share of headings by category, and headings an article."""
        kept = [np.flatnonzero(self.table.qualifiers_known(found.near[:AROUND])) for found in findings]
        articles = np.concatenate([found.near[part] for found, part in zip(findings, kept, strict=True)])
        weights = np.concatenate(
            [found.similarities[part] for found, part in zip(findings, kept, strict=True)]
        )
        rows, size = np.repeat(np.arange(len(kept)), [len(part) for part in kept]), len(CATEGORIES)
        headings, lengths = places_of(self.articles.offsets, articles)
        weight, category = np.repeat(weights, lengths), self.category[self.articles.labels[headings]]
        # What has no place in the tree is counted in a category of its own, and that left out.
        slot = np.repeat(rows, lengths) * (size + 1) + np.where(category < 0, size, category)
        total = np.bincount(slot, weight, len(kept) * (size + 1)).reshape(len(kept), size + 1, 1)
        places, heading = self.table.entries(headings)
        cells = slot[heading] * SIZE + self.table.qualifiers[places]
        counts = np.bincount(cells, weight[heading], total.size * SIZE).reshape(len(kept), size + 1, SIZE)
        shares = mixed(counts, total, usual.qualified[:, None], _SHARE)
        sums = np.maximum(np.bincount(rows, weights, len(kept)), 1e-6)
        return shares[:, :size], counts.sum(1) / sums[:, None]
