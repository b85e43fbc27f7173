"""What the words of an article alone say about its labels: a sparse linear model over words and terms."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .lexicon_kenmesh import INSIDE, Hits
from .neighbours_kenmesh import TermCounts

# The square root of a weight's size in seven bits, its sign in the eighth: small weights stay precise.
_STEPS = np.arange(256, dtype=np.uint8).view(np.int8) / 127
_WEIGHTS = (np.sign(_STEPS) * _STEPS**2).astype(np.float32)
# Predictions are kept between these: what is smaller says nothing, and would take most of the room.
LEAST, MOST = 0.02, 2.0
TERM_NORM = 0.7
CONSTANT = 0.3


class Inputs(NamedTuple):
    """Inputs of the linear model for a batch of articles: column and value of each, with offsets."""

    columns: np.ndarray
    values: np.ndarray
    offsets: np.ndarray


class WordAssociations:
    """Ridge regression from weighted words and terms to labels, with its small weights left out.

    For a training article the prediction of a model that was fitted without it is stored: so it gets the
    numbers that an unseen one would get, for the labels it carries and for all others alike.

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
        self.weights = _WEIGHTS[tensors["weights"].view(np.uint8)]
        self.left_out_offsets = tensors["left_out_offsets"].astype(np.int64)
        self.left_out_labels = tensors["left_out_labels"]
        self.left_out_values = tensors["left_out_values"]
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
        if span.stop - span.start == 1:  # nothing but the constant: the words say nothing
            return np.zeros(size)
        columns, values = inputs.columns[span], inputs.values[span] * self.scales[inputs.columns[span]]
        starts, ends = self.offsets[columns], self.offsets[columns + 1]
        spans = [slice(*pair) for pair in zip(starts.tolist(), ends.tolist(), strict=True)]
        labels = np.concatenate([self.labels[span] for span in spans])
        weights = np.concatenate([self.weights[span] for span in spans])
        predicted = np.bincount(labels, weights * np.repeat(values, ends - starts), size)
        np.minimum(predicted, MOST, out=predicted)
        predicted *= predicted >= LEAST
        return predicted

    def leave_out(self, predicted: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Prediction for an article that may itself be a training article.

        Args:
            predicted: Of `predict`.
            own: The indexed articles that are this article itself; what is stored for them replaces it.
        """
        if not len(own):
            return predicted
        stored = np.zeros((len(own), len(predicted)))
        for row, number in zip(stored, own, strict=True):
            span = slice(self.left_out_offsets[number], self.left_out_offsets[number + 1])
            row[self.left_out_labels[span]] = MOST * (self.left_out_values[span] / 255.0) ** 2
        return stored.min(0)

    def left_out(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """What is stored for each training article: labels and coded values."""
        spans = [
            slice(*span) for span in zip(self.left_out_offsets[:-1], self.left_out_offsets[1:], strict=True)
        ]
        return [(self.left_out_labels[span], self.left_out_values[span]) for span in spans]

    def slim(self, most: int) -> "WordAssociations":
        """The same model with the highest predictions of each training article only, for sharing.

        Training needs all of them; what is left still keeps an indexed article from meeting itself.
        """
        kept = []
        for labels, values in self.left_out():
            best = np.sort(np.argsort(-values.astype(np.int64), kind="stable")[:most])
            kept.append((labels[best], values[best]))
        return WordAssociations(self.tensors | pack_left_out(kept, int(self.tensors["num_labels"][0])))

    @classmethod
    def pack(
        cls,
        words: np.ndarray,
        terms: np.ndarray,
        idf: np.ndarray,
        entries: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
        left_out: Sequence[tuple[np.ndarray, np.ndarray]],
        num_labels: int,
    ) -> "WordAssociations":
        """Stores a fitted model.

        Args:
            words: Hashes of the words that are inputs, ascending.
            terms: Labels whose terms are inputs.
            idf: Weight of each input but the constant.
            entries: Columns, labels and weights of what is kept.
            left_out: For each training article what a model fitted without it predicts, as `code` gives it.
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
                "labels": label.astype(label_type(num_labels)),
                "weights": np.round(np.sign(share) * np.sqrt(np.abs(share)) * 127).astype(np.int8),
                **pack_left_out(left_out, num_labels),
                "num_labels": np.array([num_labels], np.int64),
            }
        )


def label_type(num_labels: int) -> type:
    """Smallest type that holds a label."""
    return np.uint16 if num_labels <= 1 << 16 else np.uint32


def code(predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A prediction of `predict` as it is stored: its labels, and its values in one byte each."""
    labels = np.flatnonzero(predicted)
    values = np.round(255 * np.sqrt(predicted[labels] / MOST)).astype(np.uint8)
    return labels.astype(label_type(len(predicted))), values


def pack_left_out(
    left_out: Sequence[tuple[np.ndarray, np.ndarray]], num_labels: int
) -> dict[str, np.ndarray]:
    """The stored arrays of what `code` gives for each training article."""
    labels = [np.zeros(0, label_type(num_labels)), *(labels for labels, _ in left_out)]
    values = [np.zeros(0, np.uint8), *(values for _, values in left_out)]
    return {
        "left_out_offsets": np.cumsum([0, *map(len, labels[1:])]).astype(np.uint32),
        "left_out_labels": np.concatenate(labels).astype(label_type(num_labels)),
        "left_out_values": np.concatenate(values),
    }


def _unit(values: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Values scaled so that those of each row have length one."""
    length = np.sqrt(np.bincount(rows, values**2, size))
    return values / length[rows]
