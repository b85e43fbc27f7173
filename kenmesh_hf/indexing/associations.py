"""Fits the linear model from words to labels: ridge regression, cross-fitted for the training articles."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from tqdm.auto import tqdm

from ..modeling.associations_kenmesh import KINDS, Inputs, LinearModel, Readings, Weights, WordAssociations
from ..modeling.tally_kenmesh import Tally

# Labels, and articles, that are worked on at once; and numbers of what is solved at once.
_LABELS, _ARTICLES, _CELLS = 128, 2048, 1 << 20
_PENALTY = 2.0
_MIN_DOCUMENTS = 3
# The most frequent ones of each kind are inputs; memory grows with the square of their number.
MOST_INPUTS = {"words": 10_000, "title_words": 3000, "terms": 5000, "journals": 1500}
# Fewer articles than this cannot teach so many: they have as many inputs fewer, but some of each kind.
_ALL_INPUTS_FROM, _SOME_INPUTS = 15_000, 500
# Added to the logarithm of an input's rarity. A term that nearly every article has says nothing.
_LEAST_WEIGHT = {"words": 1.0, "title_words": 1.0, "terms": 0.01, "journals": 1.0}
# Inputs that a label is fitted to: those that tell most about it when looked at alone. A label of many
# articles can use more of them.
_FEWEST, _MOST = 32, 1024


def build_associations(
    readings: Iterable[Readings],
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
        readings: What is read of the training articles, some at a time; gone through twice.
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
    keys, idf = _choose_inputs(readings, size, most_inputs)
    nothing = Weights(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    width = len(idf) + 1
    blank = WordAssociations.pack(keys, idf, LinearModel.pack(nothing, width, num_labels), num_labels)
    ridge = _Ridge(_gather(map(blank.inputs, readings)), width, labels, num_labels)
    importance = np.ones(size) if importance is None else importance / importance.mean()
    part_of = np.random.default_rng(0).integers(folds, size=size)
    style = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"
    with tqdm(desc="Word associations", total=folds + 1, bar_format=style, disable=not progress) as bar:
        parts = [
            ridge.fit(importance * (part_of != number), max_weights, bar.update) for number in range(folds)
        ]
        model = ridge.fit(importance, max_weights, bar.update)
    return WordAssociations.pack(keys, idf, model, num_labels, parts, part_of)


def _choose_inputs(
    readings: Iterable[Readings], size: int, most: Mapping[str, int]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The inputs of each kind, ascending, and the weight of each by its rarity."""
    tallies = {kind: Tally() for kind in KINDS}
    for part in readings:
        for kind, tally in tallies.items():
            tally.add(getattr(part, kind).keys)
    keys, idf = {}, []
    for kind, tally in tallies.items():
        values, frequency = tally.result()
        fair = max(_SOME_INPUTS, most[kind] * size // _ALL_INPUTS_FROM)
        chosen = _most_frequent(frequency, min(most[kind], fair))
        keys[kind] = values[chosen] if values.dtype == np.uint64 else values[chosen].astype(np.uint32)
        idf.append(np.log(size / frequency[chosen]) + _LEAST_WEIGHT[kind])
    return keys, np.concatenate(idf)


def _most_frequent(frequency: np.ndarray, most: int) -> np.ndarray:
    """Positions of the most frequent items, ascending; rare ones cannot be learned from."""
    order = np.argsort(-frequency, kind="stable")[:most]
    return np.sort(order[frequency[order] >= _MIN_DOCUMENTS])


def _gather(inputs: Iterable[Inputs]) -> Inputs:
    """Inputs of all articles, in few bytes each."""
    columns, values, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)], [np.zeros(1, np.int64)]
    for part in inputs:
        columns.append(part.columns.astype(np.int32))
        values.append(part.values.astype(np.float32))
        lengths.append(np.diff(part.offsets))
    return Inputs(np.concatenate(columns), np.concatenate(values), np.cumsum(np.concatenate(lengths)))


class _Ridge:
    """Ridge regression of many labels on the same inputs X, a label on few of them: w = (XᵀDX + λI)⁻¹ XᵀDy.

    Fitted to all inputs a label costs as much as thousands fitted to those that have to do with it, and what
    is gained are small weights, which are not kept.

    Args:
        inputs: X, an article a row.
        width: Columns of X.
        labels: Labels of each article.
        num_labels: Number of labels.
    """

    def __init__(self, inputs: Inputs, width: int, labels: Sequence[np.ndarray], num_labels: int):
        self.size, self.num_labels = len(labels), num_labels
        self.inputs = sp.csr_matrix((inputs.values, inputs.columns, inputs.offsets), (self.size, width))
        self.transposed = self.inputs.T.tocsr()
        # By far the largest array, so there is one for all fits.
        self.gram = np.empty((width, width), np.float32)
        self.labels = np.concatenate([np.zeros(0, np.int64), *labels])
        self.owners = np.repeat(np.arange(self.size), [len(given) for given in labels])

    def fit(self, importance: np.ndarray, max_weights: int, report: Callable[[float], object]) -> LinearModel:
        """Fits every label that two articles carry; articles count by their importance, the diagonal of D."""
        gram = self._fill_gram(importance)
        counted = importance[self.owners] > 0
        labels, owners = self.labels[counted], self.owners[counted]
        frequency = np.bincount(labels, minlength=self.num_labels)
        order = np.argsort(frequency, kind="stable")
        order = order[frequency[order] > 1]
        given = sp.csc_matrix(
            (importance[owners].astype(np.float32), (owners, labels)), (self.size, self.num_labels)
        )
        spread = np.sqrt(gram.diagonal() / max(importance.sum(), 1)).astype(np.float32)
        sums = self.transposed @ importance.astype(np.float32)
        found = []
        for start in range(0, len(order), _LABELS):
            chosen = order[start : start + _LABELS]
            # An article's inputs, summed over the articles of each label: XᵀDY.
            together = (self.transposed @ given[:, chosen]).toarray().T
            share = together[:, -1:] / max(sums[-1], 1e-9)
            telling = np.abs(together - share * sums) * (spread / (gram.diagonal() + _PENALTY))
            found.append(_solve(gram, together, telling, _inputs_for(int(frequency[chosen].max()))))
            found[-1] = found[-1]._replace(labels=chosen[found[-1].labels])
            report(len(chosen) / len(order))
        return LinearModel.pack(_heaviest(found, spread, max_weights), gram.shape[0], self.num_labels)

    def _fill_gram(self, importance: np.ndarray) -> np.ndarray:
        """XᵀDX, dense; both factors are sparse, so a block of articles at a time is added to it."""
        self.gram.fill(0)
        width, flat = len(self.gram), self.gram.reshape(-1)
        rows = np.flatnonzero(importance)
        for start in range(0, len(rows), _ARTICLES):
            chosen = rows[start : start + _ARTICLES]
            block = self.inputs[chosen]
            weighted = block.multiply(importance[chosen, None].astype(np.float32)).tocsr()
            product = (block.T.tocsr() @ weighted).tocsr()
            row = np.repeat(np.arange(width, dtype=np.int64) * width, np.diff(product.indptr))
            flat[row + product.indices] += product.data
        return self.gram


def _inputs_for(articles: int) -> int:
    """How many inputs a label of so many articles is fitted to."""
    return min(_FEWEST << (articles.bit_length() - 1) // 2, _MOST)


def _solve(gram: np.ndarray, together: np.ndarray, telling: np.ndarray, most: int) -> Weights:
    """Fits labels to the most telling inputs of each and the constant; labels are numbered as their rows."""
    width = len(gram)
    telling[:, -1] = np.inf
    most = min(most, width)
    chosen = np.sort(np.argpartition(telling, width - most, axis=1)[:, width - most :], axis=1)
    columns, right = torch.from_numpy(chosen), torch.from_numpy(np.take_along_axis(together, chosen, axis=1))
    table, values, some = torch.from_numpy(gram), torch.empty_like(right), max(1, _CELLS // most**2)
    for here, sums, solved in zip(*(part.split(some) for part in (columns, right, values)), strict=True):
        square = table[here[:, :, None], here[:, None, :]]
        square.diagonal(dim1=1, dim2=2).add_(_PENALTY)
        solved.copy_(torch.cholesky_solve(sums[:, :, None], torch.linalg.cholesky(square))[:, :, 0])
    labels = np.repeat(np.arange(len(chosen)), most)
    return Weights(chosen.ravel().astype(np.int32), labels, values.numpy().ravel())


def _heaviest(found: Sequence[Weights], spread: np.ndarray, most: int) -> Weights:
    """The weights that add most to predictions: an input counts by how large it is over all articles."""
    empty = Weights(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.float32))
    weights = Weights(*(np.concatenate(parts) for parts in zip(empty, *found, strict=True)))
    effect = np.abs(weights.values) * spread[weights.columns]
    if len(effect) <= most:
        return weights
    kept = np.argpartition(effect, len(effect) - most)[len(effect) - most :]
    return Weights(*(part[kept] for part in weights))
