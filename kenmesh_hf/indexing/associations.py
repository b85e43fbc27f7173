"""Fits the linear model from words to labels: ridge regression, cross-fitted for the training articles."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from ..modeling.associations_kenmesh import KINDS, Inputs, Readings, WordAssociations, code, pack_left_out

# Labels or inputs, and articles, that are worked on at once.
_CHUNK, _ARTICLES = 1024, 1 << 16
_PENALTY = 2.0
_MIN_DOCUMENTS = 3
# The most frequent ones of each kind are inputs; time grows with the square of their number, and more.
MOST_INPUTS = {"words": 10_000, "title_words": 3000, "terms": 5000, "journals": 1500}
# Added to the logarithm of an input's rarity. A term that nearly every article has says nothing.
_LEAST_WEIGHT = {"words": 1.0, "title_words": 1.0, "terms": 0.01, "journals": 1.0}


class Weights(NamedTuple):
    """Weights that are kept: input, label and value of each."""

    columns: np.ndarray
    labels: np.ndarray
    values: np.ndarray


def build_associations(
    readings: Readings,
    labels: Sequence[np.ndarray],
    num_labels: int,
    importance: np.ndarray | None = None,
    most_inputs: Mapping[str, int] = MOST_INPUTS,
    max_weights: int = 2_000_000,
    folds: int = 3,
    progress: bool = False,
) -> WordAssociations:
    """Learns how words, terms and journals go with labels.

    Args:
        readings: What is read of the training articles.
        labels: Labels of each article.
        num_labels: Number of labels.
        importance: How much each article counts; all alike if None.
        most_inputs: How many inputs there are of each kind at most.
        max_weights: The weights that are kept: those that add most to predictions.
        folds: The articles are divided into so many parts, and an article gets the prediction of a model that
            was fitted on the other parts. A formula for leaving one article out would be cheaper, but it does
            not hold once small weights are dropped, and a network learns to exploit the difference.
        progress: Show a bar.
    """
    size = len(labels)
    keys, idf = _choose_inputs(readings, most_inputs)
    blank = WordAssociations.pack(keys, idf, [], [], num_labels)
    inputs = blank.inputs(readings)
    importance = np.ones(size) if importance is None else importance / importance.mean()
    fold = np.random.default_rng(0).integers(folds, size=size)
    left_out: list[tuple[np.ndarray, np.ndarray]] = [code(np.zeros(num_labels))] * size

    style = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"
    with tqdm(desc="Word associations", total=folds + 1, bar_format=style, disable=not progress) as bar:

        def fit(articles: np.ndarray) -> WordAssociations:
            entries: list[Weights] = []
            if len(articles):
                ridge = _Ridge(_select(inputs, articles), importance[articles], blank.width)
                given = [labels[article] for article in articles]
                for part, share in ridge.fit(given, num_labels, max_weights):
                    entries.append(part)
                    bar.update(share)
            return WordAssociations.pack(keys, idf, entries, [], num_labels)

        for number in range(folds):
            model = fit(np.flatnonzero(fold != number))
            for article in np.flatnonzero(fold == number):
                left_out[article] = code(model.predict(inputs, int(article), num_labels))
        model = fit(np.arange(size))
    return WordAssociations(model.tensors | pack_left_out(left_out, num_labels))


def _choose_inputs(readings: Readings, most: Mapping[str, int]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The inputs of each kind, ascending, and the weight of each by its rarity."""
    keys, idf = {}, []
    for kind in KINDS:
        values, frequency = np.unique(getattr(readings, kind).keys, return_counts=True)
        chosen = _most_frequent(frequency, most[kind])
        keys[kind] = values[chosen] if values.dtype == np.uint64 else values[chosen].astype(np.uint32)
        idf.append(np.log(readings.size / frequency[chosen]) + _LEAST_WEIGHT[kind])
    return keys, np.concatenate(idf)


def _select(inputs: Inputs, articles: np.ndarray) -> Inputs:
    """Inputs of some of the articles."""
    lengths = np.diff(inputs.offsets)[articles]
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    place += np.repeat(inputs.offsets[articles], lengths)
    return Inputs(inputs.columns[place], inputs.values[place], np.concatenate([[0], np.cumsum(lengths)]))


def _most_frequent(frequency: np.ndarray, most: int) -> np.ndarray:
    """Positions of the most frequent items, ascending; rare ones cannot be learned from."""
    order = np.argsort(-frequency, kind="stable")[:most]
    return np.sort(order[frequency[order] >= _MIN_DOCUMENTS])


class _Ridge:
    """Ridge regression of many labels on the same inputs X: W = (XᵀDX + λI)⁻¹ XᵀDY.

    Args:
        inputs: X, an article a row.
        importance: The diagonal of D: how much each article counts.
        width: Columns of X.
    """

    def __init__(self, inputs: Inputs, importance: np.ndarray, width: int):
        self.size, self.width = len(inputs.offsets) - 1, width
        rows = np.repeat(np.arange(self.size), np.diff(inputs.offsets))
        weighted = inputs.values * importance[rows]
        # Blocks of articles, Xᵀ and XᵀD, so that what is made dense stays small however many there are.
        self.blocks = []
        for start in range(0, self.size, _ARTICLES):
            end = min(start + _ARTICLES, self.size)
            here = slice(inputs.offsets[start], inputs.offsets[end])
            places = torch.from_numpy(np.stack([inputs.columns[here], rows[here] - start]))
            plain, heavy = (
                torch.sparse_coo_tensor(
                    places,
                    torch.from_numpy(values[here].astype(np.float32)),
                    (width, end - start),
                    check_invariants=True,
                ).coalesce()
                for values in (inputs.values, weighted)
            )
            self.blocks.append((plain, heavy))
        self.factor = self._factor()
        # How large an input is over all articles: a weight adds that much to predictions.
        squares = np.bincount(inputs.columns, inputs.values * weighted, width)
        self.spread = np.sqrt(squares / self.size)[:, None].astype(np.float32)

    def _factor(self) -> torch.Tensor:
        """Cholesky factor of XᵀDX + λI."""
        gram = torch.zeros(self.width, self.width)
        for plain, weighted in self.blocks:
            column, article = plain.indices()
            for start in range(0, self.width, _CHUNK):
                end = min(start + _CHUNK, self.width)
                here = (column >= start) & (column < end)
                some = torch.zeros(plain.shape[1], end - start)
                some[article[here], column[here] - start] = plain.values()[here]
                gram[:, start:end] += torch.sparse.mm(weighted, some)
        gram.diagonal().add_(_PENALTY)
        return torch.linalg.cholesky(gram)

    def _sums(self, owner: np.ndarray, column: np.ndarray, width: int) -> torch.Tensor:
        """XᵀDY for a Y with ones where article `owner` has label `column`."""
        total = torch.zeros(self.width, width)
        for number, (_, weighted) in enumerate(self.blocks):
            place = owner - number * _ARTICLES
            here = (place >= 0) & (place < weighted.shape[1])
            targets = torch.zeros(weighted.shape[1], width)
            targets[place[here], column[here]] = 1
            total += torch.sparse.mm(weighted, targets)
        return total

    def fit(
        self, labels: Sequence[np.ndarray], num_labels: int, most: int
    ) -> Iterator[tuple[Weights, float]]:
        """Fits some labels at a time; gives the weights that add most to predictions, and the share done."""
        owner = np.repeat(np.arange(self.size), [len(given) for given in labels])
        flat = np.concatenate(labels)
        frequency = np.bincount(flat, minlength=num_labels)
        # Frequent and rare labels mixed, so that the first ones tell which weights are large.
        known = np.random.default_rng(0).permutation(np.flatnonzero(frequency > 1))
        least = 0.0
        for start in range(0, len(known), _CHUNK):
            part = known[start : start + _CHUNK]
            place = np.full(num_labels, -1)
            place[part] = np.arange(len(part))
            here = np.flatnonzero(place[flat] >= 0)
            sums = self._sums(owner[here], place[flat[here]], len(part))
            weights = torch.cholesky_solve(sums, self.factor).numpy()
            effect = np.abs(weights) * self.spread
            if not start:
                allowed = min(max(int(most * len(part) / len(known)), 1), weights.size)
                least = max(float(np.partition(effect, -allowed, axis=None)[-allowed]), 1e-9)
            column, label = np.nonzero(effect >= least)
            yield Weights(column, part[label], weights[column, label]), len(part) / len(known)
