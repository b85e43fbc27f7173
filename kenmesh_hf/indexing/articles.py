"""Labels and hashed words of articles."""

from collections.abc import Sequence

import numpy as np

from ..modeling.terms_kenmesh import HashedWords, hash_words
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..reading import Article


def label_ids(article: Article, vocabulary: MeshVocabulary) -> np.ndarray:
    """Distinct labels of an article, ascending; descriptors that the vocabulary lacks are left out."""
    labels = {vocabulary.get(ui) for ui in article.descriptors}
    return np.array(sorted(label for label in labels if label is not None), np.int64)


def hash_texts(articles: Sequence[Article]) -> tuple[HashedWords, HashedWords]:
    """The words of titles and of abstracts."""
    titles, abstracts = ([getattr(a, field) for a in articles] for field in ("title", "abstract"))
    return hash_words(titles), hash_words(abstracts)
