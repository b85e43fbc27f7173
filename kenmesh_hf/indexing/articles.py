"""What an index needs to know of training articles: their labels, hashed words and identity."""

from collections.abc import Sequence

import numpy as np

from ..modeling.neighbours_kenmesh import IndexedArticles, pmid_number
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


def identities(article: Article, text: int) -> set[tuple[str, int]]:
    """What an article is known by: the hash of its text and, where it has one, its PMID."""
    number = pmid_number(article.pmid)
    return {("text", text), ("pmid", number)} if number else {("text", text)}


def carries(labels: Sequence[np.ndarray], articles: np.ndarray, wanted: np.ndarray, size: int) -> np.ndarray:
    """Whether each article of `articles` carries the label beside it in `wanted`."""
    owner = np.repeat(np.arange(len(labels)), [len(given) for given in labels])
    pairs = owner * size + np.concatenate([np.zeros(0, np.int64), *labels])
    return np.isin(articles * size + wanted, pairs)


def index_articles(
    articles: Sequence[Article], hashes: np.ndarray, labels: Sequence[np.ndarray]
) -> IndexedArticles:
    """What is remembered of articles with these texts and labels."""
    pmids, years = ([getattr(article, field) for article in articles] for field in ("pmid", "year"))
    return IndexedArticles.build(pmids, hashes, years, labels)
