"""The words of articles, counted; and lists of different length, one after the other with offsets."""

from typing import NamedTuple

import numpy as np

from .terms_kenmesh import HashedWords, mix

TITLE_WEIGHT = 2


class TermCounts(NamedTuple):
    """Distinct content words of each article with how often they occur, title words counted twice.

    Attributes:
        hashes: `(terms,)`.
        counts: `(terms,)`.
        offsets: Where each article's terms begin, `(articles + 1,)`.
    """

    hashes: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray

    @property
    def size(self) -> int:
        """Number of articles."""
        return len(self.offsets) - 1

    def of(self, article: int) -> tuple[np.ndarray, np.ndarray]:
        """Terms of one article, and how often they occur."""
        span = slice(self.offsets[article], self.offsets[article + 1])
        return self.hashes[span], self.counts[span]

    def select(self, articles: np.ndarray) -> "TermCounts":
        """Terms of some of the articles."""
        places, lengths = places_of(self.offsets, articles)
        return TermCounts(self.hashes[places], self.counts[places], np.append(0, np.cumsum(lengths)))


def count_terms(titles: HashedWords, abstracts: HashedWords | None = None) -> TermCounts:
    """Counts the content words of a batch of articles, or of their titles alone, in one sort."""
    rows, hashes, weights = [], [], []
    for words, worth in ((titles, TITLE_WEIGHT), (abstracts, 1)):
        if words is None:
            continue
        row = np.repeat(np.arange(len(words.offsets) - 1), np.diff(words.offsets))
        rows.append(row[words.content])
        hashes.append(words.folded[words.content])
        weights.append(np.full(len(hashes[-1]), worth, np.float64))
    row, value, weight = (np.concatenate(parts) for parts in (rows, hashes, weights))
    order = np.lexsort((value, row))
    row, value, weight = row[order], value[order], weight[order]
    first = np.ones(len(row), bool)
    first[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
    starts = np.flatnonzero(first)
    counts = np.add.reduceat(weight, starts) if len(starts) else weight
    offsets = np.searchsorted(row[starts], np.arange(len(titles.offsets)))
    return TermCounts(value[starts], counts, offsets)


def amounts_of(counts: np.ndarray) -> np.ndarray:
    """What words that stand so often, in whole numbers, amount to; many logarithms would take long."""
    numbers = counts.astype(np.intp)
    table = np.zeros(int(numbers.max(initial=0)) + 1)
    table[1:] = 1 + np.log(np.arange(1, len(table)))
    return table[numbers]


def hash_articles(titles: HashedWords, abstracts: HashedWords) -> np.ndarray:
    """Hash of each article's words in their order, blind to case, punctuation and spacing, `(articles,)`."""
    total = np.zeros(len(titles.offsets) - 1, np.uint64)
    for salt, words in ((np.uint64(1), titles), (np.uint64(2), abstracts)):
        length = np.diff(words.offsets)
        row = np.repeat(np.arange(len(length)), length)
        place = (np.arange(len(row)) - words.offsets[row]).astype(np.uint64)
        np.add.at(total, row, mix(words.folded + mix(place * np.uint64(2) + salt)))
    return total


def places_of(offsets: np.ndarray, lists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries of some lists stand, one list after the other, and how long each list is."""
    starts = offsets[lists].astype(np.int64)
    lengths = offsets[lists + 1].astype(np.int64) - starts
    return run_places(starts, lengths), lengths


def run_places(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places of runs that begin at `starts`, one run after the other."""
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)


def as_offsets(values: np.ndarray) -> np.ndarray:
    """Offsets in as few bytes as they need."""
    return values.astype(np.uint32 if values[-1] < 1 << 32 else np.uint64)
