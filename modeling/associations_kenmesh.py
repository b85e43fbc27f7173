"""What the words of an article alone say about its labels: a sparse linear model over words and terms found."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .lexicon_kenmesh import INSIDE, Hits
from .neighbours_kenmesh import IndexedArticles, TermCounts

# The square root of a weight's size in seven bits, its sign in the eighth: small weights keep their precision.
_STEPS = np.arange(256, dtype=np.uint8).view(np.int8) / 127
_WEIGHTS = np.sign(_STEPS) * _STEPS**2
TERM_NORM = 0.7
CONSTANT = 0.3


class Inputs(NamedTuple):
    """Inputs of the linear model for a batch of articles: column and value of each, `(inputs,)`, with offsets."""

    columns: np.ndarray
    values: np.ndarray
    offsets: np.ndarray


class WordAssociations:
    """Ridge regression from weighted words and terms to labels, with its small weights left out.

    What would be predicted for a training article had it been left out of the fit follows from its leverage and
    is kept for the labels it carries, so that it gets the numbers that an unseen article would get.

    Args:
        tensors: The arrays of `pack`, as they are stored.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.words = tensors["words"]
        self.terms = tensors["terms"]
        self.idf = tensors["idf"].astype(np.float64)
        self.scales = tensors["scales"].astype(np.float64)
        self.offsets = tensors["offsets"].astype(np.int64)
        self.labels = tensors["labels"]
        self.weights = tensors["weights"].view(np.uint8)
        self.leverages = tensors["leverages"]
        self.own = tensors["own"]
        self._column_of_term = np.full(int(tensors["num_labels"][0]), -1)
        self._column_of_term[self.terms] = len(self.words) + np.arange(len(self.terms))

    def inputs(self, counts: TermCounts, hits: Hits, hit_labels: np.ndarray) -> Inputs:
        """The words and terms of a batch of articles as the model takes them."""
        size = len(counts.offsets) - 1
        place = np.minimum(np.searchsorted(self.words, counts.hashes), max(len(self.words) - 1, 0))
        known = self.words[place] == counts.hashes if len(self.words) else np.zeros(len(place), bool)
        rows = [np.repeat(np.arange(size), np.diff(counts.offsets))[known]]
        columns = [place[known]]
        values = [_unit((1 + np.log(counts.counts[known])) * self.idf[columns[0]], rows[0], size)]
        column = self._column_of_term[hit_labels]
        free = (hits.places != INSIDE) & (column >= 0)
        pairs = np.unique(hits.articles[free] * self.width + column[free])
        rows.append(pairs // self.width)
        columns.append(pairs % self.width)
        values.append(TERM_NORM * _unit(self.idf[columns[1]], rows[1], size))
        rows.append(np.arange(size))
        columns.append(np.full(size, self.width - 1))
        values.append(np.full(size, CONSTANT))
        row, column, value = (np.concatenate(parts) for parts in (rows, columns, values))
        order = np.argsort(row, kind="stable")
        return Inputs(column[order], value[order], np.searchsorted(row[order], np.arange(size + 1)))

    @property
    def width(self) -> int:
        """Number of inputs: words, terms and the constant."""
        return len(self.words) + len(self.terms) + 1

    def predict(self, inputs: Inputs, article: int, size: int) -> np.ndarray:
        """What the words of one article of a batch say about each of `size` labels, about 0 to 1."""
        span = slice(inputs.offsets[article], inputs.offsets[article + 1])
        columns, values = inputs.columns[span], inputs.values[span] * self.scales[inputs.columns[span]]
        starts, ends = self.offsets[columns], self.offsets[columns + 1]
        spans = [slice(*pair) for pair in zip(starts.tolist(), ends.tolist(), strict=True)]
        labels = np.concatenate([self.labels[span] for span in spans])
        weights = _WEIGHTS[np.concatenate([self.weights[span] for span in spans])]
        return np.bincount(labels, weights * np.repeat(values, ends - starts), size)

    def leave_out(self, predicted: np.ndarray, own: np.ndarray, articles: IndexedArticles) -> np.ndarray:
        """Prediction for a training article as it would be without it.

        Args:
            predicted: Of `predict`.
            own: The indexed articles that are this article itself.
            articles: What is indexed.
        """
        for number in own:
            predicted = predicted / (1 - float(self.leverages[number]))
            span = slice(articles.offsets[number], articles.offsets[number + 1])
            predicted[articles.labels[span]] = self.own[span]
        return predicted

    @classmethod
    def pack(
        cls,
        words: np.ndarray,
        terms: np.ndarray,
        idf: np.ndarray,
        entries: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
        leverages: np.ndarray,
        own: np.ndarray,
        num_labels: int,
    ) -> "WordAssociations":
        """Stores a fitted model.

        Args:
            words: Hashes of the words that are inputs, ascending.
            terms: Labels whose terms are inputs.
            idf: Weight of each input but the constant.
            entries: Columns, labels and weights of what is kept.
            leverages: Leverage of each training article.
            own: For each training article and each of its labels the prediction without the article.
            num_labels: Number of labels.
        """
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        column, label, weight = (np.concatenate(each) for each in zip(empty, *entries, strict=True))
        width = len(words) + len(terms) + 1
        order = np.lexsort((label, column))
        column, label, weight = column[order], label[order], weight[order]
        scales = np.zeros(width)
        np.maximum.at(scales, column, np.abs(weight))
        share = weight / np.maximum(scales[column], 1e-12)
        return cls(
            {
                "words": words,
                "terms": terms.astype(np.uint32),
                "idf": idf.astype(np.float32),
                "scales": scales.astype(np.float32),
                "offsets": np.searchsorted(column, np.arange(width + 1)).astype(np.uint32),
                "labels": label.astype(np.uint16 if num_labels <= 1 << 16 else np.uint32),
                "weights": np.round(np.sign(share) * np.sqrt(np.abs(share)) * 127).astype(np.int8),
                "leverages": leverages.astype(np.float16),
                "own": own.astype(np.float16),
                "num_labels": np.array([num_labels], np.int64),
            }
        )


def _unit(values: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Values scaled so that those of each row have length one."""
    length = np.sqrt(np.bincount(rows, values**2, size))
    return values / length[rows]
