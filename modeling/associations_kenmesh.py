"""What the words of an article say about its labels: a sparse linear model over words, terms and journals."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .lexicon_kenmesh import INSIDE, Hits
from .neighbours_kenmesh import TermCounts, count_terms
from .terms_kenmesh import HashedWords

# The square root of a weight's size in seven bits, its sign in the eighth: small weights stay precise.
_STEPS = np.arange(256, dtype=np.uint8).view(np.int8) / 127
_WEIGHTS = (np.sign(_STEPS) * _STEPS**2).astype(np.float32)
# Predictions are kept between these: what is smaller says nothing, and would take most of the room.
LEAST, MOST = 0.02, 2.0
# Length of an article's inputs of each kind, in the order of their columns; the constant comes last.
KINDS = {"words": 1.0, "title_words": 0.5, "terms": 0.7, "journals": 0.5}
CONSTANT = 0.3


class Occurrences(NamedTuple):
    """One kind of what a batch of articles has: which article, which word (or term, journal), how much."""

    rows: np.ndarray
    keys: np.ndarray
    amounts: np.ndarray


class Readings(NamedTuple):
    """What the linear model reads of a batch of `size` articles, by the names of `KINDS`."""

    size: int
    words: Occurrences
    title_words: Occurrences
    terms: Occurrences
    journals: Occurrences

    @classmethod
    def of(
        cls, words: TermCounts, titles: HashedWords, hits: Hits, named: np.ndarray, journals: np.ndarray
    ) -> "Readings":
        """Collects what is known of a batch.

        Args:
            words: Words of the articles.
            titles: Words of their titles.
            hits: Terms found in them.
            named: Label of each hit.
            journals: Number of each article's journal, -1 for none.
        """
        free = hits.places != INSIDE
        stride = int(named.max(initial=0)) + 1
        pairs = np.unique(hits.articles[free].astype(np.int64) * stride + named[free])
        known = np.flatnonzero(journals >= 0)
        return cls(
            len(journals),
            _weighed(words),
            _weighed(count_terms(titles)),
            Occurrences(pairs // stride, pairs % stride, np.ones(len(pairs))),
            Occurrences(known, journals[known], np.ones(len(known))),
        )


def _weighed(counts: TermCounts) -> Occurrences:
    rows = np.repeat(np.arange(len(counts.offsets) - 1), np.diff(counts.offsets))
    return Occurrences(rows, counts.hashes, 1 + np.log(counts.counts))


class Inputs(NamedTuple):
    """Inputs of the linear model for a batch of articles: column and value of each, with offsets."""

    columns: np.ndarray
    values: np.ndarray
    offsets: np.ndarray


class WordAssociations:
    """Ridge regression from weighted words, terms and journals to labels, with its small weights left out.

    For a training article the prediction of a model that was fitted without it is stored: so it gets the
    numbers that an unseen one would get, for the labels it carries and for all others alike.

    Args:
        tensors: The arrays of `pack`, as they are stored.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.keys = {kind: tensors[kind] for kind in KINDS}
        self.idf = tensors["idf"].astype(np.float64)
        self.scales = tensors["scales"].astype(np.float64)
        self.offsets = tensors["offsets"].astype(np.int64)
        self.labels = tensors["labels"]
        self.weights = _WEIGHTS[tensors["weights"].view(np.uint8)]
        self.left_out_offsets = tensors["left_out_offsets"].astype(np.int64)
        self.left_out_labels = tensors["left_out_labels"]
        self.left_out_values = tensors["left_out_values"]
        self._sorted = {kind: np.argsort(keys, kind="stable") for kind, keys in self.keys.items()}

    def inputs(self, readings: Readings) -> Inputs:
        """A batch of articles as the model takes it."""
        size, first = readings.size, 0
        rows, columns = [np.arange(size)], [np.full(size, self.width - 1)]
        values = [np.full(size, CONSTANT)]
        for kind, norm in KINDS.items():
            row, key, amount = getattr(readings, kind)
            place, known = self._find(kind, key)
            row, column = row[known], first + place[known]
            rows.append(row)
            columns.append(column)
            values.append(norm * _unit(amount[known] * self.idf[column], row, size))
            first += len(self.keys[kind])
        row, column, value = (np.concatenate(parts) for parts in (rows, columns, values))
        order = np.argsort(row, kind="stable")
        return Inputs(column[order], value[order], np.searchsorted(row[order], np.arange(size + 1)))

    def _find(self, kind: str, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Place of each key among the known ones of its kind, and whether it is known at all."""
        known, order = self.keys[kind], self._sorted[kind]
        if not len(known):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        place = np.searchsorted(known, keys.astype(known.dtype), sorter=order)
        place = order[np.minimum(place, len(known) - 1)]
        return place, known[place] == keys

    @property
    def width(self) -> int:
        """Number of inputs: those of each kind and the constant."""
        return sum(map(len, self.keys.values())) + 1

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
        keys: Mapping[str, np.ndarray],
        idf: np.ndarray,
        entries: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
        left_out: Sequence[tuple[np.ndarray, np.ndarray]],
        num_labels: int,
    ) -> "WordAssociations":
        """Stores a fitted model.

        Args:
            keys: The inputs of each kind: hashes of words, labels of terms, numbers of journals.
            idf: Weight of each input but the constant.
            entries: Columns, labels and weights of what is kept.
            left_out: For each training article what a model fitted without it predicts, as `code` gives it.
            num_labels: Number of labels.
        """
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        column, label, weight = (np.concatenate(each) for each in zip(empty, *entries, strict=True))
        width = sum(map(len, keys.values())) + 1
        order = np.lexsort((label, column))
        column, label, weight = column[order], label[order], weight[order]
        scales = np.zeros(width)
        np.maximum.at(scales, column, np.abs(weight))
        share = weight / np.maximum(scales[column], 1e-12)
        return cls(
            {
                **keys,
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
