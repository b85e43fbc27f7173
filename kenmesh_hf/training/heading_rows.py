"""The rows that whole headings are learned from: numbers of right tags, and what their headings are."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from tqdm.auto import tqdm

from ..indexing import heading_facts, label_ids
from ..modeling.aspects_kenmesh import AspectModel
from ..modeling.heading_counts_kenmesh import Tags
from ..modeling.heading_numbers_kenmesh import HeadingNumbers
from ..modeling.headings_kenmesh import aspects_of
from ..modeling.pipeline_kenmesh import batches
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..reading import Article

BATCH = 64


def sample_articles(
    articles: Iterable[Article], wanted: Callable[[Article], bool], most: int, seed: int = 0
) -> list[Article]:
    """At most so many of the articles that are wanted, at random, whose texts alone are held."""
    draw, kept, met = random.Random(seed), list[Article](), 0
    for article in articles:
        if not wanted(article):
            continue
        met += 1
        if len(kept) < most:
            kept.append(article)
        elif (place := draw.randrange(met)) < most:
            kept[place] = article
    return kept


def tells_majors(article: Article) -> bool:
    """Whether an article says which of its headings are major: at least one is."""
    return any(heading.major for heading in article.headings)


def tells_qualifiers(article: Article) -> bool:
    """Whether an article says which qualifiers its headings have: at least one has any."""
    return any(heading.qualifiers for heading in article.headings)


class HeadingRows(NamedTuple):
    """What is learned from.

    Attributes:
        tags: Numbers of tags whose article tells majors.
        major: Whether each is major.
        pairs: Numbers of tags with a qualifier whose article tells qualifiers.
        qualifiers: The qualifier.
        qualified: Whether the tag has it.
        starred: Whether it is major there.
    """

    tags: np.ndarray
    major: np.ndarray
    pairs: np.ndarray
    qualifiers: np.ndarray
    qualified: np.ndarray
    starred: np.ndarray


def heading_rows(
    processor: KenMeSHProcessor,
    numbers: HeadingNumbers,
    aspects: AspectModel,
    articles: Sequence[Article],
    progress: bool = False,
) -> HeadingRows:
    """Numbers of the right tags of articles that are candidates, with what their headings are."""
    columns = []
    with tqdm(total=len(articles), desc="Headings", unit=" articles", disable=not progress) as bar:
        for batch in batches(articles, BATCH):
            columns.append(_rows(processor, numbers, aspects, batch))
            bar.update(len(batch))
    return HeadingRows(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _rows(
    processor: KenMeSHProcessor, numbers: HeadingNumbers, aspects: AspectModel, batch: Sequence[Article]
) -> HeadingRows:
    candidates, vocabulary = processor.candidates, processor.vocabulary
    inputs = [article.as_input() for article in batch]
    fields = [[row[name] for row in inputs] for name in ("title", "abstract", "journal", "pmid")]
    found = candidates(*fields, keep_neighbours=True)
    proposed = list(found.split())
    right = [label_ids(article, vocabulary) for article in batch]
    right = [labels[np.isin(labels, ids)] for labels, (ids, _) in zip(right, proposed, strict=True)]
    facts = [fact for pair in zip(batch, right, strict=True) for fact in heading_facts(*pair, vocabulary)]
    tags = Tags.of(right, proposed, candidates.ranker)
    told = np.array([(tells_majors(article), tells_qualifiers(article)) for article in batch])[tags.rows]
    words = aspects_of(aspects, numbers, tags, np.ones(len(tags.labels)), found.findings)
    of_tags, pairs, of_pairs = numbers(tags, found.findings, words)
    chosen = told[pairs.tags, 1]
    given = [dict(fact.qualifiers) for fact in facts]
    asked = zip(pairs.tags[chosen].tolist(), pairs.qualifiers[chosen].tolist(), strict=True)
    stars = np.array([given[tag].get(number, -1) for tag, number in asked], np.int64)
    return HeadingRows(
        of_tags[told[:, 0]],
        np.array([fact.major for fact in facts], bool)[told[:, 0]],
        of_pairs[chosen],
        pairs.qualifiers[chosen],
        stars >= 0,
        stars == 1,
    )
