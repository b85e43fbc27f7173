"""Training articles most like a text: TF-IDF over an inverted index, held in a few compact arrays."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from .tally_kenmesh import Tally
from .terms_kenmesh import HashedWords, mix

# Postings hold the square root of a weight in one byte: fine steps for small weights, which most are.
WEIGHTS = ((np.arange(256) / 255) ** 2).astype(np.float64)
TITLE_WEIGHT = 2
IDF_POWER = 1.5
LENGTH_DAMPING = 0.3
# A word of fewer articles joins no two of them.
MIN_DOCUMENTS = 2


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


def places_of(offsets: np.ndarray, lists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries of some lists stand, one list after the other, and how long each list is."""
    starts = offsets[lists].astype(np.int64)
    lengths = offsets[lists + 1].astype(np.int64) - starts
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths), lengths


def rarity(size: int, frequency: np.ndarray) -> np.ndarray:
    """Weight of words that stand in `frequency` of `size` articles."""
    return (np.log(size / frequency) + 1) ** IDF_POWER


def hash_articles(titles: HashedWords, abstracts: HashedWords) -> np.ndarray:
    """Hash of each article's words in their order, blind to case, punctuation and spacing, `(articles,)`."""
    total = np.zeros(len(titles.offsets) - 1, np.uint64)
    for salt, words in ((np.uint64(1), titles), (np.uint64(2), abstracts)):
        length = np.diff(words.offsets)
        row = np.repeat(np.arange(len(length)), length)
        place = (np.arange(len(row)) - words.offsets[row]).astype(np.uint64)
        np.add.at(total, row, mix(words.folded + mix(place * np.uint64(2) + salt)))
    return total


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


def _weigh_terms(counts: TermCounts, terms: np.ndarray, idf: np.ndarray) -> tuple[Postings, np.ndarray]:
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
            [np.zeros(0), *(_weigh_terms(counts, self.terms, self.idf)[1] for counts in parts)]
        )
        # A title alone is short and would be near to everything it shares one word with.
        self.squares += LENGTH_DAMPING * self.squares.sum() / max(self.size, 1)

    def __iter__(self) -> Iterator[Postings]:
        first = 0
        for counts in self.parts:
            postings, _ = _weigh_terms(counts, self.terms, self.idf)
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
        self.documents = np.empty(self.offsets[-1], document_type(size))
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


def document_type(size: int) -> type:
    """Smallest type that holds the number of an article."""
    return np.uint16 if size <= 1 << 16 else np.uint32


class SparseNeighbours:
    """An inverted index of weighted words over the training articles, searched exactly.

    The time of a search grows with the number of articles; see `PrunedNeighbours` for many.

    Args:
        tensors: The arrays of `build`, as they are stored.
        max_terms: A query is searched by its heaviest words only, at most this many.
    """

    EXACT = True

    @property
    def description(self) -> str:
        """How neighbours are found, for people."""
        return f"weighted words of {self.size:,} articles, searched exactly"

    def __init__(self, tensors: dict[str, np.ndarray], max_terms: int = 64):
        self.tensors = tensors
        self.max_terms = max_terms
        self.terms = tensors["terms"]
        self.idf = tensors["idf"].astype(np.float64)
        self.offsets = tensors["offsets"].astype(np.int64)
        self.documents = tensors["documents"]
        self.weights = tensors["weights"]
        self.size = int(tensors["size"][0])

    @classmethod
    def build(cls, parts: Iterable[TermCounts], max_terms: int = 64) -> "SparseNeighbours":
        """Indexes articles, whose words come a part at a time; gone through three times."""
        return cls.from_words(WeighedWords(parts), max_terms)

    @classmethod
    def from_words(cls, words: Words, max_terms: int = 64) -> "SparseNeighbours":
        """An index of these words."""
        lists = PostingLists(words.frequency, words.size)
        for postings in words:
            lists.add(postings)
        return cls(
            {
                "terms": words.terms,
                "idf": words.idf.astype(np.float32),
                "offsets": as_offsets(lists.offsets),
                "documents": lists.documents,
                "weights": lists.weights,
                "size": np.array([words.size], np.int64),
            },
            max_terms,
        )

    def __len__(self) -> int:
        return self.size

    def entries(self) -> Iterator[Postings]:
        """Everything that is indexed, some terms at a time."""
        for first, last in spans_of(self.offsets):
            here = slice(self.offsets[first], self.offsets[last])
            columns = np.repeat(np.arange(first, last), np.diff(self.offsets[first : last + 1]))
            yield Postings(columns, self.documents[here], self.weights[here])

    def frequency(self, terms: np.ndarray) -> np.ndarray:
        """How many indexed articles have each term."""
        return self.offsets[terms + 1] - self.offsets[terms]

    def damping(self, square: np.ndarray) -> float:
        """What was added to the squared length of every article when the index was built.

        It is not stored, but follows from an article's weights: its lightest words were counted once, so
        their weight over their idf is one over the damped length, and the sum of squares lacks the damping's
        share.
        """
        lightest, share = np.full(self.size, np.inf), np.ones(self.size)
        for columns, documents, weights in self.entries():
            posted = WEIGHTS[weights]
            np.minimum.at(lightest, documents, posted / self.idf[columns])
            np.subtract.at(share, documents, posted**2)
        usable = np.isfinite(lightest) & (lightest > 0) & (share > 0)
        if not usable.any():
            return float(square.mean())
        return float(np.median(share[usable] / lightest[usable] ** 2))

    def search(
        self, counts: TermCounts, k: int, exclude: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Finds the nearest training articles of each query.

        Args:
            counts: The queries' words.
            k: How many neighbours at most.
            exclude: For each query the indexed articles it must not meet: itself. How rare its words are is
                judged without them, too.

        Returns:
            For each query its neighbours, nearest first, and their cosines.
        """
        queries = zip(self._queries(counts, exclude), exclude, strict=True)
        return [self._nearest(terms, weights, k, own) for (terms, weights), own in queries]

    # What is nearest by definition, whatever a larger index leaves out.
    exact_search = search

    def _queries(
        self, counts: TermCounts, exclude: Sequence[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The terms that each query is searched by, and their weights."""
        place, known = find_terms(counts.hashes, self.terms)
        times = 1 + np.log(counts.counts)
        for query, own in enumerate(exclude):
            span = slice(counts.offsets[query], counts.offsets[query + 1])
            use = known[span]
            yield self._query(place[span][use], times[span][use], own)

    def _query(self, terms: np.ndarray, times: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        terms, times, change = self._without(own, terms, times)
        weights = times * self.idf[terms] * change
        # The weight of a word in an indexed article holds its rarity, too.
        weights = weights / max(np.sqrt((weights**2).sum()), 1e-12) * change
        if len(terms) > self.max_terms:
            heaviest = np.argsort(-weights, kind="stable")[: self.max_terms]
            terms, weights = terms[heaviest], weights[heaviest]
        return terms, weights

    def _without(
        self, own: np.ndarray, terms: np.ndarray, times: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:
        """The words that an index without some articles would know, and the factor of each one's rarity."""
        if not len(own) or not len(terms):
            return terms, times, 1.0
        frequency = self.frequency(terms)
        left = frequency - sum(self._holds(int(document), terms) for document in own)
        known = left >= MIN_DOCUMENTS
        left, frequency = left[known], frequency[known]
        change = rarity(self.size - len(own), left) / rarity(self.size, frequency)
        return terms[known], times[known], change

    def _holds(self, document: int, terms: np.ndarray) -> np.ndarray:
        """Whether an indexed article has each term; articles ascend within a term, so bisection tells."""
        starts, ends = self.offsets[terms], self.offsets[terms + 1]
        sought = self.documents.dtype.type(document)
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        place = starts + [self.documents[start:end].searchsorted(sought) for start, end in spans]
        return (place < ends) & (self.documents[np.minimum(place, len(self.documents) - 1)] == sought)

    def _nearest(
        self, terms: np.ndarray, weights: np.ndarray, k: int, own: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if not len(terms):
            return np.zeros(0, np.int64), np.zeros(0)
        starts, ends = self.offsets[terms], self.offsets[terms + 1]
        spans = [slice(*span) for span in zip(starts.tolist(), ends.tolist(), strict=True)]
        documents = np.concatenate([self.documents[span] for span in spans])
        posted = WEIGHTS[np.concatenate([self.weights[span] for span in spans])]
        scores = np.bincount(documents, posted * np.repeat(weights, ends - starts), self.size)
        scores[own] = 0
        # Selecting among thousands of equal zeros is slower than everything above, so they go first.
        found = np.flatnonzero(scores > 0)
        return best_of(found, scores[found], k)


def best_of(documents: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The highest scores, highest first, of articles in ascending order; of equal ones the first article."""
    if k < len(documents):
        best = np.sort(np.argpartition(scores, len(documents) - k)[len(documents) - k :])
        documents, scores = documents[best], scores[best]
    order = np.argsort(-scores, kind="stable")
    return documents[order].astype(np.int64), scores[order].astype(np.float64)


class GrownWords:
    """Terms and postings of an index and of new articles together.

    How rare a word is that the index knows stays as it was. A word that it lacks stood in fewer than two old
    articles, so the new ones tell how rare it is.

    Args:
        index: The index as it is.
        counts: Words of the new articles.
    """

    def __init__(self, index: SparseNeighbours, counts: TermCounts):
        self.index = index
        self.size = index.size + counts.size
        words, frequency = np.unique(counts.hashes, return_counts=True)
        fresh = (frequency >= MIN_DOCUMENTS) & ~np.isin(words, index.terms)
        self.terms = np.union1d(index.terms, words[fresh])
        self.columns = np.searchsorted(self.terms, index.terms)
        self.idf = np.zeros(len(self.terms))
        self.idf[np.searchsorted(self.terms, words[fresh])] = rarity(self.size, frequency[fresh])
        self.idf[self.columns] = index.idf
        postings, square = _weigh_terms(counts, self.terms, self.idf)
        new = postings.scaled(square + index.damping(square))
        self.new = new._replace(documents=new.documents + index.size)
        self.frequency = np.bincount(self.new.columns, minlength=len(self.terms))
        self.frequency[self.columns] += index.frequency(np.arange(len(index.terms)))

    def __iter__(self) -> Iterator[Postings]:
        for postings in self.index.entries():
            yield postings._replace(columns=self.columns[postings.columns])
        yield self.new


def as_offsets(values: np.ndarray) -> np.ndarray:
    """Offsets in as few bytes as they need."""
    return values.astype(np.uint32 if values[-1] < 1 << 32 else np.uint64)


def spans_of(offsets: np.ndarray, most: int = 1 << 22) -> Iterator[tuple[int, int]]:
    """Divides lists with these offsets into runs of about so many entries: first list, and the one after."""
    first = 0
    while first < len(offsets) - 1:
        last = max(int(np.searchsorted(offsets, int(offsets[first]) + most, "right")) - 1, first + 1)
        yield first, last
        first = last
