"""Fits the linear model from words to labels: ridge regression, cross-fitted for the training articles."""

from collections.abc import Sequence

import numpy as np
import torch

from kenmesh_hf.modeling.associations_kenmesh import Inputs, WordAssociations, code
from kenmesh_hf.modeling.lexicon_kenmesh import INSIDE, Hits
from kenmesh_hf.modeling.neighbours_kenmesh import TermCounts

_CHUNK = 1024
_PENALTY = 2.0
_MIN_DOCUMENTS = 3


def build_associations(
    counts: TermCounts,
    hits: Hits,
    hit_labels: np.ndarray,
    labels: Sequence[np.ndarray],
    num_labels: int,
    max_words: int = 6000,
    max_terms: int = 2500,
    max_weights: int = 2_000_000,
    folds: int = 3,
) -> WordAssociations:
    """Learns how words and terms go with labels.

    Args:
        counts: Words of the training articles.
        hits: Terms found in them.
        hit_labels: Label of each hit.
        labels: Labels of each article.
        num_labels: Number of labels.
        max_words: The most frequent words that are inputs; time grows with the cube of inputs.
        max_terms: The most frequent descriptors whose terms are inputs.
        max_weights: The largest weights that are kept.
        folds: The articles are divided into so many parts, and an article gets the prediction of a model that
            was fitted on the other parts. A formula for leaving one article out would be cheaper, but it does
            not hold once small weights are dropped, and a network learns to exploit the difference.
    """
    size = len(labels)
    words, word_df = np.unique(counts.hashes, return_counts=True)
    chosen = _most_frequent(word_df, max_words)
    free = hits.places != INSIDE
    pairs = np.unique(hits.articles[free] * num_labels + hit_labels[free])
    term_df = np.bincount(pairs % num_labels, minlength=num_labels)
    terms = _most_frequent(term_df, max_terms)
    idf = np.concatenate([np.log(size / word_df[chosen]) + 1, np.log(size / term_df[terms]) + 0.01])
    blank = WordAssociations.pack(words[chosen], terms, idf, [], [], num_labels)
    inputs = blank.inputs(counts, hits, hit_labels)
    fold = np.random.default_rng(0).integers(folds, size=size)
    left_out: list[tuple[np.ndarray, np.ndarray]] = [code(np.zeros(num_labels))] * size
    for number in range(folds):
        entries = _fit(inputs, np.flatnonzero(fold != number), labels, blank.width, num_labels, max_weights)
        model = WordAssociations.pack(words[chosen], terms, idf, entries, [], num_labels)
        for article in np.flatnonzero(fold == number):
            left_out[article] = code(model.predict(inputs, int(article), num_labels))
    entries = _fit(inputs, np.arange(size), labels, blank.width, num_labels, max_weights)
    return WordAssociations.pack(words[chosen], terms, idf, entries, left_out, num_labels)


def _fit(
    inputs: Inputs,
    articles: np.ndarray,
    labels: Sequence[np.ndarray],
    width: int,
    num_labels: int,
    max_weights: int,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Columns, labels and weights of a model of some of the articles."""
    if not len(articles):
        return []
    lengths = np.diff(inputs.offsets)[articles]
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    place += np.repeat(inputs.offsets[articles], lengths)
    some = Inputs(inputs.columns[place], inputs.values[place], np.concatenate([[0], np.cumsum(lengths)]))
    return _Ridge(some, width).fit([labels[article] for article in articles], num_labels, max_weights)


def _most_frequent(frequency: np.ndarray, most: int) -> np.ndarray:
    """Positions of the most frequent items, ascending; rare ones cannot be learned from."""
    order = np.argsort(-frequency, kind="stable")[:most]
    return np.sort(order[frequency[order] >= _MIN_DOCUMENTS])


class _Ridge:
    """Ridge regression of many labels on the same inputs X: W = (XᵀX + λI)⁻¹ XᵀY."""

    def __init__(self, inputs: Inputs, width: int):
        self.inputs = inputs
        self.size = len(inputs.offsets) - 1
        rows = np.repeat(np.arange(self.size), np.diff(inputs.offsets))
        places = torch.from_numpy(np.stack([inputs.columns, rows]))
        values = torch.from_numpy(inputs.values.astype(np.float32))
        self.transposed = torch.sparse_coo_tensor(
            places, values, (width, self.size), check_invariants=True
        ).coalesce()
        self.inverse = self._inverse()

    def _inverse(self) -> torch.Tensor:
        width = self.transposed.shape[0]
        column, article = self.transposed.indices()
        gram = torch.empty(width, width)
        for start in range(0, width, _CHUNK):
            here = (column >= start) & (column < start + _CHUNK)
            block = torch.zeros(self.size, min(_CHUNK, width - start))
            block[article[here], column[here] - start] = self.transposed.values()[here]
            gram[:, start : start + _CHUNK] = torch.sparse.mm(self.transposed, block)
        gram.diagonal().add_(_PENALTY)
        return torch.cholesky_inverse(torch.linalg.cholesky(gram))

    def fit(
        self, labels: Sequence[np.ndarray], num_labels: int, most: int
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Columns, labels and weights of the largest weights, fitted for some labels at a time."""
        owner = np.repeat(np.arange(self.size), [len(given) for given in labels])
        flat = np.concatenate(labels)
        frequency = np.bincount(flat, minlength=num_labels)
        # Frequent and rare labels mixed, so that the first ones tell which weights are large.
        known = np.random.default_rng(0).permutation(np.flatnonzero(frequency > 1))
        entries = []
        least = 0.0
        for start in range(0, len(known), _CHUNK):
            part = known[start : start + _CHUNK]
            place = np.full(num_labels, -1)
            place[part] = np.arange(len(part))
            here = np.flatnonzero(place[flat] >= 0)
            targets = torch.zeros(self.size, len(part))
            targets[owner[here], place[flat[here]]] = 1
            weights = (self.inverse @ torch.sparse.mm(self.transposed, targets)).numpy()
            if not start:
                allowed = min(max(int(most * len(part) / len(known)), 1), weights.size)
                least = max(float(np.partition(np.abs(weights), -allowed, axis=None)[-allowed]), 1e-6)
            column, label = np.nonzero(np.abs(weights) >= least)
            entries.append((column, part[label], weights[column, label]))
        return entries
