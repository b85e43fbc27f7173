"""What is remembered of each training article: PMID, hash of its text, year, labels and their headings."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .heading_table_kenmesh import ARRAYS, HeadingFacts, HeadingTable
from .tensors_kenmesh import narrow
from .word_counts_kenmesh import as_offsets, places_of

# The arrays that have one number for each article.
_OF_EACH = ("pmids", "hashes", "years")
_HEADINGS = "headings_"


class IndexedArticles:
    """What is remembered of each training article: PMID, hash of its text, year, labels and their headings.

    Args:
        tensors: The arrays of `build`, as they are stored; those of headings may be missing.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.pmids = tensors["pmids"]
        self.hashes = tensors["hashes"]
        self.years = tensors["years"]
        self.labels = tensors["labels"]
        self.offsets = tensors["offsets"]

    @classmethod
    def build(
        cls,
        pmids: Sequence[str | int | None],
        hashes: np.ndarray,
        years: Sequence[int | None],
        labels: Sequence[np.ndarray],
        headings: Sequence[Sequence[HeadingFacts]] | None = None,
    ) -> "IndexedArticles":
        """Remembers articles; `labels` has each one's distinct labels, `headings` what is known of these."""
        flat = np.concatenate([np.zeros(0, np.int64), *labels])
        articles = cls(
            {
                "pmids": np.array([pmid_number(pmid) for pmid in pmids], np.uint32),
                "hashes": hashes,
                "years": np.array([min(max(year or 0, 0), 0xFFFF) for year in years], np.uint16),
                "labels": narrow(flat),
                "offsets": np.cumsum([0, *map(len, labels)]).astype(np.uint32),
            }
        )
        return articles if headings is None else articles.with_headings(HeadingTable.build(headings))

    @cached_property
    def headings(self) -> HeadingTable | None:
        """Which headings are major and which qualifiers they have; None where that was never told."""
        if _HEADINGS + ARRAYS[0] not in self.tensors:
            return None
        stored = {name: self.tensors[_HEADINGS + name] for name in ARRAYS}
        return HeadingTable.from_tensors(stored, len(self.labels))

    def with_headings(self, table: HeadingTable) -> "IndexedArticles":
        """The same articles, of whose headings the table tells; nothing is stored where it knows nothing."""
        plain = {name: array for name, array in self.tensors.items() if not name.startswith(_HEADINGS)}
        if not table.known.any():
            return IndexedArticles(plain)
        return IndexedArticles(plain | {_HEADINGS + name: array for name, array in table.tensors.items()})

    def __len__(self) -> int:
        return len(self.pmids)

    @classmethod
    def join(cls, parts: Iterable["IndexedArticles"]) -> "IndexedArticles":
        """Articles one part after the other."""
        parts = [cls.build([], np.zeros(0, np.uint64), [], []), *parts]
        tensors = [part.tensors for part in parts]
        joined = {name: np.concatenate([part[name] for part in tensors]) for name in _OF_EACH}
        joined["labels"] = np.concatenate([part["labels"] for part in tensors])
        lengths = [np.diff(part["offsets"].astype(np.int64)) for part in tensors]
        joined["offsets"] = as_offsets(np.cumsum(np.concatenate([[0], *lengths])))
        if all(part.headings is None for part in parts):
            return cls(joined)
        tables = (part.headings or HeadingTable.unknown(len(part), len(part.labels)) for part in parts)
        return cls(joined).with_headings(HeadingTable.join(tables))

    def select(self, articles: np.ndarray) -> "IndexedArticles":
        """Some of the articles, in the order given."""
        places, lengths = places_of(self.offsets, articles)
        selected = IndexedArticles(
            {name: self.tensors[name][articles] for name in _OF_EACH}
            | {"labels": self.labels[places], "offsets": as_offsets(np.append(0, np.cumsum(lengths)))}
        )
        if self.headings is None:
            return selected
        return selected.with_headings(self.headings.select(articles, places))

    def label_lists(self) -> list[np.ndarray]:
        """The labels of each article."""
        return np.split(self.labels, self.offsets[1:-1].astype(np.int64)) if len(self) else []

    @cached_property
    def _orders(self) -> tuple[np.ndarray, np.ndarray]:
        """Articles by PMID, and by hash."""
        return np.argsort(self.pmids, kind="stable"), np.argsort(self.hashes, kind="stable")

    def since(self, year: int) -> np.ndarray:
        """Whether each article is of this year or later, or maybe: its year is unknown."""
        return (self.years == 0) | (self.years >= year)

    def find(self, pmids: Sequence[str | int | None], hashes: np.ndarray) -> list[np.ndarray]:
        """For each query the indexed articles that are the query itself: same PMID or same words."""
        numbers = np.array([pmid_number(pmid) for pmid in pmids], np.uint32)
        found = [np.zeros(0, np.int64)] * len(numbers)
        for values, stored, order in (
            (numbers, self.pmids, self._orders[0]),
            (hashes, self.hashes, self._orders[1]),
        ):
            left, right = (np.searchsorted(stored, values, side, sorter=order) for side in ("left", "right"))
            for query in np.flatnonzero((right > left) & (values > 0)):
                found[query] = np.union1d(found[query], order[left[query] : right[query]])
        return found

    def labels_of(self, articles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels of articles one after the other, and how many each has."""
        places, lengths = places_of(self.offsets, articles)
        return self.labels[places].astype(np.int64), lengths


class LabelFrequencies(NamedTuple):
    """How many training articles carry each label: all of them in the first row, recent ones in the second.

    Attributes:
        counts: `(2, labels)`.
        sizes: Articles that were counted, `(2,)`.
    """

    counts: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(
        cls, articles: IndexedArticles, chosen: np.ndarray, recent: np.ndarray, num_labels: int
    ) -> "LabelFrequencies":
        """Counts the labels of the chosen articles; `recent` says which of all are recent, `(articles,)`."""
        groups = chosen, chosen[recent[chosen]]
        counts = [np.bincount(articles.labels_of(group)[0], minlength=num_labels) for group in groups]
        return cls(np.stack(counts), np.array([len(group) for group in groups]))

    def shares(self, less: "LabelFrequencies | None" = None) -> np.ndarray:
        """Share of each label, never 0; the articles of `less` do not count, `(2, labels)`."""
        counts, sizes = self if less is None else (self.counts - less.counts, self.sizes - less.sizes)
        return (counts + 0.5) / (sizes[:, None] + 1)


def pmid_number(pmid: str | int | None) -> int:
    """A PMID as a number; 0 where there is none."""
    text = str(pmid if pmid is not None else "").strip()
    return int(text) if text.isdecimal() and len(text) <= 9 else 0
