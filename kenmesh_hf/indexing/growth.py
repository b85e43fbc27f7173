"""Adds articles to the index of a model, whose old articles' texts are not needed.

What they bring: neighbours that vote, with words the index did not know; counts of journals and labels; how
often a term is followed by its descriptor. What only all texts together could tell stays as it is: how rare a
known word is, and the linear model from words to labels.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.dense_neighbours_kenmesh import DenseNeighbours
from ..modeling.indexed_articles_kenmesh import IndexedArticles, pmid_number
from ..modeling.lexicon_kenmesh import Hits, Lexicon
from ..modeling.neighbours_kenmesh import SparseNeighbours
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.pruned_neighbours_kenmesh import grow_neighbours
from ..modeling.tensors_kenmesh import narrow
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..modeling.word_counts_kenmesh import TermCounts, hash_articles
from ..reading import Article
from .articles import hash_texts, label_ids
from .candidates import carries
from .digests import ArticleDigest


@dataclass(frozen=True)
class Growth:
    """What became of articles that were to join an index.

    Attributes:
        added: Articles that joined.
        known: Articles left out because the index has their PMID or text; it keeps what it has.
        repeated: Articles left out because they were given twice.
        unlabelled: Articles left out because they carry no descriptor of the model's MeSH.
    """

    added: int
    known: int
    repeated: int
    unlabelled: int


def add_articles(processor: KenMeSHProcessor, articles: Sequence[Article]) -> tuple[KenMeSHProcessor, Growth]:
    """Lets articles join the index; the processor that was given stays as it is.

    Thresholds stay, too; where a small index grows a lot, `retune_thresholds` should follow.

    Args:
        processor: With candidates and vocabulary.
        articles: Labelled articles. Those that the index has already, by PMID or text, are left out.

    Returns:
        A processor with the larger index, and how many articles joined it.
    """
    if processor.candidates is None or processor.vocabulary is None:
        raise InputError("This model has no candidates or no MeSH vocabulary, so no articles can join it.")
    if not len(processor.candidates.articles):
        raise InputError(
            "This model was shared without its index, so no article can join; get it with its index."
        )
    new, growth = _newcomers(processor, articles)
    candidates = processor.candidates
    if new:
        candidates = grow_candidates(candidates, new, processor.vocabulary)
    return processor.with_parts(candidates=candidates), growth


def _newcomers(processor: KenMeSHProcessor, articles: Sequence[Article]) -> tuple[list[Article], Growth]:
    """Labelled articles that neither the index has nor an article before them is, by PMID or text."""
    hashes = hash_articles(*hash_texts(articles))
    indexed = processor.candidates.articles.find([article.pmid for article in articles], hashes)
    seen: set[tuple[str, int]] = set()
    new, left_out = [], Counter[str]()
    for article, text, own in zip(articles, hashes.tolist(), indexed, strict=True):
        keys = _identities(article, text)
        if not len(label_ids(article, processor.vocabulary)):
            left_out["unlabelled"] += 1
        elif len(own):
            left_out["known"] += 1
        elif keys & seen:
            left_out["repeated"] += 1
        else:
            seen |= keys
            new.append(article)
    return new, Growth(len(new), left_out["known"], left_out["repeated"], left_out["unlabelled"])


def _identities(article: Article, text: int) -> set[tuple[str, int]]:
    """What an article is known by: the hash of its text and, where it has one, its PMID."""
    number = pmid_number(article.pmid)
    return {("text", text), ("pmid", number)} if number else {("text", text)}


def grow_candidates(
    old: KenMeSHCandidates, articles: Sequence[Article], vocabulary: MeshVocabulary
) -> KenMeSHCandidates:
    """Candidates whose every table knows these articles, too; none of them may be indexed already.

    The linear model stays as it is: new articles had no part in its fit, so nothing is to be taken out of
    what it predicts for them.
    """
    digest = ArticleDigest.of(articles, vocabulary, old.lexicon)
    return KenMeSHCandidates(
        _grow_index(old.index, digest.words),
        IndexedArticles.join([old.articles, digest.articles]),
        old.journals.grow(digest.journals, digest.articles.label_lists()),
        _grow_lexicon(old.lexicon, digest.hits, carries(digest, old.lexicon, old.num_labels)),
        old.associations,
        old.edges,
        old.num_labels,
        old.options,
        old.ranker,
    )


def _grow_index(
    index: SparseNeighbours | DenseNeighbours, words: TermCounts
) -> SparseNeighbours | DenseNeighbours:
    return index.grow(words) if isinstance(index, DenseNeighbours) else grow_neighbours(index, words)


def _grow_lexicon(lexicon: Lexicon, hits: Hits, carried: np.ndarray) -> Lexicon:
    """Adds to the counts of each term; what is true of terms in general stays as it was learned."""
    new = lexicon.learned([(hits, carried)])
    tensors = dict(lexicon.tensors)
    for name in ("found", "assigned"):
        total = lexicon.tensors[name].astype(np.int64) + new.tensors[name]
        tensors[name] = narrow(total)
    return Lexicon(tensors)
