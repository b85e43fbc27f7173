"""Candidates for many articles: batched search beside one query at a time, recall by index, room on disk.

The newest citations with abstract of a real PubMed file are the queries, all others the index. The slow way
takes one article after the other and joins the labels of its neighbours and of its journal as Python sets. It
searches the same FAISS index or, beside the sparse one, scikit-learn's TF-IDF matrix. Processor time of one
thread counts. Words and labels are those of the model.

    python benchmarks/candidates.py [--queries 10000] [--neighbours 1000] [--file FILE] [--model FOLDER]
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from _measure import parse_arguments, peak_memory, print_table
from parse_pubmed import sample_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import linear_kernel

import kenmesh_hf
from kenmesh_hf.indexing import (
    build_candidates,
    build_index,
    candidate_report,
    find_candidates,
    fit_ranker,
    hash_texts,
    label_ids,
)
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.modeling.dense_neighbours_kenmesh import DenseNeighbours
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.modeling.terms_kenmesh import split_words
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.modeling.word_counts_kenmesh import TermCounts, count_terms, hash_articles
from kenmesh_hf.preparing import column_bytes, encode_articles, write_rows
from kenmesh_hf.reading import Article, read_articles
from kenmesh_hf.words import train_word_vectors

BATCH = 256
NOTHING = np.zeros(0, np.int64)
# Articles of the slow way, of the measures of recall, and of those of room.
SLOW, MEASURED, STORED = 1000, 1000, 2000
SIZES = (500, 1500)


@dataclass
class Corpus:
    """What is indexed, what is asked, and the labels of both."""

    indexed: list[Article]
    queries: list[Article]
    vocabulary: MeshVocabulary


def read_corpus(file: Path, queries: int, vocabulary: MeshVocabulary) -> Corpus:
    """The newest labelled articles with abstract as queries, all other labelled ones as the index."""
    articles = [article for article in read_articles(file) if len(label_ids(article, vocabulary))]
    # An index takes the same text once.
    _, distinct = np.unique(hash_articles(*hash_texts(articles)), return_index=True)
    articles = sorted((articles[i] for i in distinct), key=lambda article: int(article.pmid or 0))
    asked = {id(article) for article in [a for a in articles if a.abstract][-queries:]}
    return Corpus(
        [article for article in articles if id(article) not in asked],
        [article for article in articles if id(article) in asked],
        vocabulary,
    )


def count_words(articles: Sequence[Article]) -> TermCounts:
    return count_terms(*hash_texts(articles))


def masks(candidates: KenMeSHCandidates, articles: Sequence[Article]) -> Iterator[np.ndarray]:
    """Neighbours' and journals' labels of each article, searched for in batches."""
    options = candidates.options
    for start in range(0, len(articles), BATCH):
        batch = articles[start : start + BATCH]
        found = candidates.index.search(count_words(batch), options.neighbours, [NOTHING] * len(batch))
        for article, (near, _) in zip(batch, found, strict=True):
            mask = np.zeros(candidates.num_labels, bool)
            mask[candidates.articles.labels_of(near)[0]] = True
            labels, counts, size = candidates.journals.counts_of(article.journal_names)
            mask[labels[counts > options.journal_threshold * size]] = True
            yield np.flatnonzero(mask)


def masks_one_by_one(
    candidates: KenMeSHCandidates, articles: Sequence[Article], nearest: Callable[[Article], np.ndarray]
) -> Iterator[np.ndarray]:
    """The same, one query at a time, with sets."""
    stored = candidates.articles
    labels_of = [stored.labels[start:end].tolist() for start, end in pairwise(stored.offsets.tolist())]
    for article in articles:
        mask: set[int] = set()
        for neighbour in nearest(article).tolist():
            mask |= set(labels_of[neighbour])
        labels, counts, size = candidates.journals.counts_of(article.journal_names)
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            if count > candidates.options.journal_threshold * size:
                mask.add(label)
        yield np.array(sorted(mask), np.int64)


def search_alone(candidates: KenMeSHCandidates, indexed: Sequence[Article]) -> Callable[..., np.ndarray]:
    """Finds the neighbours of one article, as one would write it down."""
    most = candidates.options.neighbours
    if isinstance(candidates.index, DenseNeighbours):
        return lambda article: candidates.index.search(count_words([article]), most, [NOTHING])[0][0]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    matrix = vectorizer.fit_transform(f"{article.title} {article.abstract}" for article in indexed)

    def search(article: Article) -> np.ndarray:
        query = vectorizer.transform([f"{article.title} {article.abstract}"])
        return np.argsort(-linear_kernel(query, matrix)[0])[:most]

    return search


def rate(run: Callable[[], Any], articles: int) -> float:
    """Articles in a second of processor time."""
    started = time.process_time()
    run()
    return articles / (time.process_time() - started)


def measure_speed(candidates: KenMeSHCandidates, corpus: Corpus) -> dict[str, float]:
    """Articles a second of both ways, of candidates with all their numbers, and the memory these add."""
    articles, some, alone = corpus.queries, corpus.queries[:SLOW], search_alone(candidates, corpus.indexed)
    one_by_one = rate(lambda: list(masks_one_by_one(candidates, some, alone)), len(some))
    batched = rate(lambda: list(masks(candidates, articles)), len(articles))
    with_numbers = rate(lambda: sum(1 for _ in find_candidates(candidates, some)), len(some))
    memory = peak_memory(lambda: sum(1 for _ in find_candidates(candidates, articles[: 4 * BATCH])))
    return {
        "masks": batched,
        "one by one": one_by_one,
        "ratio": batched / one_by_one,
        "with all numbers": with_numbers,
        "peak MB": memory / 1e6,
    }


def measure_recall(candidates: KenMeSHCandidates, corpus: Corpus) -> dict[str, dict[str, float]]:
    """Recall and mean size of each source, together, and of the best 500 and 1,500."""
    step = max(1, len(corpus.queries) // MEASURED)
    articles, options = corpus.queries[::step], candidates.options
    report: dict[str, dict[str, float]] = {}
    for size in SIZES:
        candidates.options = replace(options, max_candidates=size)
        measured = candidate_report(candidates, articles, corpus.vocabulary)
        report = measured | report | {f"best {size}": measured["kept"]}
    candidates.options = options
    return {name: figures for name, figures in report.items() if name != "kept"}


def measure_room(candidates: KenMeSHCandidates, corpus: Corpus, tokenizer: Any) -> float:
    """Bytes of a candidate in a prepared dataset."""
    processor = KenMeSHProcessor(tokenizer, candidates=candidates, vocabulary=corpus.vocabulary)
    articles = corpus.queries[:STORED]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        parts = (articles[start : start + BATCH] for start in range(0, len(articles), BATCH))
        write_rows((encode_articles(processor, part) for part in parts), path)
        values, stored = column_bytes(path, "candidate_ids")
    return stored / values


def measure_lexicon(candidates: KenMeSHCandidates, corpus: Corpus) -> dict[str, float] | None:
    """Terms found by hashes beside an Aho-Corasick automaton over the same terms, where one is installed."""
    try:
        from ahocorasick_rs import AhoCorasick, MatchKind
    except ImportError:
        return None
    articles = corpus.queries[:SLOW]
    terms = sorted(
        {
            f" {' '.join(split_words(term)).lower()} "
            for name, others in zip(corpus.vocabulary.names, corpus.vocabulary.entry_terms, strict=True)
            for term in (name, *others)
        }
    )
    started = time.process_time()
    automaton = AhoCorasick(terms, matchkind=MatchKind.LeftmostLongest)
    built = time.process_time() - started

    def match() -> None:
        for article in articles:
            words = split_words(f"{article.title} {article.abstract}".lower())
            automaton.find_matches_as_indexes(f" {' '.join(words)} ")

    def find() -> None:
        candidates.lexicon.hits(*hash_texts(articles))

    find()
    return {
        "articles_per_second": rate(find, len(articles)),
        "aho_corasick_articles_per_second": rate(match, len(articles)),
        "aho_corasick_build_seconds": built,
    }


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__.splitlines()[0],
        argv,
        queries=10_000,
        neighbours=1000,
        file="",
        model=str(kenmesh_hf.BUNDLED_CHECKPOINT),
        vector_epochs=3,
    )
    faiss.omp_set_num_threads(args.threads)
    processor = KenMeSHProcessor.from_pretrained(args.model)
    file = Path(args.file) if args.file else sample_file()
    corpus = read_corpus(file, args.queries, processor.vocabulary)
    texts = (f"{article.title} {article.abstract}" for article in corpus.indexed)
    vectors = train_word_vectors(texts, dim=128, epochs=args.vector_epochs, progress=False)
    options = CandidateOptions(neighbours=args.neighbours)
    candidates = build_candidates(corpus.indexed, corpus.vocabulary, options)
    room = measure_room(candidates, corpus, processor.tokenizer)
    lexicon = measure_lexicon(candidates, corpus)
    speed, recall = (
        {"sparse": measure_speed(candidates, corpus)},
        {"sparse": measure_recall(candidates, corpus)},
    )
    candidates.index = build_index(
        [count_words(corpus.indexed)], replace(options, index="dense"), (vectors.words, vectors.matrix)
    )
    fit_ranker(candidates, corpus.indexed, corpus.vocabulary)
    speed["dense"], recall["dense"] = measure_speed(candidates, corpus), measure_recall(candidates, corpus)
    print(
        f"{len(corpus.indexed):,} articles in the index, {len(corpus.queries):,} queries; articles a second:"
    )
    print_table(
        {index: {name: f"{value:,.1f}" for name, value in row.items()} for index, row in speed.items()}
    )
    print("\nrecall @ mean number of candidates")
    print_table(
        {
            source: {
                index: f"{recall[index][source]['recall']:.3f} @ {recall[index][source]['size']:,.0f}"
                for index in recall
            }
            for source in recall["sparse"]
        }
    )
    print(f"\n{room:.2f} bytes on disk a candidate")
    result = {
        "benchmark": "candidates",
        "ratio": round(speed["sparse"]["ratio"], 2),
        "ratio_dense": round(speed["dense"]["ratio"], 2),
        "speed": speed,
        "recall": recall,
        "bytes_per_candidate": round(room, 3),
        "lexicon": lexicon,
        "indexed": len(corpus.indexed),
    }
    print(json.dumps(result | vars(args) | {"file": file.name}))


if __name__ == "__main__":
    main()
