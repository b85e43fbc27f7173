"""Builds candidates from training articles and a MeSH vocabulary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..modeling.associations_kenmesh import Readings
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.journals_kenmesh import JournalTable
from ..modeling.lexicon_kenmesh import Lexicon
from ..modeling.neighbours_kenmesh import SparseNeighbours, TermCounts, count_terms, hash_articles
from ..modeling.proposals_kenmesh import CandidateOptions
from ..modeling.terms_kenmesh import hash_words
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..reading import Article
from .articles import carries, hash_texts, identities, index_articles, label_ids
from .associations import build_associations
from .ranking import fit_ranker

if TYPE_CHECKING:
    from ..modeling.dense_neighbours_kenmesh import DenseNeighbours

# How much an article since `CandidateOptions.recent` counts in word associations, older ones once.
_RECENT_IMPORTANCE = 4.0


def build_candidates(
    articles: Sequence[Article],
    vocabulary: MeshVocabulary,
    options: CandidateOptions | None = None,
    seed: int = 0,
    word_vectors: tuple[Sequence[str], np.ndarray] | None = None,
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
    options = options or CandidateOptions()
    labelled = _distinct([(article, label_ids(article, vocabulary)) for article in articles])
    if not labelled:
        raise InputError(
            "None of the training articles carries a descriptor of this MeSH vocabulary; check that the "
            "articles have MeSH headings and that the vocabulary is the right file."
        )
    kept, labels = [article for article, _ in labelled], [given for _, given in labelled]
    titles, abstracts = hash_texts(kept)
    lexicon = Lexicon.build(vocabulary.names, list(vocabulary.entry_terms))
    hits = lexicon.hits(titles, abstracts)
    named = lexicon.labels[hits.terms]
    lexicon.learn(hits, carries(labels, hits.articles, named, len(vocabulary)))
    counts = count_terms(titles, abstracts)
    indexed = index_articles(kept, hash_articles(titles, abstracts), labels)
    recent = indexed.since(options.recent)
    if not recent.any():
        raise InputError(f"No training article is of {options.recent} or later; choose an earlier year.")
    journals = JournalTable.build([article.journal_names for article in kept], labels)
    readings = Readings.of(counts, titles, hits, named, journals.of_articles)
    importance = np.where(recent, _RECENT_IMPORTANCE, 1.0)
    candidates = KenMeSHCandidates(
        build_index(counts, options, word_vectors),
        indexed,
        journals,
        lexicon,
        build_associations(readings, labels, len(vocabulary), importance, progress=progress),
        vocabulary.edges(),
        len(vocabulary),
        options,
    )
    fit_ranker(candidates, kept, labels, seed)
    return candidates


def build_index(
    counts: TermCounts, options: CandidateOptions, word_vectors: tuple[Sequence[str], np.ndarray] | None
) -> "SparseNeighbours | DenseNeighbours":
    """The neighbour index of articles with these words; arguments as for `build_candidates`."""
    if options.index == "sparse":
        return SparseNeighbours.build(counts)
    if word_vectors is None:
        raise InputError(
            "The dense neighbour index is made of word vectors; give some, or use the sparse index."
        )
    # Only here, since FAISS takes a while to load and few models need it.
    from ..modeling.dense_neighbours_kenmesh import DenseNeighbours

    words, vectors = word_vectors
    hashed = hash_words(words)
    # A word that the hashing divides or leaves out has no place in the index.
    single = np.flatnonzero(np.diff(hashed.offsets) == 1)
    return DenseNeighbours.build(counts, hashed.folded[hashed.offsets[single]], vectors[single])


def _distinct(labelled: list[tuple[Article, np.ndarray]]) -> list[tuple[Article, np.ndarray]]:
    """Articles that have labels, each PMID and each text once: twice the same article would vote twice."""
    hashes = hash_articles(*hash_texts([article for article, _ in labelled]))
    seen: set[tuple[str, int]] = set()
    kept = []
    for (article, labels), text in zip(labelled, hashes.tolist(), strict=True):
        keys = identities(article, text)
        if len(labels) and not keys & seen:
            seen |= keys
            kept.append((article, labels))
    return kept
