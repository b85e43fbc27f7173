"""What the words of an article say about its labels: a sparse linear model over words, terms and journals."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .lexicon_kenmesh import INSIDE, Hits
from .tensors_kenmesh import id_type
from .word_counts_kenmesh import TermCounts, places_of

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
        cls, words: TermCounts, titles: TermCounts, hits: Hits, named: np.ndarray, journals: np.ndarray
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
            _weighed(titles),
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


class Weights(NamedTuple):
    """Weights from inputs to labels: input, label and value of each."""

    columns: np.ndarray
    labels: np.ndarray
    values: np.ndarray


class LinearModel:
    """Weights of a linear model, those of each input together, in three bytes each.

    Args:
        tensors: The arrays of `pack`, as they are stored.
    """

    ARRAYS = ("scales", "offsets", "labels", "weights")

    def __init__(self, tensors: Mapping[str, np.ndarray]):
        self.tensors = {name: tensors[name] for name in self.ARRAYS}
        self.scales = tensors["scales"].astype(np.float64)
        self.offsets = tensors["offsets"].astype(np.int64)
        self.labels = tensors["labels"]
        self.coded = tensors["weights"].view(np.uint8)

    @classmethod
    def pack(cls, weights: Weights, width: int, num_labels: int) -> "LinearModel":
        """Stores the weights of a model of so many inputs."""
        order = np.lexsort((weights.labels, weights.columns))
        column, label, value = (part[order] for part in weights)
        scales = np.zeros(width)
        np.maximum.at(scales, column, np.abs(value))
        share = value / np.maximum(scales[column], 1e-12)
        return cls(
            {
                "scales": scales.astype(np.float32),
                "offsets": np.searchsorted(column, np.arange(width + 1)).astype(np.uint32),
                "labels": label.astype(id_type(num_labels)),
                "weights": np.round(np.sign(share) * np.sqrt(np.abs(share)) * 127).astype(np.int8),
            }
        )

    def unpack(self) -> Weights:
        """The weights as they are used."""
        columns = np.repeat(np.arange(len(self.scales)), np.diff(self.offsets))
        return Weights(columns, self.labels, _WEIGHTS[self.coded] * self.scales[columns])

    def predict(self, columns: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
        """What inputs of one article say about each of `size` labels, about 0 to 1."""
        starts, ends = self.offsets[columns], self.offsets[columns + 1]
        spans = [slice(*pair) for pair in zip(starts.tolist(), ends.tolist(), strict=True)]
        labels = np.concatenate([self.labels[span] for span in spans])
        weights = _WEIGHTS[np.concatenate([self.coded[span] for span in spans])]
        predicted = np.bincount(
            labels, weights * np.repeat(values * self.scales[columns], ends - starts), size
        )
        return _bounded(predicted)

    def weights_of(self, columns: np.ndarray, labels: np.ndarray, size: int) -> np.ndarray:
        """Weights of inputs for some of `size` labels, `(inputs, labels)`."""
        place = np.full(size, -1)
        place[labels] = np.arange(len(labels))
        entries, lengths = places_of(self.offsets, columns)
        row, label = np.repeat(np.arange(len(columns)), lengths), place[self.labels[entries]]
        wanted = np.flatnonzero(label >= 0)
        weights = np.zeros((len(columns), len(labels)))
        coded = self.coded[entries[wanted]]
        weights[row[wanted], label[wanted]] = _WEIGHTS[coded] * self.scales[columns[row[wanted]]]
        return weights


class WordAssociations:
    """Ridge regression from weighted words, terms and journals to labels, with its small weights left out.

    The training articles were divided into parts, and for each part there is a model that was fitted without
    it. A training article gets the prediction of that one: the numbers that an unseen article would get, for
    the labels it carries and for all others alike.

    Args:
        tensors: The arrays of `pack`, as they are stored.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.keys = {kind: tensors[kind] for kind in KINDS}
        self.idf = tensors["idf"].astype(np.float64)
        self.model = LinearModel(tensors)
        self.parts = [LinearModel(_part(tensors, number)) for number in range(_count_parts(tensors))]
        self.part_of = tensors.get("part_of", np.zeros(0, np.uint8))
        self.stored = StoredPredictions(tensors) if "left_out_offsets" in tensors else None
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

    def predict(self, inputs: Inputs, article: int, size: int, own: Collection[int] = ()) -> np.ndarray:
        """What the words of one article of a batch say about each of `size` labels, about 0 to 1.

        Args:
            inputs: Of the batch.
            article: Its place there.
            size: Number of labels.
            own: The indexed articles that are this article itself; what was learned from them does not count.
        """
        if len(own) and self.stored is not None:
            if (stored := self.stored.least(own, size)) is not None:
                return stored
        span = slice(inputs.offsets[article], inputs.offsets[article + 1])
        if span.stop - span.start == 1:  # nothing but the constant: the words say nothing
            return np.zeros(size)
        columns, values = inputs.columns[span], inputs.values[span]
        models = self._without(own) or [self.model]
        return np.min([model.predict(columns, values, size) for model in models], axis=0)

    def predict_variants(
        self,
        given: Mapping[str, tuple[np.ndarray, np.ndarray]],
        labels: np.ndarray,
        size: int,
        own: Collection[int] = (),
    ) -> np.ndarray | None:
        """What the words of variants of one article say about some labels, `(labels, variants)`.

        Args:
            given: By the names of `KINDS` the keys of what it has, and the amount of each in each variant.
            labels: The labels.
            size: Number of all labels.
            own: As for `predict`.

        Returns:
            None if only the prediction for the article itself is known.
        """
        if len(own) and self.stored is not None and self.stored.least(own, size) is not None:
            return None
        first, columns, values = 0, [], []
        for kind, norm in KINDS.items():
            keys, amounts = given[kind]
            place, known = self._find(kind, keys)
            column = first + place[known]
            value = amounts[known] * self.idf[column][:, None]
            columns.append(column)
            values.append(norm * value / np.maximum(np.sqrt((value**2).sum(0)), 1e-12))
            first += len(self.keys[kind])
        something = sum(value.sum(0) for value in values) > 0
        columns.append(np.array([self.width - 1]))
        values.append(np.full((1, len(something)), CONSTANT))
        inputs, amounts = np.concatenate(columns), np.concatenate(values)
        models = self._without(own) or [self.model]
        predicted = np.min([model.weights_of(inputs, labels, size).T @ amounts for model in models], axis=0)
        return _bounded(predicted * something)

    def _without(self, own: Collection[int]) -> list[LinearModel]:
        """The models that were fitted without articles; none for articles that had no part in the fit."""
        return [self.parts[part] for part in {int(self.part_of[n]) for n in own if n < len(self.part_of)}]

    def slim(self, most: int) -> "WordAssociations":
        """The same with the largest weights only of what was fitted without a part, for sharing.

        Training needs all of them; what is left still keeps an indexed article from meeting itself.
        """
        tensors = dict(self.tensors)
        for number, model in enumerate(self.parts):
            weights = model.unpack()
            largest = np.sort(np.argsort(-np.abs(weights.values), kind="stable")[:most])
            kept = LinearModel.pack(
                Weights(*(part[largest] for part in weights)), self.width, int(tensors["num_labels"][0])
            )
            tensors |= _name_part(kept, number)
        return WordAssociations(tensors)

    @classmethod
    def pack(
        cls,
        keys: Mapping[str, np.ndarray],
        idf: np.ndarray,
        model: LinearModel,
        num_labels: int,
        parts: Sequence[LinearModel] = (),
        part_of: np.ndarray | None = None,
    ) -> "WordAssociations":
        """Puts together what was fitted.

        Args:
            keys: The inputs of each kind: hashes of words, labels of terms, numbers of journals.
            idf: Weight of each input but the constant.
            model: Fitted on all training articles.
            num_labels: Number of labels.
            parts: For each part of the training articles the model that was fitted without it.
            part_of: The part of each training article.
        """
        tensors = {**keys, "idf": idf.astype(np.float32), **model.tensors}
        for number, without in enumerate(parts):
            tensors |= _name_part(without, number)
        if part_of is not None:
            tensors["part_of"] = part_of.astype(np.uint8)
        return cls(tensors | {"num_labels": np.array([num_labels], np.int64)})


def _name_part(model: LinearModel, number: int) -> dict[str, np.ndarray]:
    return {f"part{number}.{name}": array for name, array in model.tensors.items()}


def _part(tensors: Mapping[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    return {name: tensors[f"part{number}.{name}"] for name in LinearModel.ARRAYS}


def _count_parts(tensors: Mapping[str, np.ndarray]) -> int:
    return sum(name.startswith("part") and name.endswith(".scales") for name in tensors)


class StoredPredictions:
    """What version 0.1 stored instead of the models of parts: the prediction for each training article.

    Args:
        tensors: The arrays of that version.
    """

    def __init__(self, tensors: Mapping[str, np.ndarray]):
        self.offsets = tensors["left_out_offsets"].astype(np.int64)
        self.labels = tensors["left_out_labels"]
        self.values = tensors["left_out_values"]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def least(self, articles: Collection[int], size: int) -> np.ndarray | None:
        """The least that is stored of articles for each label; None if nothing is: they joined later."""
        rows = []
        for number in articles:
            if number < len(self):
                span = slice(self.offsets[number], self.offsets[number + 1])
                rows.append(np.zeros(size))
                rows[-1][self.labels[span]] = MOST * (self.values[span] / 255.0) ** 2
        return np.min(rows, axis=0) if rows else None


def _bounded(predicted: np.ndarray) -> np.ndarray:
    """Predictions between the least and the most that is kept, in their place."""
    np.minimum(predicted, MOST, out=predicted)
    predicted *= predicted >= LEAST
    return predicted


def _unit(values: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Values scaled so that those of each row have length one."""
    length = np.sqrt(np.bincount(rows, values**2, size))
    return values / length[rows]
