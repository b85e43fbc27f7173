"""Neighbours among very many articles: a short list by the weightiest postings, then weighed exactly."""

import threading
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from .neighbours_kenmesh import GrownWords, SparseNeighbours, best_of
from .postings_kenmesh import WEIGHTS, PostingLists, Postings, WeighedWords, Words, spans_of
from .word_counts_kenmesh import TermCounts, as_offsets, places_of

# From so many articles on, a search of all postings takes longer than a short list of bounded work.
PRUNED_SIZE = 150_000
# Postings that a query reads at most, and how many times the wanted neighbours are weighed exactly.
MOST_POSTINGS = 100_000
SHORT_LIST = 1.5
# More is read of a weighty word: in proportion to this power of its weight.
WORTH_POWER = 3
# How often an article of the short list may well be met among postings; of how many sums one tells the cut.
_REPEATED, _SAMPLED = 4, 8
_WEIGHT_BITS, _WEIGHT_MASK = 8, 255
_UNIT = WEIGHTS[1]
_local = threading.local()


def build_neighbours(parts: Iterable[TermCounts]) -> SparseNeighbours:
    """The index that fits the number of articles, whose words come a part at a time."""
    words = WeighedWords(parts)
    kind = SparseNeighbours if words.size < PRUNED_SIZE else PrunedNeighbours
    return kind.from_words(words)


def grow_neighbours(index: SparseNeighbours, counts: TermCounts) -> SparseNeighbours:
    """An index with the words of new articles, in the form that then fits."""
    grown = index.from_words(GrownWords(index, counts), index.max_terms)
    if isinstance(grown, PrunedNeighbours) or grown.size < PRUNED_SIZE:
        return grown
    return PrunedNeighbours.from_words(_ByArticle(grown), index.max_terms)


class PrunedNeighbours(SparseNeighbours):
    """An index in which the work of a search does not grow with the number of articles.

    Postings stand in the order of their weights. A query reads the first ones of each of its words, more of
    weighty words than of others, and adds them up. The best articles that this finds are weighed exactly, by
    all their words, which are stored article by article, too.

    Args:
        tensors: The arrays of `build`, as they are stored.
        max_terms: A query is searched by its heaviest words only, at most this many.
    """

    def __init__(self, tensors: dict[str, np.ndarray], max_terms: int = 64):
        super().__init__(tensors, max_terms)
        self.frequencies = tensors["frequency"]
        self.article_offsets = tensors["article_offsets"]
        self.article_words = tensors["article_words"]

    @property
    def description(self) -> str:
        return (
            f"weighted words of {self.size:,} articles, a short list from at most {MOST_POSTINGS:,} postings "
            "that is weighed exactly"
        )

    @classmethod
    def from_words(cls, words: Words, max_terms: int = 64) -> "PrunedNeighbours":
        lists = PostingLists(words.frequency, words.size)
        articles = _Articles(int(lists.offsets[-1]), len(words.terms), words.size)
        for postings in words:
            lists.add(postings)
            articles.add(postings)
        offsets, documents, weights = _weightiest_first(lists, MOST_POSTINGS)
        return cls(
            {
                "terms": words.terms,
                "idf": words.idf.astype(np.float32),
                "frequency": words.frequency.astype(np.uint32),
                "offsets": offsets,
                "documents": documents,
                "weights": weights,
                "article_offsets": articles.offsets,
                "article_words": articles.words,
                "size": np.array([words.size], np.int64),
            },
            max_terms,
        )

    def entries(self) -> Iterator[Postings]:
        """Everything that is indexed, some articles at a time."""
        for first, last in spans_of(self.article_offsets):
            here = slice(int(self.article_offsets[first]), int(self.article_offsets[last]))
            ends = self.article_offsets[first : last + 1].astype(np.int64)
            documents = np.repeat(np.arange(first, last), ends[1:] - ends[:-1])
            terms, weights = _unpack(self.article_words[here])
            yield Postings(terms, documents, weights)

    def frequency(self, terms: np.ndarray) -> np.ndarray:
        return self.frequencies[terms].astype(np.int64)

    def _holds(self, document: int, terms: np.ndarray) -> np.ndarray:
        span = slice(int(self.article_offsets[document]), int(self.article_offsets[document + 1]))
        return np.isin(terms, _unpack(self.article_words[span])[0])

    def _nearest(
        self, terms: np.ndarray, weights: np.ndarray, k: int, own: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if not len(terms):
            return np.zeros(0, np.int64), np.zeros(0)
        listed = self._short_list(terms, weights, int(SHORT_LIST * k) + len(own))
        listed = listed[np.isin(listed, own, invert=True)] if len(own) else listed
        return best_of(listed, self._weigh(listed, terms, weights), k)

    def _weights_at(self, documents: np.ndarray, terms: np.ndarray) -> np.ndarray:
        column = _room("column", len(self.terms), np.int32)
        column[terms] = np.arange(1, len(terms) + 1)
        place, lengths = places_of(self.article_offsets, documents)
        words, posted = _unpack(self.article_words.take(place))
        # The first column is of all other words.
        weights = np.zeros((len(documents), len(terms) + 1), np.float32)
        weights[np.repeat(np.arange(len(documents)), lengths), column.take(words)] = _squares(posted) * _UNIT
        column[terms] = 0
        return weights[:, 1:]

    def exact_search(
        self, counts: TermCounts, k: int, exclude: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """What `search` would find if it weighed every article: for measuring, since it takes long."""
        found = []
        for (terms, weights), own in zip(self._queries(counts, exclude), exclude, strict=True):
            scores = np.zeros(self.size, np.float32)
            for first, last in spans_of(self.article_offsets):
                scores[first:last] = self._weigh(np.arange(first, last), terms, weights)
            scores[own] = 0
            some = np.flatnonzero(scores > 0)
            found.append(best_of(some, scores[some], k))
        return found

    def _short_list(self, terms: np.ndarray, weights: np.ndarray, most: int) -> np.ndarray:
        """The articles with the greatest sums of the weightiest postings, at most `most`, ascending."""
        starts = self.offsets[terms]
        read = share_out(self.offsets[terms + 1] - starts, weights**WORTH_POWER, MOST_POSTINGS)
        spans = [slice(*span) for span in zip(starts.tolist(), (starts + read).tolist(), strict=True)]
        # Of the type that NumPy looks things up by, so that it is not converted each time.
        documents = np.concatenate([self.documents[span] for span in spans], dtype=np.intp)
        posted = _squares(np.concatenate([self.weights[span] for span in spans]))
        posted *= np.repeat((weights * _UNIT).astype(np.float32), read)
        sums = _room("sums", self.size, np.float32)
        np.add.at(sums, documents, posted)
        listed = greatest(documents, sums, most)
        sums[documents] = 0
        return listed

    def _weigh(self, documents: np.ndarray, terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Cosine of a query with articles, by all the words it is searched by."""
        place, lengths = places_of(self.article_offsets, documents)
        sought = _room("sought", len(self.terms), np.float32)
        sought[terms] = weights * _UNIT
        words, posted = _unpack(self.article_words.take(place))
        # One more number, at which the last articles may begin that have no word.
        products = np.zeros(len(place) + 1, np.float32)
        np.multiply(_squares(posted), sought.take(words), out=products[:-1])
        sought[terms] = 0
        scores = np.add.reduceat(products, np.cumsum(lengths) - lengths)
        scores[lengths == 0] = 0
        return scores


class _ByArticle:
    """Terms and postings of an exact index, in the order of its articles."""

    def __init__(self, index: SparseNeighbours):
        self.index, self.terms, self.idf, self.size = index, index.terms, index.idf, index.size
        self.frequency = np.diff(index.offsets)

    def __iter__(self) -> Iterator[Postings]:
        order = np.argsort(self.index.documents, kind="stable")
        columns = np.repeat(np.arange(len(self.terms), dtype=np.uint32), self.frequency)
        yield Postings(columns[order], self.index.documents[order], self.index.weights[order])


class _Articles:
    """Room for the terms of each article and their weights, filled article by article."""

    def __init__(self, entries: int, terms: int, size: int):
        self.lengths = np.zeros(size, np.int64)
        self.words = np.empty(entries, np.uint32 if terms <= 1 << (32 - _WEIGHT_BITS) else np.uint64)
        self._filled = 0

    def add(self, postings: Postings) -> None:
        """Puts the terms of further articles behind; those of an article are together."""
        end = self._filled + len(postings.columns)
        # A term and its weight are looked up together, so they lie together: half as many places to go to.
        words = postings.columns.astype(self.words.dtype) << _WEIGHT_BITS
        self.words[self._filled : end] = words | postings.weights
        self._filled = end
        if len(postings.documents):
            first = int(postings.documents[0])
            lengths = np.bincount(postings.documents.astype(np.int64) - first)
            self.lengths[first : first + len(lengths)] += lengths

    @property
    def offsets(self) -> np.ndarray:
        """Where the terms of each article begin."""
        return as_offsets(np.concatenate([[0], np.cumsum(self.lengths)]))


def _weightiest_first(lists: PostingLists, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Postings of each term by falling weight, no more than are ever read, in the room that they have."""
    lengths = np.minimum(np.diff(lists.offsets), most)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    for first, last in spans_of(lists.offsets):
        here = slice(lists.offsets[first], lists.offsets[last])
        counts = np.diff(lists.offsets[first : last + 1])
        column = np.repeat(np.arange(last - first), counts)
        weights = lists.weights[here]
        order = np.argsort(column << 8 | (255 - weights.astype(np.int64)), kind="stable")
        rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = order[rank < most]
        there = slice(offsets[first], offsets[last])
        lists.documents[there], lists.weights[there] = lists.documents[here][order], weights[order]
    return as_offsets(offsets), lists.documents[: offsets[-1]], lists.weights[: offsets[-1]]


def share_out(lengths: np.ndarray, worth: np.ndarray, most: int) -> np.ndarray:
    """How much is read of each list: in proportion to its worth, all of short ones, `most` together."""
    if lengths.sum() <= most:
        return lengths
    order = np.argsort(lengths / worth)
    whole = np.cumsum(lengths[order]) - lengths[order]
    rest = np.cumsum(worth[order][::-1])[::-1]
    # Lists are read whole in this order as long as a fair share of the rest is longer than they are.
    first = int(np.argmax(whole + lengths[order] / worth[order] * rest > most))
    share = (most - whole[first]) / rest[first]
    return np.minimum(lengths, (share * worth).astype(np.int64))


def _unpack(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Terms of articles and their weights."""
    return (words >> _WEIGHT_BITS).astype(np.intp), (words & _WEIGHT_MASK).astype(np.uint8)


def _squares(weights: np.ndarray) -> np.ndarray:
    """What postings weigh, but for the factor `_UNIT`: quicker than to look it up in `WEIGHTS`."""
    roots = weights.astype(np.float32)
    roots *= roots
    return roots


def greatest(documents: np.ndarray, sums: np.ndarray, most: int) -> np.ndarray:
    """The articles with the greatest sums, at most `most`, ascending.

    Args:
        documents: The articles, each as often as a posting of it was read.
        sums: Of all articles.
        most: How many at most.
    """
    totals, rank = sums.take(documents), _REPEATED * most
    while rank < len(documents):
        # Some of the sums tell well enough where the cut is.
        some = totals[::_SAMPLED]
        least = np.partition(some, -(rank // _SAMPLED) - 1)[-(rank // _SAMPLED) - 1]
        listed = _distinct(documents[np.flatnonzero(totals >= least)])
        if len(listed) >= most:
            break
        rank *= _REPEATED
    else:
        listed = _distinct(documents)
    if len(listed) > most:
        listed = np.sort(listed[np.argpartition(sums[listed], -most)[-most:]])
    return listed


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """Each number once, ascending: `np.unique`, whose hashing takes several times as long here."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def _room(name: str, size: int, dtype: type) -> np.ndarray:
    """An array that this thread keeps, of zeros at first: making one a query would take as long as a search.

    Who uses it leaves zeros behind where others rely on them.
    """
    kept = getattr(_local, name, None)
    if kept is None or len(kept) < size:
        kept = np.zeros(size, dtype)
        setattr(_local, name, kept)
    return kept
