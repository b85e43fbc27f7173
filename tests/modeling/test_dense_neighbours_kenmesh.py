"""The paper's neighbours: mean word vectors and FAISS."""

import numpy as np
import pytest
from tiny import tiny_articles, tiny_vocabulary

from kenmesh_hf.errors import InputError
from kenmesh_hf.indexing import build_candidates
from kenmesh_hf.modeling import dense_neighbours_kenmesh as dense
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.modeling.terms_kenmesh import hash_words
from kenmesh_hf.modeling.text_kenmesh import content_words
from kenmesh_hf.modeling.word_counts_kenmesh import count_terms


@pytest.fixture(scope="module")
def articles():
    return tiny_articles(120)


@pytest.fixture(scope="module")
def vectors(articles):
    words = sorted({word for article in articles for word in content_words(article.title + article.abstract)})
    return words, np.random.default_rng(0).normal(size=(len(words), 16)).astype(np.float32)


def counts_of(articles):
    return count_terms(hash_words([a.title for a in articles]), hash_words([a.abstract for a in articles]))


def build(articles, vectors, **options):
    words, matrix = vectors
    return dense.DenseNeighbours.build([counts_of(articles)], hash_words(words).folded, matrix, **options)


def test_neighbours_are_those_of_the_formula_written_out(articles, vectors):
    words, matrix = vectors
    table = dict(zip(words, matrix.astype(np.float16).astype(float), strict=True))
    texts = [content_words(a.title) * 2 + content_words(a.abstract) for a in articles]
    frequency = {word: sum(word in text for text in texts) for word in words}
    idf = {word: np.log((len(texts) + 1) / (frequency[word] + 1)) for word in words}
    means = np.array([sum(idf[word] * table[word] for word in text) for text in texts])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    found = build(articles, vectors).search(counts_of(articles[:5]), 10, [np.array([i]) for i in range(5)])
    for query, (near, cosine) in enumerate(found):
        truth = means @ means[query]
        truth[query] = -1
        assert np.allclose(np.sort(truth)[::-1][:10], cosine, atol=1e-4)
        assert query not in near


def test_a_graph_of_many_articles_finds_what_the_exact_search_finds(articles, vectors):
    exact, graph = build(articles, vectors), build(articles, vectors, exact_size=10)
    assert type(graph.index).__name__ == "IndexHNSWFlat"
    nothing = [np.zeros(0, np.int64)] * len(articles)
    pairs = zip(
        exact.search(counts_of(articles), 10, nothing),
        graph.search(counts_of(articles), 10, nothing),
        strict=True,
    )
    assert np.mean([np.isin(a, b).mean() for (a, _), (b, _) in pairs]) > 0.95


def test_dense_candidates_survive_saving_and_never_meet_themselves(articles, vectors, tmp_path):
    options = CandidateOptions(index="dense", neighbours=5, sources=("neighbours",))
    candidates = build_candidates(articles, tiny_vocabulary(), options, word_vectors=vectors)
    candidates.save_pretrained(tmp_path)
    loaded = KenMeSHCandidates.from_pretrained(tmp_path)
    fields = ([a.title for a in articles], [a.abstract for a in articles], [a.journal for a in articles])
    before, after = candidates(*fields), loaded(*fields)
    assert np.array_equal(before.label_ids, after.label_ids)
    assert np.allclose(before.features, after.features)
    first = articles[0]
    reasons = loaded.explain(first.title, first.abstract, first.journal, None, labels=[0, 1, 2])
    named = [neighbour["pmid"] for reason in reasons for neighbour in reason["neighbours"]]
    assert str(first.pmid) not in map(str, named)


def test_what_is_missing_is_named(articles, vectors, monkeypatch):
    with pytest.raises(InputError, match="word vectors"):
        build_candidates(articles, tiny_vocabulary(), CandidateOptions(index="dense"))
    with pytest.raises(ValueError, match="sparse, dense"):
        CandidateOptions(index="best")
    monkeypatch.setattr(dense, "faiss", None)
    with pytest.raises(ImportError, match=r"kenmesh-hf\[cpu\]"):
        build(articles, vectors)
