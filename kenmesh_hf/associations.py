"""Fits the linear model from words to labels by ridge regression, in closed form and with exact leave-one-out."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

from kenmesh_hf.modeling.associations_kenmesh import Inputs, WordAssociations
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
    max_words: int = 8000,
    max_terms: int = 4000,
    max_weights: int = 2_000_000,
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
    """
    size = len(labels)
    words, word_df = np.unique(counts.hashes, return_counts=True)
    chosen = _most_frequent(word_df, max_words)
    free = hits.places != INSIDE
    pairs = np.unique(hits.articles[free] * num_labels + hit_labels[free])
    term_df = np.bincount(pairs % num_labels, minlength=num_labels)
    terms = _most_frequent(term_df, max_terms)
    idf = np.concatenate([np.log(size / word_df[chosen]) + 1, np.log(size / term_df[terms]) + 0.01])
    blank = WordAssociations.pack(words[chosen], terms, idf, [], np.zeros(size), np.zeros(0), num_labels)
    ridge = _Ridge(blank.inputs(counts, hits, hit_labels), blank.width)
    entries, own = ridge.fit(labels, num_labels, max_weights)
    return WordAssociations.pack(words[chosen], terms, idf, entries, ridge.leverages, own, num_labels)


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
        self.shares = self._shares()
        self.leverages = np.add.reduceat(self.shares, inputs.offsets[:-1])

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

    def _shares(self) -> np.ndarray:
        """Part of each input in its article's leverage xᵀ(XᵀX + λI)⁻¹x, which is the sum of its parts."""
        matrix = self.inverse.numpy()
        result = np.zeros(len(self.inputs.columns))
        for start, end in pairwise(self.inputs.offsets.tolist()):
            columns, values = self.inputs.columns[start:end], self.inputs.values[start:end]
            result[start:end] = values * (matrix[np.ix_(columns, columns)] @ values)
        return result

    def fit(
        self, labels: Sequence[np.ndarray], num_labels: int, most: int
    ) -> tuple[list[tuple[np.ndarray, np.ndarray, np.ndarray]], np.ndarray]:
        """Fits some labels at a time.

        Returns:
            Columns, labels and weights of the largest weights, and for each article and each label it carries
            what the model would predict had the article been left out.
        """
        owner = np.repeat(np.arange(self.size), [len(given) for given in labels])
        flat = np.concatenate(labels)
        frequency = np.bincount(flat, minlength=num_labels)
        # Frequent and rare labels mixed, so that the first ones tell which weights are large.
        known = np.random.default_rng(0).permutation(np.flatnonzero(frequency > 1))
        own = np.zeros(len(flat))
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
            # A label that only one other article carries would not have been fitted without this one.
            here = here[frequency[flat[here]] > 2]
            own[here] = self._left_out(weights, least, owner[here], place[flat[here]])
        return entries, own

    def _left_out(
        self, weights: np.ndarray, least: float, articles: np.ndarray, labels: np.ndarray
    ) -> np.ndarray:
        """Prediction for labels that articles carry, with the weights that are kept and the article left out."""
        result = np.zeros(len(articles))
        offsets = self.inputs.offsets
        for start in range(0, len(articles), 1 << 16):
            article, label = articles[start : start + (1 << 16)], labels[start : start + (1 << 16)]
            lengths = offsets[article + 1] - offsets[article]
            pair = np.repeat(np.arange(len(article)), lengths)
            place = np.arange(len(pair)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            place += np.repeat(offsets[article], lengths)
            weight = weights[self.inputs.columns[place], label[pair]]
            kept = np.abs(weight) >= least
            said = weight * self.inputs.values[place]
            full = np.bincount(pair, said, len(article))
            predicted = np.bincount(pair, said * kept, len(article))
            pull = np.bincount(pair, self.shares[place] * kept, len(article))
            result[start : start + len(article)] = predicted - pull * (1 - full) / (
                1 - self.leverages[article]
            )
        return result
