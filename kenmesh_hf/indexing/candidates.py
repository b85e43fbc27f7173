"""Builds candidates from training articles and a MeSH vocabulary, checks them for leaks and measures them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputError, MismatchError
from ..modeling.associations_kenmesh import Readings
from ..modeling.candidates_kenmesh import CandidateBatch, KenMeSHCandidates
from ..modeling.dense_neighbours_kenmesh import DenseNeighbours
from ..modeling.journals_kenmesh import JournalTable
from ..modeling.lexicon_kenmesh import Lexicon
from ..modeling.neighbours_kenmesh import (
    IndexedArticles,
    SparseNeighbours,
    TermCounts,
    count_terms,
    hash_articles,
    pmid_number,
)
from ..modeling.proposals_kenmesh import SOURCES, CandidateOptions, Findings
from ..modeling.terms_kenmesh import HashedWords, hash_words
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..reading.records import Article
from .associations import build_associations

_BATCH = 256
_RANKER_ARTICLES = 2000
_THINNING = 7
_RIDGE = 1e-4
# How much an article since `CandidateOptions.recent` counts in word associations, older ones once.
_RECENT_IMPORTANCE = 4.0


def label_ids(article: Article, vocabulary: MeshVocabulary) -> np.ndarray:
    """Distinct labels of an article, ascending; descriptors that the vocabulary lacks are left out."""
    labels = {vocabulary.get(ui) for ui in article.descriptors}
    return np.array(sorted(label for label in labels if label is not None), np.int64)


def journal_of(article: Article) -> list[str]:
    """Everything an article says about its journal, the surest name first."""
    names = (article.nlm_id, article.journal, article.journal_abbreviation)
    return [name for name in names if name]


def hash_texts(articles: Sequence[Article]) -> tuple[HashedWords, HashedWords]:
    """The words of titles and of abstracts."""
    titles, abstracts = ([getattr(a, field) for a in articles] for field in ("title", "abstract"))
    return hash_words(titles), hash_words(abstracts)


def identities(article: Article, text: int) -> set[tuple[str, int]]:
    """What an article is known by: the hash of its text and, where it has one, its PMID."""
    number = pmid_number(article.pmid)
    return {("text", text), ("pmid", number)} if number else {("text", text)}


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
    journals = JournalTable.build([journal_of(article) for article in kept], labels)
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


def index_articles(
    articles: Sequence[Article], hashes: np.ndarray, labels: Sequence[np.ndarray]
) -> IndexedArticles:
    """What is remembered of articles with these texts and labels."""
    pmids, years = ([getattr(article, field) for article in articles] for field in ("pmid", "year"))
    return IndexedArticles.build(pmids, hashes, years, labels)


def build_index(
    counts: TermCounts, options: CandidateOptions, word_vectors: tuple[Sequence[str], np.ndarray] | None
) -> SparseNeighbours | DenseNeighbours:
    """The neighbour index of articles with these words; arguments as for `build_candidates`."""
    if options.index == "sparse":
        return SparseNeighbours.build(counts)
    if word_vectors is None:
        raise InputError(
            "The dense neighbour index is made of word vectors; give some, or use the sparse index."
        )
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


def carries(labels: Sequence[np.ndarray], articles: np.ndarray, wanted: np.ndarray, size: int) -> np.ndarray:
    """Whether each article of `articles` carries the label beside it in `wanted`."""
    owner = np.repeat(np.arange(len(labels)), [len(given) for given in labels])
    pairs = owner * size + np.concatenate([np.zeros(0, np.int64), *labels])
    return np.isin(articles * size + wanted, pairs)


def find_candidates(
    candidates: KenMeSHCandidates, articles: Sequence[Article]
) -> Iterator[tuple[Sequence[Article], CandidateBatch]]:
    """Candidates of articles, a batch at a time."""
    for start in range(0, len(articles), _BATCH):
        batch = articles[start : start + _BATCH]
        yield batch, candidates(*_fields(batch))


def look_up(candidates: KenMeSHCandidates, articles: Sequence[Article]) -> Iterator[Findings]:
    """What every source says about each article."""
    for start in range(0, len(articles), _BATCH):
        yield from candidates.look_up(*_fields(articles[start : start + _BATCH]))


def _fields(articles: Sequence[Article]) -> tuple[list[Any], ...]:
    """Titles, abstracts, journals and PMIDs."""
    rows = ((article.title, article.abstract, journal_of(article), article.pmid) for article in articles)
    return tuple(map(list, zip(*rows, strict=True)))


def fit_ranker(
    candidates: KenMeSHCandidates, articles: Sequence[Article], labels: Sequence[np.ndarray], seed: int = 0
) -> None:
    """Learns which candidates to keep: a logistic regression on the evidence of some training articles.

    Articles with an abstract are preferred, since those are what is tagged later.
    """
    rich = [row for row, article in enumerate(articles) if article.abstract] or list(range(len(articles)))
    rows = np.random.default_rng(seed).permutation(rich)[:_RANKER_ARTICLES]
    everything = replace(candidates.options, max_candidates=None)
    features, targets = [], []
    for row, findings in zip(rows, look_up(candidates, [articles[row] for row in rows]), strict=True):
        found, numbers = candidates.weigh(findings, everything)
        right = np.isin(found, labels[row])
        # Wrong candidates are many and alike: a part is enough, and leaves the right ones more weight.
        keep = right | (np.arange(len(right)) % _THINNING == 0)
        features.append(numbers[keep])
        targets.append(right[keep])
    candidates.ranker = fit_logistic(np.concatenate(features), np.concatenate(targets))


def fit_logistic(features: np.ndarray, targets: np.ndarray, steps: int = 30) -> np.ndarray:
    """Logistic regression by Newton's method; coefficients of the raw features, the intercept last."""
    mean, scale = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
    scale[scale < 1e-6] = 1.0
    inputs = np.hstack([(features - mean) / scale, np.ones((len(features), 1))]).astype(np.float32)
    share = float(targets.mean())
    penalty = _RIDGE * min(share, 1 - share) + 1e-9
    signs = np.where(targets, -1, 1).astype(np.float32)

    def loss(solution: np.ndarray) -> float:
        margin = inputs @ solution.astype(np.float32)
        return float(np.logaddexp(0, signs * margin).mean()) + penalty / 2 * float(solution @ solution)

    solution = np.zeros(inputs.shape[1])
    solution[-1] = np.log((share + 1e-6) / (1 - share + 1e-6))
    value = loss(solution)
    for _ in range(steps):
        probability = 1 / (1 + np.exp(-np.clip(inputs @ solution.astype(np.float32), -30, 30)))
        gradient = inputs.T @ (probability - targets) / len(inputs) + penalty * solution
        curvature = (probability * (1 - probability) / len(inputs))[:, None]
        hessian = (inputs * curvature).T @ inputs + np.eye(len(solution)) * penalty
        step = np.linalg.solve(hessian.astype(np.float64), gradient)
        while (improved := loss(solution - step)) > value and np.abs(step).max() > 1e-4:
            step /= 2
        if improved > value - 1e-7:
            break
        solution, value = solution - step, improved
    coefficients = solution[:-1] / scale
    return np.append(coefficients, solution[-1] - coefficients @ mean).astype(np.float32)


def check_no_leak(candidates: KenMeSHCandidates, held_out: Sequence[Article]) -> None:
    """Refuses candidates whose tables hold an article that is kept for validation or test.

    Raises:
        MismatchError: An article's PMID or words are in the index.
    """
    hashes = hash_articles(*hash_texts(held_out))
    found = candidates.articles.find([article.pmid for article in held_out], hashes)
    leaked = [article for article, own in zip(held_out, found, strict=True) if len(own)]
    if leaked:
        names = ", ".join(str(article.pmid or repr(article.title[:40])) for article in leaked[:5])
        raise MismatchError(
            f"{len(leaked)} held-out articles are in the candidate index (by PMID or text: {names}): their "
            "labels would leak. Build the index from training articles only."
        )


def candidate_report(
    candidates: KenMeSHCandidates, articles: Sequence[Article], vocabulary: MeshVocabulary
) -> dict[str, dict[str, Any]]:
    """Candidate recall and mean number of candidates for each source, together, and as capped.

    Descriptors that the vocabulary lacks count as missed.
    """
    options = candidates.options
    total = sum(len(article.descriptors) + len(article.unresolved) for article in articles)
    by_source = {source: replace(options, sources=(source,), min_candidates=0) for source in SOURCES}
    by_source["together"] = options
    report = {name: {"recall": 0.0, "size": 0.0} for name in (*by_source, "kept")}
    for article, findings in zip(articles, look_up(candidates, articles), strict=True):
        proposed = {name: findings.propose(chosen) for name, chosen in by_source.items()}
        proposed["kept"], _ = candidates.weigh(findings, options)
        gold = label_ids(article, vocabulary)
        for name, labels in proposed.items():
            report[name]["recall"] += np.isin(gold, labels).sum() / max(total, 1)
            report[name]["size"] += len(labels) / len(articles)
    return report
