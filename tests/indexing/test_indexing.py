"""The leak guard: a training article gets the numbers that an unseen one would get."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tiny import tiny_articles, tiny_vocabulary

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.indexing import build_candidates, candidate_report, check_no_leak, find_candidates, label_ids
from kenmesh_hf.modeling import pruned_neighbours_kenmesh
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.modeling.indexed_articles_kenmesh import IndexedArticles
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.reading import Article, Heading

ARTICLES = tiny_articles(150)
HELD_OUT = tiny_articles(60, seed=9, first_pmid=5001)
VOCABULARY = tiny_vocabulary()
# Every label is a candidate, so that the numbers of all labels can be compared.
EVERYTHING = CandidateOptions(max_candidates=None, min_candidates=len(VOCABULARY), recent=2002)
NOTHING = np.zeros(0, np.int64)
EXACT = (
    *("journal_share", "journal_log", "journal_lift", "journal_known"),
    *("log_prior", "recent_log_prior", "recent_lift"),
)


@pytest.fixture(scope="module", params=["exact", "pruned"])
def candidates(request: pytest.FixtureRequest) -> Iterator[KenMeSHCandidates]:
    """With either form of the neighbour index, whatever the number of articles."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "pruned":
            patch.setattr(pruned_neighbours_kenmesh, "PRUNED_SIZE", 1)
        yield build_candidates(ARTICLES, VOCABULARY, EVERYTHING)


def numbers(candidates: KenMeSHCandidates, article: Article) -> dict[str, np.ndarray]:
    labels, features = next(find_candidates(candidates, [article]))[1].row(0)
    assert len(labels) == len(VOCABULARY)
    return dict(zip(candidates.FEATURES, features.T, strict=True))


@pytest.mark.parametrize("number", [0, 40, 149])
@pytest.mark.parametrize("known_by", ["pmid", "text"])
def test_a_training_article_gets_the_numbers_of_an_unseen_one(candidates, number, known_by):
    article = ARTICLES[number]
    query = article if known_by == "pmid" else replace(article, pmid=None, title=article.title.upper())
    without = build_candidates(ARTICLES[:number] + ARTICLES[number + 1 :], VOCABULARY, EVERYTHING)
    got, expected = numbers(candidates, query), numbers(without, query)
    for name in EXACT:
        assert np.array_equal(got[name], expected[name]), name
    for name in ("term_title", "term_abstract", "term_inside"):
        # What terms of a kind are worth on average is counted over all articles, this one included.
        assert np.allclose(got[name], expected[name], atol=0.01), name
    for name in ("vote_all", "vote_50", "vote_15", "best_similarity"):
        # The lengths of indexed articles were measured with the words of this one known.
        assert np.allclose(got[name], expected[name], atol=0.03), name


def test_an_article_counts_only_in_the_journal_it_was_indexed_in(candidates):
    article = next(a for a in ARTICLES if a.journal == ARTICLES[0].journal)
    other = next(a.journal for a in ARTICLES if a.journal != article.journal)
    moved = replace(article, journal=other, journal_abbreviation=None, nlm_id=None)
    stranger = replace(moved, pmid=None, title=f"{article.title} again")
    got, expected = numbers(candidates, moved), numbers(candidates, stranger)
    assert np.allclose(got["journal_share"] - expected["journal_share"], 0, atol=5e-3)


def test_an_articles_own_labels_do_not_touch_its_votes(candidates):
    article = ARTICLES[7]
    others = [ui for ui in VOCABULARY.uis if ui not in article.descriptors][:3]
    relabelled = replace(article, headings=tuple(Heading(ui) for ui in others))
    changed = build_candidates([*ARTICLES[:7], relabelled, *ARTICLES[8:]], VOCABULARY, EVERYTHING)
    got, expected = numbers(candidates, article), numbers(changed, article)
    for name in candidates.FEATURES:
        if name.startswith("vote") or name.startswith("best") or name in EXACT:
            assert np.array_equal(got[name], expected[name]), name


def own_scores(candidates: KenMeSHCandidates, articles: list[Article], name: str) -> float:
    """Mean number of the labels that articles carry."""
    found = [numbers(candidates, a)[name][label_ids(a, VOCABULARY)] for a in articles]
    return float(np.concatenate(found).mean())


@pytest.mark.parametrize("name", ["words", "vote_all", "best_similarity"])
def test_training_articles_do_not_score_higher_than_unseen_ones(candidates, name):
    seen, unseen = (own_scores(candidates, articles, name) for articles in (ARTICLES[:60], HELD_OUT))
    assert seen < unseen * 1.1


def test_without_the_guard_gold_labels_enter(candidates, monkeypatch):
    article = ARTICLES[3]
    guarded = numbers(candidates, article)
    gold = label_ids(article, VOCABULARY)
    disguised = replace(article, pmid="99999999", title=article.title + " again")
    for query, patched in ((disguised, False), (article, True)):
        if patched:
            monkeypatch.setattr(IndexedArticles, "find", lambda self, pmids, hashes: [NOTHING] * len(pmids))
        leaky = numbers(candidates, query)
        assert np.all(leaky["vote_5"][gold] > guarded["vote_5"][gold])
        assert np.all(leaky["best_rank"][gold] == 1)
        assert leaky["words"][gold].mean() > guarded["words"][gold].mean()


def test_a_label_only_its_own_article_carries_is_no_candidate(monkeypatch):
    lonely = replace(ARTICLES[0], pmid="777", title="qerty uiop", abstract="", journal="Lonely Letters")
    lonely = replace(lonely, headings=(Heading("D006801"),))
    others = [replace(a, headings=tuple(h for h in a.headings if h.ui != "D006801")) for a in ARTICLES[1:60]]
    echo = replace(lonely, pmid="778", headings=others[0].headings)
    echo = replace(echo, title="qerty uiop echo")
    built = build_candidates([lonely, echo, *others], VOCABULARY)
    own = VOCABULARY.get("D006801")
    assert own not in next(find_candidates(built, [lonely]))[1].label_ids
    monkeypatch.setattr(IndexedArticles, "find", lambda self, pmids, hashes: [NOTHING] * len(pmids))
    assert own in next(find_candidates(built, [lonely]))[1].label_ids


def test_held_out_articles_in_the_index_are_refused(candidates):
    check_no_leak(candidates, HELD_OUT)
    check_no_leak(candidates, [])
    with pytest.raises(MismatchError, match="1 held-out articles .*150"):
        check_no_leak(candidates, [*HELD_OUT, replace(HELD_OUT[0], pmid=ARTICLES[-1].pmid)])
    same_text = replace(ARTICLES[0], pmid="88888", title=ARTICLES[0].title.upper())
    with pytest.raises(MismatchError, match="88888"):
        check_no_leak(candidates, [same_text])


def test_the_same_article_is_indexed_once():
    again = [*ARTICLES[:20], replace(ARTICLES[0], title="other"), replace(ARTICLES[1], pmid="4444")]
    assert len(build_candidates(again, VOCABULARY).articles) == 20


def test_recent_articles_count_apart(candidates):
    recent = [article for article in ARTICLES if article.year >= 2002]
    assert 0 < len(recent) < len(ARTICLES)
    got = numbers(candidates, HELD_OUT[0])
    for label in range(len(VOCABULARY)):
        shares = [
            (sum(label in label_ids(article, VOCABULARY) for article in group) + 0.5) / (len(group) + 1)
            for group in (ARTICLES, recent)
        ]
        assert got["log_prior"][label] == pytest.approx(np.log(shares[0]), abs=1e-5)
        assert got["recent_log_prior"][label] == pytest.approx(np.log(shares[1]), abs=1e-5)


def test_recent_articles_decide_what_words_mean():
    turned = [
        replace(a, headings=tuple(Heading(ui) for ui in VOCABULARY.uis[:2]), year=2010) for a in ARTICLES[:75]
    ]
    words = [
        numbers(build_candidates([*ARTICLES[75:], *turned], VOCABULARY, options), ARTICLES[0])["words"][:2]
        for options in (replace(EVERYTHING, recent=0), replace(EVERYTHING, recent=2010))
    ]
    assert np.all(words[1] > words[0])


def test_a_year_without_articles_is_refused():
    with pytest.raises(InputError, match="2100 or later"):
        build_candidates(ARTICLES, VOCABULARY, CandidateOptions(recent=2100))


def test_articles_without_known_labels_are_named():
    with pytest.raises(InputError, match="MeSH vocabulary"):
        build_candidates([Article(title="x", headings=(Heading("D999999"),))], VOCABULARY)


def test_the_report_counts_what_is_found():
    options = CandidateOptions(max_candidates=3, neighbours=5)
    built = build_candidates(ARTICLES, VOCABULARY, options)
    stranger = replace(HELD_OUT[0], headings=(*HELD_OUT[0].headings, Heading("D999999")))
    articles = [stranger, *HELD_OUT[1:20]]
    report = candidate_report(built, articles, VOCABULARY)
    assert set(report) == {"neighbours", "journal", "terms", "words", "together", "kept"}
    batch = next(find_candidates(built, articles))[1]
    gold = [set(label_ids(article, VOCABULARY).tolist()) for article in articles]
    hits = sum(len(set(row.tolist()) & own) for (row, _), own in zip(batch.split(), gold, strict=True))
    assert report["kept"]["recall"] == pytest.approx(hits / (sum(map(len, gold)) + 1))
    assert report["kept"]["size"] == pytest.approx(len(batch.label_ids) / 20) == 3
    assert report["together"]["recall"] >= max(report[name]["recall"] for name in ("neighbours", "terms"))
    assert built.options is options


def test_everything_known_about_a_journal_is_used():
    article = Article(journal="Annals of Velora", journal_abbreviation="Ann Velora", nlm_id="0372617")
    assert article.journal_names == ["0372617", "Annals of Velora", "Ann Velora"]
    assert Article().journal_names == []
