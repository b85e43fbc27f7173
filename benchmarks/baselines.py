"""What people would use instead of KenMeSH: dictionary matching, TF-IDF neighbours, Omikuji, PECOS.

Each function learns from the training articles and gives scored labels of the validation and the test
articles. Where it has settings of its own, they are chosen on the validation articles, as KenMeSH's are.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz, save_npz
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from kenmesh_hf.evaluating import LabelSets, ScoredLabels, sweep_thresholds
from kenmesh_hf.modeling.lexicon_kenmesh import INSIDE, TITLE, Lexicon
from kenmesh_hf.modeling.terms_kenmesh import hash_words
from kenmesh_hf.modeling.text_kenmesh import content_words
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.reading import Article

# Labels of an article that any method may rank; an article has about ten descriptors.
TOP_LABELS = 100
NEIGHBOURS = (10, 20, 50, 100)
BEAM = 20
# Environment variable that names the interpreter of an environment with PECOS.
PECOS_PYTHON = "PECOS_PYTHON"


@dataclass
class Articles:
    """Articles of one split with their labels, in the same order."""

    articles: Sequence[Article]
    gold: LabelSets

    @property
    def texts(self) -> list[str]:
        """Title and abstract: what every method reads."""
        return [f"{article.title} {article.abstract}" for article in self.articles]

    def with_abstract(self) -> "Articles":
        """Those that have an abstract."""
        kept = np.array([i for i, article in enumerate(self.articles) if article.abstract], np.int64)
        return Articles([self.articles[i] for i in kept], self.gold.take(kept))


@dataclass
class Corpus:
    """The split that all methods share."""

    vocabulary: MeshVocabulary
    train: Articles
    validation: Articles
    test: Articles


@dataclass
class Ranking:
    """What a method says about the held-out articles.

    Attributes:
        validation: Scored labels of the validation articles.
        test: Scored labels of the test articles.
        seconds: Processor time of learning; None if it was interrupted.
        settings: What was chosen on the validation articles.
        figures: More figures that only some methods have.
    """

    validation: ScoredLabels
    test: ScoredLabels
    seconds: float | None
    settings: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)


# Processor time of learning, and scored labels of the validation and the test articles.
Learned = tuple[float, list[ScoredLabels]]


def choose(rankings: Iterator[Ranking], gold: LabelSets) -> Ranking:
    """The ranking with the highest micro-F that any global threshold reaches on the validation articles."""
    return max(rankings, key=lambda ranking: sweep_thresholds(ranking.validation, gold).f_score().max())


def dictionary(corpus: Corpus) -> Ranking:
    """Descriptors whose name or entry term occurs, ranked by occurrences and by words of the term."""
    started = time.process_time()
    lexicon = Lexicon.build(corpus.vocabulary.names, list(corpus.vocabulary.entry_terms))
    seconds = time.process_time() - started

    def match(part: Articles) -> ScoredLabels:
        titles = hash_words(article.title for article in part.articles)
        hits = lexicon.hits(titles, hash_words(article.abstract for article in part.articles))
        free = hits.places != INSIDE
        weight = hits.counts * np.where(hits.places == TITLE, 2, 1) * lexicon.lengths[hits.terms]
        cells = (hits.articles[free], lexicon.labels[hits.terms[free]].astype(np.int64))
        shape = (len(part.articles), len(corpus.vocabulary))
        return best_entries(csr_matrix((weight[free].astype(np.float32), cells), shape))

    return Ranking(match(corpus.validation), match(corpus.test), seconds)


def tfidf_knn(corpus: Corpus) -> Ranking:
    """Labels of the nearest training articles, weighed by cosine; the number of neighbours is chosen."""

    def rankings() -> Iterator[Ranking]:
        for name, train in training_sets(corpus):
            started = time.process_time()
            vectorizer = TfidfVectorizer(analyzer=content_words, sublinear_tf=True, min_df=2)
            index = vectorizer.fit_transform(train.texts).T.tocsr()
            labels = label_matrix(train.gold, len(corpus.vocabulary))
            seconds = time.process_time() - started
            held_out = [
                greatest(vectorizer.transform(part.texts) @ index, max(NEIGHBOURS))
                for part in (corpus.validation, corpus.test)
            ]
            for k in NEIGHBOURS:
                votes = [
                    best_entries(normalize(greatest(similar, k), norm="l1") @ labels) for similar in held_out
                ]
                yield Ranking(*votes, seconds, {"neighbours": k, "trained_on": name})

    return choose(rankings(), corpus.validation.gold)


def greatest(matrix: csr_matrix, k: int) -> csr_matrix:
    """The k greatest numbers of each row."""
    columns, values = [], []
    for start, end in pairwise(matrix.indptr):
        row = matrix.data[start:end]
        best = np.argpartition(-row, k)[:k] if k < len(row) else np.arange(len(row))
        columns.append(matrix.indices[start:end][best])
        values.append(row[best])
    offsets = np.cumsum([0, *map(len, columns)])
    return csr_matrix((np.concatenate(values), np.concatenate(columns), offsets), matrix.shape)


def omikuji(corpus: Corpus) -> Ranking:
    """Omikuji as Annif sets it up: TF-IDF, two balanced clusters a level, depth 20."""
    from omikuji import Model

    hyper_param = Model.default_hyper_param()
    hyper_param.cluster_balanced, hyper_param.cluster_k, hyper_param.max_depth = True, 2, 20
    hyper_param.collapse_every_n_layers = 0

    def learn(folder: Path, train: Articles, inputs: list[csr_matrix]) -> Learned:
        write_svmlight(folder / "train.txt", inputs[0], train.gold, len(corpus.vocabulary))
        started = time.process_time()
        model = Model.train_on_data(str(folder / "train.txt"), hyper_param, n_threads=1)
        seconds = time.process_time() - started

        def rank(row: csr_matrix) -> list[tuple[int, float]]:
            words = list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
            return model.predict(words, BEAM, TOP_LABELS)

        found = [[rank(row) for row in matrix] for matrix in inputs[1:]]
        return seconds, [
            ScoredLabels.from_lists(*([[pair[i] for pair in row] for row in rows] for i in (0, 1)))
            for rows in found
        ]

    return learned(corpus, learn)


def pecos(corpus: Corpus) -> Ranking:
    """PECOS XR-Linear with its defaults: hierarchical k-means over label features, linear rankers."""
    python = os.environ.get(PECOS_PYTHON)
    if not python:
        raise ImportError(
            "PECOS 1.2.8 needs numpy<2 and scipy<1.14. Make it an environment of its own "
            "(pip install 'numpy<2' 'scipy<1.14' scikit-learn; pip install --no-deps libpecos==1.2.8) "
            f"and set {PECOS_PYTHON} to its interpreter."
        )

    def learn(folder: Path, train: Articles, inputs: list[csr_matrix]) -> Learned:
        # A label without an article would get no place among the clusters.
        used = np.unique(train.gold.label_ids)
        save_npz(folder / "train_labels.npz", label_matrix(train.gold, len(corpus.vocabulary))[:, used])
        for name, matrix in zip(("train_inputs", "validation", "test"), inputs, strict=True):
            save_npz(folder / f"{name}.npz", matrix)
        worker = Path(__file__).with_name("pecos_worker.py")
        subprocess.run([python, str(worker), str(folder), str(TOP_LABELS)], check=True)
        ranked = [load_npz(folder / f"ranked_{split}.npz") for split in ("validation", "test")]
        seconds = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
        return seconds, [
            best_entries(
                csr_matrix(
                    (found.data, used[found.indices], found.indptr),
                    (found.shape[0], len(corpus.vocabulary)),
                )
            )
            for found in ranked
        ]

    return learned(corpus, learn)


def learned(corpus: Corpus, learn: Callable[[Path, Articles, list[csr_matrix]], Learned]) -> Ranking:
    """Learns from TF-IDF of all training articles, and of those with abstract; the better one counts."""

    def rankings() -> Iterator[Ranking]:
        for name, train in training_sets(corpus):
            vectorizer = TfidfVectorizer(analyzer=content_words)
            inputs = [vectorizer.fit_transform(train.texts)]
            inputs += [vectorizer.transform(part.texts) for part in (corpus.validation, corpus.test)]
            with tempfile.TemporaryDirectory() as folder:
                seconds, held_out = learn(Path(folder), train, inputs)
            yield Ranking(*held_out, seconds, {"trained_on": name})

    return choose(rankings(), corpus.validation.gold)


def training_sets(corpus: Corpus) -> list[tuple[str, Articles]]:
    """All training articles, and those with an abstract if there are others."""
    rich = corpus.train.with_abstract()
    sets = [("articles with abstract", rich)]
    return sets if len(rich.gold) == len(corpus.train.gold) else [*sets, ("all articles", corpus.train)]


def label_matrix(gold: LabelSets, num_labels: int) -> csr_matrix:
    """Ones at the labels of each article, `(articles, labels)`."""
    ones = np.ones(len(gold.label_ids), np.float32)
    return csr_matrix((ones, gold.label_ids, gold.offsets), (len(gold), num_labels))


def best_entries(matrix: csr_matrix) -> ScoredLabels:
    """The greatest positive entries of each row of `(articles, labels)`."""
    labels, scores = [], []
    matrix = greatest(matrix.tocsr(), TOP_LABELS)
    for start, end in pairwise(matrix.indptr):
        positive = matrix.data[start:end] > 0
        labels.append(matrix.indices[start:end][positive])
        scores.append(matrix.data[start:end][positive])
    return ScoredLabels.from_lists(labels, scores)


def write_svmlight(path: Path, inputs: csr_matrix, gold: LabelSets, num_labels: int) -> None:
    """The file Omikuji learns from; articles without a label are left out."""
    rows = [row for row in range(len(gold)) if gold.offsets[row] < gold.offsets[row + 1]]
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{len(rows)} {inputs.shape[1]} {num_labels}\n")
        for row in rows:
            labels = gold.label_ids[gold.offsets[row] : gold.offsets[row + 1]]
            span = slice(inputs.indptr[row], inputs.indptr[row + 1])
            order = np.argsort(inputs.indices[span])
            cells = zip(inputs.indices[span][order], inputs.data[span][order], strict=True)
            words = " ".join(f"{column}:{value:.6f}" for column, value in cells)
            file.write(f"{','.join(map(str, labels))} {words}\n")


BASELINES: dict[str, Callable[[Corpus], Ranking]] = {
    "dictionary": dictionary,
    "tfidf_knn": tfidf_knn,
    "omikuji": omikuji,
    "pecos": pecos,
}
