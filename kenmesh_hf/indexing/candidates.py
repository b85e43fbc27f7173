"""Builds candidates from training articles and a MeSH vocabulary."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..modeling.associations_kenmesh import Readings
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.indexed_articles_kenmesh import IndexedArticles
from ..modeling.journals_kenmesh import JournalTable
from ..modeling.lexicon_kenmesh import Lexicon
from ..modeling.neighbours_kenmesh import SparseNeighbours
from ..modeling.proposals_kenmesh import CandidateOptions
from ..modeling.pruned_neighbours_kenmesh import build_neighbours
from ..modeling.terms_kenmesh import hash_words
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..modeling.word_counts_kenmesh import TermCounts
from ..reading import Article
from .articles import label_ids
from .associations import build_associations
from .digests import ArticleDigest, DistinctArticles, digest_articles
from .ranking import fit_ranker

if TYPE_CHECKING:
    from ..modeling.dense_neighbours_kenmesh import DenseNeighbours

# How much an article since `CandidateOptions.recent` counts in word associations, older ones once.
_RECENT_IMPORTANCE = 4.0
WordVectors = tuple[Sequence[str], np.ndarray]


def build_lexicon(vocabulary: MeshVocabulary) -> Lexicon:
    """The terms of a vocabulary, as articles are digested with; what they are worth is learned later."""
    return Lexicon.build(vocabulary.names, list(vocabulary.entry_terms))


def build_candidates(
    articles: Sequence[Article],
    vocabulary: MeshVocabulary,
    options: CandidateOptions | None = None,
    seed: int = 0,
    word_vectors: WordVectors | None = None,
    progress: bool = False,
) -> KenMeSHCandidates:
    """Builds the neighbour index, journal table, lexicon and word associations of training articles.

    Args:
        articles: Training articles and no others; those without a label of the vocabulary are left out.
        vocabulary: Labels, names, entry terms and hierarchy.
        options: What to propose; the defaults measured best.
        seed: Chooses the articles on which the order of candidates is learned.
        word_vectors: Words and their vectors; the dense index needs them.
        progress: Show a bar.
    """
    lexicon = build_lexicon(vocabulary)
    digests = list(digest_articles(articles, vocabulary, lexicon))
    candidates = build_tables(digests, vocabulary, lexicon, options, word_vectors, progress)
    labelled = [article for article in articles if len(label_ids(article, vocabulary))]
    fit_ranker(candidates, labelled, vocabulary, seed)
    return candidates


def build_tables(
    digests: Iterable[ArticleDigest],
    vocabulary: MeshVocabulary,
    lexicon: Lexicon,
    options: CandidateOptions | None = None,
    word_vectors: WordVectors | None = None,
    progress: bool = False,
) -> KenMeSHCandidates:
    """The first part of `build_candidates`, for more articles than memory holds; `fit_ranker` must follow.

    Args:
        digests: Of the training articles and no others; gone through several times.
        vocabulary: As for `build_candidates`, like the rest.
        lexicon: Its terms, those of the digests; what each is worth is learned here.
        options: What to propose.
        word_vectors: Words and their vectors.
        progress: Show a bar.
    """
    options = options or CandidateOptions()
    distinct = DistinctArticles(digests)
    if not len(distinct):
        raise InputError(
            "None of the training articles carries a descriptor of this MeSH vocabulary; check that the "
            "articles have MeSH headings and that the vocabulary is the right file."
        )
    indexed = IndexedArticles.join(digest.articles for digest in distinct)
    recent = indexed.since(options.recent)
    if not recent.any():
        raise InputError(f"No training article is of {options.recent} or later; choose an earlier year.")
    labels = indexed.label_lists()
    journals = JournalTable.build((names for digest in distinct for names in digest.journals), labels)
    lexicon = lexicon.learned((digest.hits, carries(digest, lexicon, len(vocabulary))) for digest in distinct)
    importance = np.where(recent, _RECENT_IMPORTANCE, 1.0)
    readings = _Readings(distinct, lexicon, journals)
    # The associations first: what they need most memory for is gone again when the index is built.
    associations = build_associations(readings, labels, len(vocabulary), importance, progress=progress)
    return KenMeSHCandidates(
        build_index(_Words(distinct), options, word_vectors),
        indexed,
        journals,
        lexicon,
        associations,
        vocabulary.edges(),
        len(vocabulary),
        options,
    )


class _Readings:
    """What the linear model reads of the articles, gone through as often as needed."""

    def __init__(self, digests: Iterable[ArticleDigest], lexicon: Lexicon, journals: JournalTable):
        self.digests, self.lexicon, self.journals = digests, lexicon, journals

    def __iter__(self) -> Iterator[Readings]:
        first = 0
        for digest in self.digests:
            numbers = self.journals.of_articles[first : first + len(digest.articles)]
            named = self.lexicon.labels[digest.hits.terms].astype(np.int64)
            yield Readings.of(digest.words, digest.title_words, digest.hits, named, numbers)
            first += len(digest.articles)


class _Words:
    """The words of the articles, gone through as often as needed."""

    def __init__(self, digests: Iterable[ArticleDigest]):
        self.digests = digests

    def __iter__(self) -> Iterator[TermCounts]:
        return (digest.words for digest in self.digests)


def carries(digest: ArticleDigest, lexicon: Lexicon, num_labels: int) -> np.ndarray:
    """Whether the article of each hit carries the label that the term names."""
    articles, hits = digest.articles, digest.hits
    owner = np.repeat(np.arange(len(articles)), np.diff(articles.offsets))
    named = lexicon.labels[hits.terms].astype(np.int64)
    return np.isin(hits.articles * num_labels + named, owner * num_labels + articles.labels)


def build_index(
    words: Iterable[TermCounts], options: CandidateOptions, word_vectors: WordVectors | None
) -> "SparseNeighbours | DenseNeighbours":
    """The neighbour index of articles with these words, some articles at a time."""
    if options.index == "sparse":
        return build_neighbours(words)
    if word_vectors is None:
        raise InputError(
            "The dense neighbour index is made of word vectors; give some, or use the sparse index."
        )
    # Only here, since FAISS takes a while to load and few models need it.
    from ..modeling.dense_neighbours_kenmesh import DenseNeighbours

    texts, vectors = word_vectors
    hashed = hash_words(texts)
    # A word that the hashing divides or leaves out has no place in the index.
    single = np.flatnonzero(np.diff(hashed.offsets) == 1)
    return DenseNeighbours.build(words, hashed.folded[hashed.offsets[single]], vectors[single])
