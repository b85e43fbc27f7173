"""Training articles most like a text: TF-IDF over an inverted index, held in a few compact arrays."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from .postings_kenmesh import (
    MIN_DOCUMENTS,
    WEIGHTS,
    PostingLists,
    Postings,
    WeighedWords,
    Words,
    find_terms,
    rarity,
    spans_of,
    weigh_terms,
)
from .word_counts_kenmesh import TermCounts, amounts_of, as_offsets


class SparseNeighbours:
    """An inverted index of weighted words over the training articles, searched exactly.

    The time of a search grows with the number of articles; see `PrunedNeighbours` for many.

    Args:
        tensors: The arrays of `build`, as they are stored.
        max_terms: A query is searched by its heaviest words only, at most this many.
    """

    def __init__(self, tensors: dict[str, np.ndarray], max_terms: int = 64):
        self.tensors = tensors
        self.max_terms = max_terms
        self.terms = tensors["terms"]
        self.idf = tensors["idf"].astype(np.float64)
        self.offsets = tensors["offsets"].astype(np.int64)
        self.documents = tensors["documents"]
        self.weights = tensors["weights"]
        self.size = int(tensors["size"][0])

    @property
    def description(self) -> str:
        """How neighbours are found, for people."""
        return f"weighted words of {self.size:,} articles, searched exactly"

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

    def similarities(
        self, hashes: np.ndarray, counts: np.ndarray, near: np.ndarray, own: np.ndarray
    ) -> np.ndarray:
        """Cosines of indexed articles with variants of a query, `(near, variants)`.

        Args:
            hashes: The query's words, ascending.
            counts: How often each variant has them, `(words, variants)`; the first is the query as it is, by
                whose heaviest words all are compared.
            near: The indexed articles.
            own: Those that are the query itself.
        """
        place, known = find_terms(hashes, self.terms)
        place, counts = place[known], counts[known]
        times = amounts_of(counts)
        terms, weights = self._query(place, times[:, 0], own)
        share = times / times[:, :1]
        squares = (times[:, :1] * self.idf[place][:, None] * share) ** 2
        length = np.sqrt(squares.sum(0) / max(squares[:, 0].sum(), 1e-12))
        variants = weights[:, None] * share[np.searchsorted(place, terms)] / np.maximum(length, 1e-12)
        return self._weights_at(near, terms) @ variants.astype(np.float32)

    def _postings(self, terms: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Articles and weights of all postings of some terms, and how many each term has."""
        starts, ends = self.offsets[terms], self.offsets[terms + 1]
        spans = [slice(*span) for span in zip(starts.tolist(), ends.tolist(), strict=True)]
        parts = ([array[span] for span in spans] for array in (self.documents, self.weights))
        documents, weights = map(np.concatenate, parts)
        return (documents, weights), ends - starts

    def _weights_at(self, documents: np.ndarray, terms: np.ndarray) -> np.ndarray:
        """Weights of terms in indexed articles, `(documents, terms)`."""
        place = np.full(self.size, -1, np.int32)
        place[documents] = np.arange(len(documents))
        weights = np.zeros((len(documents), len(terms)), np.float32)
        if len(terms):
            (posted, coded), lengths = self._postings(terms)
            row = place.take(posted)
            found = np.flatnonzero(row >= 0)
            column = np.searchsorted(np.cumsum(lengths), found, "right")
            weights[row[found], column] = WEIGHTS[coded[found]]
        return weights

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
        (documents, posted), lengths = self._postings(terms)
        scores = np.bincount(documents, WEIGHTS[posted] * np.repeat(weights, lengths), self.size)
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
        postings, square = weigh_terms(counts, self.terms, self.idf)
        new = postings.scaled(square + index.damping(square))
        self.new = new._replace(documents=new.documents + index.size)
        self.frequency = np.bincount(self.new.columns, minlength=len(self.terms))
        self.frequency[self.columns] += index.frequency(np.arange(len(index.terms)))

    def __iter__(self) -> Iterator[Postings]:
        for postings in self.index.entries():
            yield postings._replace(columns=self.columns[postings.columns])
        yield self.new
