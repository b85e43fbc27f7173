"""Training articles most like a text: TF-IDF over an inverted index, held in a few compact arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .terms_kenmesh import HashedWords, mix

# Postings hold the square root of a weight in one byte: fine steps for small weights, which most are.
_WEIGHTS = ((np.arange(256) / 255) ** 2).astype(np.float64)
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
    size = len(counts.offsets) - 1
    column, known = find_terms(counts.hashes, terms)
    column = column[known]
    document = np.repeat(np.arange(size), np.diff(counts.offsets))[known]
    weight = (1 + np.log(counts.counts[known])) * idf[column]
    return Postings(column, document, weight), np.bincount(document, weight**2, minlength=size)


def find_terms(hashes: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each word stands among the terms of an index, and whether it does."""
    place = np.minimum(np.searchsorted(terms, hashes), max(len(terms) - 1, 0))
    return place, terms[place] == hashes if len(terms) else np.zeros(len(place), bool)


def _arrange(
    parts: Sequence[Postings], terms: np.ndarray, idf: np.ndarray, size: int
) -> dict[str, np.ndarray]:
    """The arrays of an index of so many articles: postings by word, and by article within a word."""
    columns, documents, weights = (np.concatenate(values) for values in zip(*parts, strict=True))
    order = np.argsort(columns, kind="stable")
    return {
        "terms": terms,
        "idf": idf.astype(np.float32),
        "offsets": np.searchsorted(columns[order], np.arange(len(terms) + 1)).astype(np.uint32),
        "documents": documents[order].astype(np.uint16 if size <= 1 << 16 else np.uint32),
        "weights": weights[order],
        "size": np.array([size], np.int64),
    }


class SparseNeighbours:
    """An inverted index of weighted words over the training articles.

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
        self._posted = _WEIGHTS[self.weights]
        self.size = int(tensors["size"][0])

    @classmethod
    def build(cls, counts: TermCounts, max_terms: int = 64) -> "SparseNeighbours":
        """Indexes articles."""
        size = len(counts.offsets) - 1
        terms, frequency = np.unique(counts.hashes, return_counts=True)
        known = frequency >= MIN_DOCUMENTS
        terms, idf = terms[known], rarity(size, frequency[known])
        postings, square = _weigh_terms(counts, terms, idf)
        # A title alone is short and would be near to everything it shares one word with.
        damping = LENGTH_DAMPING * square.sum() / max(size, 1)
        return cls(_arrange([postings.scaled(square + damping)], terms, idf, size), max_terms)

    def grow(self, counts: TermCounts) -> "SparseNeighbours":
        """Merges the words of new articles into the index; how rare a word is that it knows stays as it was.

        A word that it lacks stood in fewer than two old articles, so the new ones tell how rare it is.
        """
        size = self.size + len(counts.offsets) - 1
        words, frequency = np.unique(counts.hashes, return_counts=True)
        fresh = (frequency >= MIN_DOCUMENTS) & ~np.isin(words, self.terms)
        terms = np.union1d(self.terms, words[fresh])
        idf, old_columns = np.zeros(len(terms)), np.searchsorted(terms, self.terms)
        idf[np.searchsorted(terms, words[fresh])] = rarity(size, frequency[fresh])
        idf[old_columns] = self.idf
        postings, square = _weigh_terms(counts, terms, idf)
        new = postings.scaled(square + self._damping(square))
        old = Postings(np.repeat(old_columns, np.diff(self.offsets)), self.documents, self.weights)
        later = new._replace(documents=new.documents + self.size)
        return SparseNeighbours(_arrange([old, later], terms, idf, size), self.max_terms)

    def _damping(self, square: np.ndarray) -> float:
        """What was added to the squared length of every article when the index was built.

        It is not stored, but follows from an article's weights: its lightest words were counted once, so
        their weight over their idf is one over the damped length, and the sum of squares lacks the damping's
        share.
        """
        lightest = np.full(self.size, np.inf)
        np.minimum.at(lightest, self.documents, self._posted / np.repeat(self.idf, np.diff(self.offsets)))
        share = 1 - np.bincount(self.documents, self._posted**2, minlength=self.size)
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
        place, known = find_terms(counts.hashes, self.terms)
        times = 1 + np.log(counts.counts)
        found = []
        for query, own in enumerate(exclude):
            span = slice(counts.offsets[query], counts.offsets[query + 1])
            use = known[span]
            found.append(self._search_one(place[span][use], times[span][use], k, own))
        return found

    def _search_one(
        self, terms: np.ndarray, times: np.ndarray, k: int, own: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        terms, times, change = self._without(own, terms, times)
        if not len(terms):
            return np.zeros(0, np.int64), np.zeros(0)
        weights = times * self.idf[terms] * change
        # The weight of a word in an indexed article holds its rarity, too.
        weights = weights / np.sqrt((weights**2).sum()) * change
        if len(terms) > self.max_terms:
            heaviest = np.argsort(-weights, kind="stable")[: self.max_terms]
            terms, weights = terms[heaviest], weights[heaviest]
        starts, ends = self.offsets[terms], self.offsets[terms + 1]
        spans = [slice(*span) for span in zip(starts.tolist(), ends.tolist(), strict=True)]
        documents = np.concatenate([self.documents[span] for span in spans])
        posted = np.concatenate([self._posted[span] for span in spans])
        scores = np.bincount(documents, posted * np.repeat(weights, ends - starts), self.size)
        scores[own] = 0
        # Selecting among thousands of equal zeros is slower than everything above, so they go first.
        best = np.flatnonzero(scores > 0)
        if k < len(best):
            best = best[np.argpartition(scores[best], len(best) - k)[len(best) - k :]]
        best.sort()
        best = best[np.argsort(-scores[best], kind="stable")]
        return best, scores[best]

    def _without(
        self, own: np.ndarray, terms: np.ndarray, times: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:
        """The words that an index without some articles would know, and the factor of each one's rarity."""
        if not len(own) or not len(terms):
            return terms, times, 1.0
        starts, ends = self.offsets[terms], self.offsets[terms + 1]
        frequency = ends - starts
        left = frequency.copy()
        for document in own.astype(self.documents.dtype):
            # Articles ascend within a word, so one is found by bisection.
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            place = starts + [self.documents[start:end].searchsorted(document) for start, end in spans]
            left -= (place < ends) & (self.documents[np.minimum(place, len(self.documents) - 1)] == document)
        known = left >= MIN_DOCUMENTS
        left, frequency = left[known], frequency[known]
        change = rarity(self.size - len(own), left) / rarity(self.size, frequency)
        return terms[known], times[known], change


class IndexedArticles:
    """What is remembered of each training article: PMID, hash of its text, year, labels.

    Args:
        tensors: The arrays of `build`, as they are stored.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.pmids = tensors["pmids"]
        self.hashes = tensors["hashes"]
        self.years = tensors["years"]
        self.labels = tensors["labels"]
        self.offsets = tensors["offsets"].astype(np.int64)
        self._by_pmid = np.argsort(self.pmids, kind="stable")
        self._by_hash = np.argsort(self.hashes, kind="stable")

    @classmethod
    def build(
        cls,
        pmids: Sequence[str | int | None],
        hashes: np.ndarray,
        years: Sequence[int | None],
        labels: Sequence[np.ndarray],
    ) -> "IndexedArticles":
        """Remembers articles; `labels` has each one's distinct labels."""
        flat = np.concatenate([np.zeros(0, np.int64), *labels])
        return cls(
            {
                "pmids": np.array([pmid_number(pmid) for pmid in pmids], np.uint32),
                "hashes": hashes,
                "years": np.array([min(max(year or 0, 0), 0xFFFF) for year in years], np.uint16),
                "labels": flat.astype(np.uint16 if flat.max(initial=0) < 1 << 16 else np.uint32),
                "offsets": np.cumsum([0, *map(len, labels)]).astype(np.uint32),
            }
        )

    def __len__(self) -> int:
        return len(self.pmids)

    def since(self, year: int) -> np.ndarray:
        """Whether each article is of this year or later, or maybe: its year is unknown."""
        return (self.years == 0) | (self.years >= year)

    def find(self, pmids: Sequence[str | int | None], hashes: np.ndarray) -> list[np.ndarray]:
        """For each query the indexed articles that are the query itself: same PMID or same words."""
        numbers = np.array([pmid_number(pmid) for pmid in pmids], np.uint32)
        found = [np.zeros(0, np.int64)] * len(numbers)
        for values, stored, order in (
            (numbers, self.pmids, self._by_pmid),
            (hashes, self.hashes, self._by_hash),
        ):
            ordered = stored[order]
            left, right = np.searchsorted(ordered, values), np.searchsorted(ordered, values, "right")
            for query in np.flatnonzero((right > left) & (values > 0)):
                found[query] = np.union1d(found[query], order[left[query] : right[query]])
        return found

    def labels_of(self, articles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels of articles one after the other, and how many each has."""
        starts, lengths = self.offsets[articles], self.offsets[articles + 1] - self.offsets[articles]
        before = np.cumsum(lengths) - lengths
        places = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
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
