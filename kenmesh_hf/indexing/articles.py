"""Labels, headings and hashed words of articles."""

from collections.abc import Sequence

import numpy as np

from ..modeling.heading_table_kenmesh import QUALIFIER_NUMBERS, HeadingFacts
from ..modeling.terms_kenmesh import HashedWords, hash_words
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..reading import Article


def label_ids(article: Article, vocabulary: MeshVocabulary) -> np.ndarray:
    """Distinct labels of an article, ascending; descriptors that the vocabulary lacks are left out."""
    labels = {vocabulary.get(ui) for ui in article.descriptors}
    return np.array(sorted(label for label in labels if label is not None), np.int64)


def heading_facts(article: Article, labels: np.ndarray, vocabulary: MeshVocabulary) -> list[HeadingFacts]:
    """What an article says of the heading of each of its labels; qualifiers that NLM dropped are left out."""
    facts: dict[int | None, HeadingFacts] = {}
    for heading in article.headings:
        label = vocabulary.get(heading.ui)
        major, before = facts.get(label, HeadingFacts())
        pairs = dict(before)
        for item in heading.qualifiers:
            if (number := QUALIFIER_NUMBERS.get(item.ui)) is not None:
                pairs[number] = pairs.get(number, False) or item.major
        facts[label] = HeadingFacts(major or heading.major, tuple(pairs.items()))
    return [facts.get(label, HeadingFacts()) for label in labels.tolist()]


def hash_texts(articles: Sequence[Article]) -> tuple[HashedWords, HashedWords]:
    """The words of titles and of abstracts."""
    titles, abstracts = ([getattr(a, field) for a in articles] for field in ("title", "abstract"))
    return hash_words(titles), hash_words(abstracts)
