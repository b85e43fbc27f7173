"""Fits what words and descriptors say about the qualifiers of an article: ridge regression, cross-fitted."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..indexing import hash_texts, heading_facts, label_ids
from ..modeling.aspects_kenmesh import PARTS, SIZE, AspectModel, part_of
from ..modeling.pipeline_kenmesh import batches
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.tally_kenmesh import Tally
from ..modeling.word_counts_kenmesh import TermCounts, count_terms, hash_articles
from ..reading import Article

# Words and descriptors that are inputs, the least articles of one, and how far weights are drawn to 0.
MOST_WORDS, MOST_LABELS, LEAST_ARTICLES, PENALTY = 3500, 1000, 5, 8.0
_BATCH = 1000


class _Texts(NamedTuple):
    """A batch of articles: their words, labels, qualifiers and part, none where they are not indexed."""

    words: TermCounts
    labels: list[np.ndarray]
    qualifiers: np.ndarray
    parts: np.ndarray


def fit_aspects(processor: KenMeSHProcessor, articles: Sequence[Article]) -> AspectModel:
    """Ridge regression of all articles that tell qualifiers, and without each part of them."""
    read = list(_read(processor, articles))
    words, labels = Tally(), Tally()
    for batch in read:
        words.add(batch.words.hashes)
        for given in batch.labels:
            labels.add(given)
    (keys, idf), (chosen, _) = (
        _frequent(words, MOST_WORDS, articles),
        _frequent(labels, MOST_LABELS, articles),
    )
    fitted = len(processor.candidates.articles)
    width = len(keys) + len(chosen) + 1
    blank = AspectModel.pack(keys, idf, chosen, np.zeros((1 + PARTS, width, SIZE)), fitted)
    inputs = sp.vstack([_inputs(blank, batch) for batch in read]).tocsr()
    targets = np.concatenate([batch.qualifiers for batch in read])
    parts = np.concatenate([batch.parts for batch in read])
    # One that is not in the index could not be left out of what it was fitted to.
    known = (parts >= 0) & targets.any(1)
    weights = [_ridge(inputs, targets, known)]
    weights += [_ridge(inputs, targets, known & (parts != part)) for part in range(PARTS)]
    return AspectModel.pack(keys, idf, chosen, np.stack(weights), fitted)


def _read(processor: KenMeSHProcessor, articles: Sequence[Article]) -> Iterator[_Texts]:
    indexed = processor.candidates.articles
    for batch in batches(articles, _BATCH):
        titles, abstracts = hash_texts(batch)
        own = indexed.find([article.pmid for article in batch], hash_articles(titles, abstracts))
        parts = [int(part_of(indexed.hashes[found])[0]) if len(found) else -1 for found in own]
        labels = [label_ids(article, processor.vocabulary) for article in batch]
        given = np.zeros((len(batch), SIZE), np.float32)
        for row, (article, ids) in enumerate(zip(batch, labels, strict=True)):
            facts = heading_facts(article, ids, processor.vocabulary)
            given[row, [number for fact in facts for number, _ in fact.qualifiers]] = 1
        yield _Texts(count_terms(titles, abstracts), labels, given, np.array(parts, np.int64))


def _frequent(tally: Tally, most: int, articles: Sequence[Article]) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent keys, ascending, and how rare each is."""
    keys, counts = tally.result()
    order = np.argsort(-counts, kind="stable")[:most]
    order = np.sort(order[counts[order] >= LEAST_ARTICLES])
    return keys[order], np.log(max(len(articles), 1) / counts[order]) + 0.5


def _inputs(model: AspectModel, batch: _Texts) -> sp.csr_matrix:
    size = len(batch.labels)
    rows = np.repeat(np.arange(size), [len(given) for given in batch.labels])
    labels = np.concatenate(batch.labels)
    words = [batch.words.of(row) for row in range(size)]
    found = model.inputs(words, rows, labels, np.ones(len(labels)))
    return sp.csr_matrix((found.values, (found.rows, found.columns)), (size, model.width))


def _ridge(inputs: sp.csr_matrix, targets: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Weights of all inputs for all qualifiers, fitted to some of the articles."""
    rows, wanted = inputs[chosen], targets[chosen]
    gram = (rows.T @ rows).toarray() + np.eye(rows.shape[1]) * PENALTY
    return scipy.linalg.solve(gram, rows.T @ wanted, assume_a="pos")
