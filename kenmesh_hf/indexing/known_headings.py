"""Lets the index of a model know the headings of its articles, where it knows only their descriptors."""

import copy
from collections.abc import Iterable

import numpy as np

from ..modeling.heading_table_kenmesh import HeadingFacts, HeadingTable
from ..modeling.indexed_articles_kenmesh import IndexedArticles
from ..modeling.pipeline_kenmesh import batches
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.word_counts_kenmesh import hash_articles
from ..reading import Article
from .articles import hash_texts, heading_facts

_BATCH = 2000


def know_headings(processor: KenMeSHProcessor, articles: Iterable[Article]) -> tuple[KenMeSHProcessor, int]:
    """Tells the index which headings are major and which qualifiers they have; labels stay as they are.

    Args:
        processor: With candidates and vocabulary; it stays as it is.
        articles: Articles of the index, known by PMID or text; others are passed over.

    Returns:
        A processor whose index knows the headings, and of how many of its articles.
    """
    indexed = processor.candidates.articles
    lists = indexed.label_lists()
    facts: list[list[HeadingFacts]] = [[HeadingFacts()] * len(labels) for labels in lists]
    found = set()
    for batch in batches(articles, _BATCH):
        own = indexed.find([article.pmid for article in batch], hash_articles(*hash_texts(batch)))
        for article, numbers in zip(batch, own, strict=True):
            for number in numbers.tolist():
                labels = lists[number].astype(np.int64)
                facts[number] = heading_facts(article, labels, processor.vocabulary)
                found.add(number)
    table = HeadingTable.build(facts)
    if indexed.headings is not None:
        table = _replaced(indexed, indexed.headings, table, np.array(sorted(found), np.int64))
    candidates = copy.copy(processor.candidates)
    candidates.articles = indexed.with_headings(table)
    return processor.with_parts(candidates=candidates), len(found)


def _replaced(
    indexed: IndexedArticles, old: HeadingTable, new: HeadingTable, articles: np.ndarray
) -> HeadingTable:
    """The old table with what the new one says of some articles."""
    is_new = np.zeros(len(indexed), bool)
    is_new[articles] = True
    owner = np.repeat(np.arange(len(indexed)), np.diff(indexed.offsets))
    chosen = np.arange(len(indexed)) + len(indexed) * is_new
    headings = np.arange(len(indexed.labels)) + len(indexed.labels) * is_new[owner]
    return HeadingTable.join([old, new]).select(chosen, headings)
