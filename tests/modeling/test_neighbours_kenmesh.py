"""Nearest training articles by weighted words, and how an article is known again."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tiny import tiny_articles

from kenmesh_hf.modeling import pruned_neighbours_kenmesh
from kenmesh_hf.modeling.indexed_articles_kenmesh import IndexedArticles, pmid_number
from kenmesh_hf.modeling.neighbours_kenmesh import SparseNeighbours
from kenmesh_hf.modeling.postings_kenmesh import IDF_POWER, LENGTH_DAMPING
from kenmesh_hf.modeling.pruned_neighbours_kenmesh import (
    PrunedNeighbours,
    build_neighbours,
    greatest,
    grow_neighbours,
    share_out,
)
from kenmesh_hf.modeling.terms_kenmesh import hash_words
from kenmesh_hf.modeling.text_kenmesh import content_words
from kenmesh_hf.modeling.word_counts_kenmesh import TermCounts, count_terms, hash_articles
from kenmesh_hf.reading import Article

ARTICLES = tiny_articles(80)
NONE = np.zeros(0, np.int64)


def counts_of(articles: list[Article]) -> TermCounts:
    return count_terms(hash_words([a.title for a in articles]), hash_words([a.abstract for a in articles]))


def hashes_of(*texts: tuple[str, str]) -> np.ndarray:
    return hash_articles(hash_words([title for title, _ in texts]), hash_words([text for _, text in texts]))


@pytest.fixture(scope="module", params=[SparseNeighbours, PrunedNeighbours])
def index(request) -> SparseNeighbours:
    """Both forms: where all postings are read, the short list is complete and finds the same."""
    return request.param.build([counts_of(ARTICLES[:30]), counts_of([]), counts_of(ARTICLES[30:])])


def brute_force() -> np.ndarray:
    """Cosine of every query with every damped article, written out."""
    texts = [content_words(a.title) * 2 + content_words(a.abstract) for a in ARTICLES]
    words = sorted(word for word in set().union(*texts) if sum(word in text for text in texts) > 1)
    times = np.array([[text.count(word) for word in words] for text in texts], float)
    idf = (np.log(len(texts) / (times > 0).sum(0)) + 1) ** IDF_POWER
    weights = np.where(times > 0, 1 + np.log(np.maximum(times, 1)), 0) * idf
    squares = (weights**2).sum(1)
    damped = weights / np.sqrt(squares + LENGTH_DAMPING * squares.mean())[:, None]
    return weights / np.sqrt(squares)[:, None] @ damped.T


def test_similarities_are_those_of_a_full_comparison(index):
    truth = brute_force()
    for query, (near, cosine) in enumerate(index.search(counts_of(ARTICLES), 80, [NONE] * 80)):
        assert np.all(np.diff(cosine) <= 0)
        assert set(near) == set(np.flatnonzero(truth[query]))
        # A weight is held in one byte, so it may be wrong by some thousandths.
        assert np.allclose(cosine, truth[query, near], atol=0.01)


def test_the_k_nearest_are_the_head_of_all(index):
    everything, few = (index.search(counts_of(ARTICLES[:9]), k, [NONE] * 9) for k in (80, 7))
    for (near, cosine), (head, its_cosine) in zip(everything, few, strict=True):
        assert np.array_equal(cosine[:7], its_cosine)
        assert set(head) <= set(near[cosine >= its_cosine[-1]])


@pytest.mark.parametrize("own", [[0], [0, 17], [79]])
def test_what_is_excluded_counts_nowhere(index, own):
    """The words of an excluded article tell neither what is near nor how rare a word is."""
    rest = [number for number in range(len(ARTICLES)) if number not in own]
    without = type(index).build([counts_of([ARTICLES[number] for number in rest])])
    query = counts_of([ARTICLES[own[0]]])
    (near, cosine), (truth, expected) = (
        index.search(query, 80, [np.array(own)])[0],
        without.search(query, 80, [NONE])[0],
    )
    truth = np.array(rest)[truth]
    assert set(near) == set(truth)
    # The lengths of the articles in the index stay as they were.
    order, expected_order = np.argsort(near), np.argsort(truth)
    assert np.allclose(cosine[order], expected[expected_order], atol=0.02)
    met = index.search(query, 80, [NONE])[0]
    assert met[0][0] == own[0] and set(own) <= set(met[0])


@pytest.mark.parametrize("text", ["", "the of and", "qqqq wwww", "..."])
def test_a_query_without_a_known_word_has_no_neighbours(index, text):
    for own in (NONE, np.array([3])):
        near, cosine = index.search(counts_of([Article(title=text, abstract=text)]), 5, [own])[0]
        assert len(near) == len(cosine) == 0


def test_a_query_is_searched_the_same_alone_and_among_others(index):
    together = index.search(counts_of(ARTICLES[:6]), 10, [NONE] * 6)
    for article, (near, cosine) in zip(ARTICLES[:6], together, strict=True):
        alone = index.search(counts_of([article]), 10, [NONE])[0]
        assert np.array_equal(near, alone[0]) and np.array_equal(cosine, alone[1])


@pytest.mark.parametrize("kind", [SparseNeighbours, PrunedNeighbours])
@pytest.mark.parametrize("parts", [[], [counts_of([])]])
def test_an_index_of_nothing_finds_nothing(kind, parts):
    empty = kind.build(parts)
    assert [len(near) for near, _ in empty.search(counts_of(ARTICLES[:2]), 5, [NONE] * 2)] == [0, 0]


def test_only_the_heaviest_words_search():
    counts = [counts_of(ARTICLES)]
    near, _ = SparseNeighbours.build(counts, max_terms=1).search(counts_of(ARTICLES[:1]), 80, [NONE])[0]
    everything, _ = SparseNeighbours.build(counts).search(counts_of(ARTICLES[:1]), 80, [NONE])[0]
    assert 0 < len(near) < len(everything)


def test_however_articles_are_divided_the_index_is_the_same(index):
    whole = type(index).build([counts_of(ARTICLES)])
    assert index.tensors.keys() == whole.tensors.keys()
    for name, array in whole.tensors.items():
        assert np.array_equal(index.tensors[name], array) and index.tensors[name].dtype == array.dtype, name


def test_the_number_of_articles_chooses_the_form(monkeypatch):
    assert type(build_neighbours([counts_of(ARTICLES)])) is SparseNeighbours
    monkeypatch.setattr(pruned_neighbours_kenmesh, "PRUNED_SIZE", 80)
    assert type(build_neighbours([counts_of(ARTICLES)])) is PrunedNeighbours
    few = build_neighbours([counts_of(ARTICLES[:70])])
    assert type(few) is SparseNeighbours
    assert type(grow_neighbours(few, counts_of(ARTICLES[70:75]))) is SparseNeighbours
    assert type(grow_neighbours(few, counts_of(ARTICLES[70:]))) is PrunedNeighbours


def test_both_forms_grow_to_the_same(monkeypatch):
    forms = [kind.build([counts_of(ARTICLES[:60])]) for kind in (SparseNeighbours, PrunedNeighbours)]
    grown = [grow_neighbours(index, counts_of(ARTICLES[60:])) for index in forms]
    monkeypatch.setattr(pruned_neighbours_kenmesh, "PRUNED_SIZE", 80)
    grown.append(grow_neighbours(forms[0], counts_of(ARTICLES[60:])))
    queries = counts_of(tiny_articles(20, seed=5))
    exact, pruned, changed = (index.search(queries, 15, [NONE] * 20) for index in grown)
    for expected, near, also in zip(exact, pruned, changed, strict=True):
        assert np.allclose(expected[1], near[1], atol=1e-5) and np.allclose(expected[1], also[1], atol=1e-5)


def test_few_postings_find_most_of_what_is_near(monkeypatch):
    """The work is bounded, and what is listed is weighed exactly."""
    articles = tiny_articles(2000, seed=3)
    index = PrunedNeighbours.build([counts_of(articles)])
    queries, nobody = counts_of(tiny_articles(30, seed=4)), [NONE] * 30
    monkeypatch.setattr(pruned_neighbours_kenmesh, "MOST_POSTINGS", 1200)
    exact, found = index.exact_search(queries, 20, nobody), index.search(queries, 20, nobody)
    assert np.mean([np.isin(a[0], b[0]).mean() for a, b in zip(exact, found, strict=True)]) > 0.8
    for (near, cosine), (all_near, all_cosine) in zip(found, exact, strict=True):
        both = np.intersect1d(near, all_near)
        scores, truth = dict(zip(near, cosine, strict=True)), dict(zip(all_near, all_cosine, strict=True))
        assert [scores[n] for n in both] == pytest.approx([truth[n] for n in both], abs=1e-6)


def test_no_more_postings_are_kept_than_are_ever_read(monkeypatch):
    monkeypatch.setattr(pruned_neighbours_kenmesh, "MOST_POSTINGS", 7)
    index = PrunedNeighbours.build([counts_of(ARTICLES)])
    assert np.diff(index.offsets).max() == 7 < index.frequencies.max()
    assert np.array_equal(np.minimum(index.frequencies, 7), np.diff(index.offsets))
    for start, end in zip(index.offsets[:-1], index.offsets[1:], strict=True):
        assert np.all(np.diff(index.weights[start:end].astype(int)) <= 0)


def test_threads_search_as_one_does():
    index = PrunedNeighbours.build([counts_of(ARTICLES)])
    queries = [counts_of([article]) for article in ARTICLES]
    expected = [index.search(query, 10, [NONE])[0] for query in queries]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda query: index.search(query, 10, [NONE])[0], queries * 3))
    for (near, cosine), (truth, its_cosine) in zip(found, expected * 3, strict=True):
        assert np.array_equal(near, truth) and np.array_equal(cosine, its_cosine)


@pytest.mark.parametrize(
    ("lengths", "worth", "most", "read"),
    [
        ([5, 5], [1, 1], 10, [5, 5]),
        ([100, 100], [3, 1], 40, [30, 10]),
        ([5, 100, 100], [1, 1, 1], 45, [5, 20, 20]),
        ([100], [0.5], 7, [7]),
        ([10, 10, 1000], [100, 1, 1], 12, [10, 1, 1]),
    ],
)
def test_reading_is_shared_out_by_worth(lengths, worth, most, read):
    assert share_out(np.array(lengths), np.array(worth, float), most).tolist() == read


@pytest.mark.parametrize("times", [1, 3, 60])
@pytest.mark.parametrize("most", [1, 10, 150, 300])
def test_the_greatest_sums_are_listed_however_often_an_article_is_met(times, most):
    """The cut is first sought where articles are met a few times; they may be met more often."""
    rng = np.random.default_rng(times)
    articles = rng.permutation(1000)[:200]
    sums = np.zeros(1000, np.float32)
    sums[articles] = rng.permutation(200) + 1
    listed = greatest(rng.permutation(np.repeat(articles, times)), sums, most)
    assert listed.tolist() == sorted(articles[np.argsort(-sums[articles])][:most].tolist())


def test_more_terms_than_four_bytes_hold_are_searched_alike():
    """Beyond 16 million terms an entry has eight bytes."""
    index = PrunedNeighbours.build([counts_of(ARTICLES)])
    assert index.article_words.dtype == np.uint32
    wide = PrunedNeighbours(index.tensors | {"article_words": index.article_words.astype(np.uint64)})
    queries, own = counts_of(ARTICLES[:9]), [np.array([number]) for number in range(9)]
    for one, other in zip(index.search(queries, 7, own), wide.search(queries, 7, own), strict=True):
        assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1])
    assert type(grow_neighbours(wide, queries)) is PrunedNeighbours


def test_title_words_count_twice():
    counts = count_terms(hash_words(["Virus and cell", ""]), hash_words(["a virus, viruses", "cells"]))
    virus, cell = (int(hash_words([word]).folded[0]) for word in ("virus", "cell"))
    first = dict(zip(counts.hashes[:2].tolist(), counts.counts[:2].tolist(), strict=True))
    assert first == {virus: 4, cell: 2}
    assert counts.offsets.tolist() == [0, 2, 3]
    assert counts.counts[2] == 1


def test_a_text_is_known_again_whatever_its_punctuation():
    first, same, swapped, order, empty = hashes_of(
        ("Cold virus", "in Mice."),
        ("cold: VIRUS", " in  mice"),
        ("in mice", "Cold virus"),
        ("virus cold", "in mice"),
        ("", ""),
    ).tolist()
    assert first == same
    assert len({first, swapped, order, empty}) == 4
    assert empty == 0


def test_articles_are_found_by_pmid_or_by_text():
    texts = [("one text", ""), ("two texts", ""), ("", ""), ("two texts", "")]
    given = [np.array([1, 2]), np.array([0]), NONE, np.array([3])]
    years = [1979, None, 1980, 99999]
    articles = IndexedArticles.build(["11", 12, None, "14"], hashes_of(*texts), years, given)
    queries = [("one text", ""), ("other", ""), ("two texts", ""), ("", ""), ("other", "")]
    found = articles.find([None, "0012", "11", "", "0"], hashes_of(*queries))
    assert [rows.tolist() for rows in found] == [[0], [1], [0, 1, 3], [], []]
    labels, lengths = articles.labels_of(np.array([3, 2, 0]))
    assert (labels.tolist(), lengths.tolist()) == ([3, 1, 2], [1, 0, 2])
    assert articles.since(1980).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("pmid", "number"),
    [("31", 31), (31, 31), (" 031 ", 31), (None, 0), ("", 0), ("PMC31", 0), ("-3", 0), ("1234567890", 0)],
)
def test_pmids_as_numbers(pmid, number):
    assert pmid_number(pmid) == number
