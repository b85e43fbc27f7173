"""What the words and tags of an article say about its qualifiers: a small linear model."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .heading_table_kenmesh import QUALIFIERS

SIZE = len(QUALIFIERS)
# Length of an article's words and of its tags as inputs; the constant comes last.
WORDS, TAGS, CONSTANT = 1.0, 0.7, 0.3
# The articles were divided into so many parts, by their texts, and each has a model fitted without it.
PARTS = 2


class AspectInputs(NamedTuple):
    """Inputs of a batch of articles: article, column and value of each."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class AspectModel:
    """Ridge regression from words and tags to the qualifiers that an article has anywhere.

    An article that the model was fitted on gets what was fitted without its part of the articles.

    Args:
        tensors: `words` (hashes, ascending) and their `idf`; `labels`, ascending; `weights` in whole numbers,
            `(1 + parts, inputs, qualifiers)`, and the `scales` of each input; `fitted`, how many articles
            the index had then.
    """

    ARRAYS = ("words", "idf", "labels", "weights", "scales", "fitted")

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = {name: tensors[name] for name in self.ARRAYS}
        self.words, self.labels = tensors["words"], tensors["labels"].astype(np.int64)
        self.idf = tensors["idf"].astype(np.float32)
        self.weights, self.scales = tensors["weights"], tensors["scales"]
        self.fitted = int(tensors["fitted"][0])

    @classmethod
    def pack(
        cls,
        words: np.ndarray,
        idf: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray,
        fitted: int,
    ) -> "AspectModel":
        """Stores weights, those of the whole and of each part, a byte each."""
        scales = np.maximum(np.abs(weights).max(-1), 1e-9) / 127
        return cls(
            {
                "words": words,
                "idf": idf.astype(np.float16),
                "labels": labels.astype(np.uint32),
                "weights": np.round(weights / scales[..., None]).astype(np.int8),
                "scales": scales.astype(np.float32),
                "fitted": np.array([fitted], np.int64),
            }
        )

    @property
    def width(self) -> int:
        """Number of inputs: words, labels and the constant."""
        return len(self.words) + len(self.labels) + 1

    def inputs(
        self,
        words: Sequence[tuple[np.ndarray, np.ndarray]],
        rows: np.ndarray,
        labels: np.ndarray,
        scores: np.ndarray,
    ) -> AspectInputs:
        """A batch of articles as the model takes it.

        Args:
            words: Hashes of each article's words, and how often they stand there.
            rows: The article of each tag.
            labels: The tag's label.
            scores: How likely it is right.
        """
        size = len(words)
        row = np.repeat(np.arange(size), [len(hashes) for hashes, _ in words])
        hashes, counts = (np.concatenate([part[kind] for part in words]) for kind in (0, 1))
        place, known = _find(self.words, hashes)
        row, place, counts = row[known], place[known], counts[known]
        amounts = (1 + np.log(counts)) * self.idf[place]
        column, given = _find(self.labels, labels)
        parts = (
            (row, place, WORDS * _unit(amounts, row, size)),
            (rows[given], len(self.words) + column[given], TAGS * _unit(scores[given], rows[given], size)),
            (np.arange(size), np.full(size, self.width - 1), np.full(size, CONSTANT)),
        )
        return AspectInputs(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def predict(self, inputs: AspectInputs, own: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """What they say about each qualifier, about 0 to 1, `(articles, qualifiers)`.

        Args:
            inputs: Of the batch.
            own: The indexed articles that each article itself is, by number, and the hashes of their texts.
        """
        order = np.argsort(inputs.rows, kind="stable")
        rows, columns, values = (part[order] for part in inputs)
        bounds = np.searchsorted(rows, np.arange(len(own) + 1))
        predicted = np.zeros((len(own), SIZE), np.float32)
        for row, (numbers, hashes) in enumerate(own):
            span = slice(bounds[row], bounds[row + 1])
            # Twins in the index may be in different parts; the least that is said without them counts.
            models = self.models(numbers, hashes)
            predicted[row] = np.min(
                [self._predict(model, columns[span], values[span]) for model in models], axis=0
            )
        return predicted

    def models(self, numbers: np.ndarray, hashes: np.ndarray) -> list[int]:
        """The whole model, or those fitted without the parts of these indexed articles."""
        return sorted({*(part_of(hashes[numbers < self.fitted]) + 1).tolist()}) or [0]

    def _predict(self, model: int, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        amounts = (values * self.scales[model, columns]).astype(np.float32)
        return amounts @ self.weights[model, columns].astype(np.float32)

    def carried(self, new_labels: np.ndarray) -> "AspectModel":
        """The same over other labels; `new_labels` has the new one of each, -1 where there is none."""
        labels = new_labels[self.labels]
        kept = np.flatnonzero(labels >= 0)
        kept = kept[np.unique(labels[kept], return_index=True)[1]]
        words, last = np.arange(len(self.words)), np.array([self.width - 1])
        columns = np.concatenate([words, len(words) + kept, last])
        return AspectModel(
            self.tensors
            | {"labels": labels[kept].astype(np.uint32)}
            | {name: self.tensors[name][:, columns] for name in ("weights", "scales")}
        )


def part_of(hashes: np.ndarray) -> np.ndarray:
    """The part of the articles that those of these hashes are in."""
    return (hashes % np.uint64(PARTS)).astype(np.int64)


def _find(known: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place of each key among the known ones, which ascend, and whether it is there."""
    if not len(known):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(known, keys.astype(known.dtype)), len(known) - 1)
    return place, known[place] == keys


def _unit(amounts: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Amounts of each article scaled to length 1."""
    lengths = np.sqrt(np.bincount(rows, amounts**2, size))
    return amounts / np.maximum(lengths[rows], 1e-12)
