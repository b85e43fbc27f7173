"""The words of articles, weighed: what an inverted index is made of, as it comes a part at a time."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from .tally_kenmesh import Tally
from .tensors_kenmesh import id_type
from .word_counts_kenmesh import TermCounts

# Postings hold the square root of a weight in one byte: fine steps for small weights, which most are.
WEIGHTS = ((np.arange(256) / 255) ** 2).astype(np.float64)
IDF_POWER = 1.5
LENGTH_DAMPING = 0.3
# A word of fewer articles joins no two of them.
MIN_DOCUMENTS = 2


def rarity(size: int, frequency: np.ndarray) -> np.ndarray:
    """Weight of words that stand in `frequency` of `size` articles."""
    return (np.log(size / frequency) + 1) ** IDF_POWER


class Postings(NamedTuple):
    """Words of articles, one entry for each word that an article has.

    Attributes:
        columns: Places of the words among the terms of an index.
        documents: The articles.
        weights: Real numbers, or as bytes once they are `scaled`.
    """

    columns: np.ndarray
    documents: np.ndarray
    weights: np.ndarray

    def scaled(self, squares: np.ndarray) -> "Postings":
        """Weights in articles of these squared lengths, as bytes."""
        weights = np.sqrt(self.weights / np.sqrt(squares)[self.documents])
        return self._replace(weights=np.round(weights * 255).astype(np.uint8))


def weigh_terms(counts: TermCounts, terms: np.ndarray, idf: np.ndarray) -> tuple[Postings, np.ndarray]:
    """Weights of articles' words among terms of this rarity, and the squared length of each article."""
    size = counts.size
    column, known = find_terms(counts.hashes, terms)
    column = column[known]
    document = np.repeat(np.arange(size), np.diff(counts.offsets))[known]
    weight = (1 + np.log(counts.counts[known])) * idf[column]
    return Postings(column, document, weight), np.bincount(document, weight**2, minlength=size)


def find_terms(hashes: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each word stands among the terms of an index, and whether it does."""
    place = np.minimum(np.searchsorted(terms, hashes), max(len(terms) - 1, 0))
    return place, terms[place] == hashes if len(terms) else np.zeros(len(place), bool)


class Words(Protocol):
    """What an index is made of: its terms, how rare each is, and the postings, some articles at a time."""

    terms: np.ndarray
    idf: np.ndarray
    frequency: np.ndarray
    size: int

    def __iter__(self) -> Iterator[Postings]: ...


class WeighedWords:
    """The words of articles that come a part at a time, weighed: gone through again as often as needed.

    Args:
        parts: Words of the articles; must give the same each time it is gone through.
    """

    def __init__(self, parts: Iterable[TermCounts]):
        self.parts = parts
        tally, self.size = Tally(), 0
        for counts in parts:
            tally.add(counts.hashes)
            self.size += counts.size
        terms, frequency = tally.result()
        known = frequency >= MIN_DOCUMENTS
        self.terms, self.frequency = terms[known], frequency[known]
        self.idf = rarity(self.size, self.frequency)
        self.squares = np.concatenate(
            [np.zeros(0), *(weigh_terms(counts, self.terms, self.idf)[1] for counts in parts)]
        )
        # A title alone is short and would be near to everything it shares one word with.
        self.squares += LENGTH_DAMPING * self.squares.sum() / max(self.size, 1)

    def __iter__(self) -> Iterator[Postings]:
        first = 0
        for counts in self.parts:
            postings, _ = weigh_terms(counts, self.terms, self.idf)
            end = first + counts.size
            postings = postings.scaled(self.squares[first:end])
            yield postings._replace(documents=postings.documents + first)
            first = end


class PostingLists:
    """Room for the postings of each term, filled article by article.

    Args:
        frequency: How many articles have each term.
        size: Number of articles.
    """

    def __init__(self, frequency: np.ndarray, size: int):
        self.offsets = np.concatenate([[0], np.cumsum(frequency)])
        self.documents = np.empty(self.offsets[-1], id_type(size))
        self.weights = np.empty(self.offsets[-1], np.uint8)
        self._next = self.offsets[:-1].copy()

    def add(self, postings: Postings) -> None:
        """Puts postings behind those of earlier articles."""
        order = np.argsort(postings.columns, kind="stable")
        columns, starts, counts = np.unique(postings.columns[order], return_index=True, return_counts=True)
        place = np.repeat(self._next[columns] - starts, counts) + np.arange(len(order))
        self.documents[place] = postings.documents[order]
        self.weights[place] = postings.weights[order]
        self._next[columns] += counts


def spans_of(offsets: np.ndarray, most: int = 1 << 22) -> Iterator[tuple[int, int]]:
    """Divides lists with these offsets into runs of about so many entries: first list, and the one after."""
    first = 0
    while first < len(offsets) - 1:
        last = max(int(np.searchsorted(offsets, int(offsets[first]) + most, "right")) - 1, first + 1)
        yield first, last
        first = last
