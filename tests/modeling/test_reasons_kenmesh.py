"""Reasons are what they say they are: what a score loses without a word, the journal, a neighbour."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tiny import JOURNALS, tiny_articles, tiny_vocabulary
from tiny_model import UNSEEN, build_tagger

from kenmesh_hf.indexing import build_candidates
from kenmesh_hf.modeling import article_words_kenmesh, erasure_kenmesh, pruned_neighbours_kenmesh
from kenmesh_hf.modeling.article_words_kenmesh import ArticleWords
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.modeling.erasure_kenmesh import TEXTLESS, WHOLE, WITHOUT_JOURNAL, Erasures, Variants
from kenmesh_hf.modeling.evidence_kenmesh import FEATURES
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.modeling.terms_kenmesh import word_spans
from kenmesh_hf.reading import Article

TRAINING = tiny_articles(120)
VOCABULARY = tiny_vocabulary()
VOTES = [row for row, name in enumerate(FEATURES) if "vote" in name or name.startswith("best")]
OTHERS = [row for row in range(len(FEATURES)) if row not in VOTES]
# In the title a term twice and within a longer one, capitals, a word that stands alone and in a term.
NAMES = VOCABULARY.names
ARTICLE = Article(
    title=f"{NAMES[5].upper()} and {NAMES[6]} in {NAMES[5]}",
    abstract=f"{UNSEEN[0].abstract} More of {NAMES[6].split()[0]}, {NAMES[8]} and the {NAMES[5]}.",
    journal=JOURNALS[1],
)


@pytest.fixture(scope="module", params=["exact", "pruned", "dense"])
def candidates(request) -> Iterator[KenMeSHCandidates]:
    """Candidates with each form of the neighbour index."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "pruned":
            patch.setattr(pruned_neighbours_kenmesh, "PRUNED_SIZE", 1)
        options = CandidateOptions(index="dense" if request.param == "dense" else "sparse")
        words = sorted({word.lower() for a in TRAINING for word in f"{a.title} {a.abstract}".split()})
        vectors = np.random.default_rng(0).normal(size=(len(words), 16))
        yield build_candidates(TRAINING, VOCABULARY, options, word_vectors=(words, vectors))


def erase(
    candidates: KenMeSHCandidates, article: Article, ranks: tuple[int, ...] = ()
) -> tuple[ArticleWords, Variants, np.ndarray, np.ndarray]:
    """Words and variants of an article, its candidates, and their numbers in each variant."""
    fields = [article.title], [article.abstract], [article.journal], [article.pmid]
    [findings] = candidates.look_up(*fields)
    labels = candidates(*fields).label_ids.astype(np.int64)
    [words] = ArticleWords.of_all([(article.title, article.abstract)], candidates.lexicon)
    variants = Variants(words, np.array(ranks, np.int64))
    return words, variants, labels, Erasures(candidates, words, findings, labels, variants).numbers()


def numbers_of(candidates: KenMeSHCandidates, article: Article, labels: np.ndarray) -> np.ndarray:
    """The numbers of labels when the candidates of an article are found; not a number where one is none."""
    batch = candidates([article.title], [article.abstract], [article.journal], [article.pmid])
    found = dict(zip(batch.label_ids.tolist(), batch.features, strict=True))
    return np.array([found.get(label, np.full(len(FEATURES), np.nan)) for label in labels.tolist()])


def without(article: Article, word: str) -> Article:
    """The article with a word taken out wherever it stands."""

    def cut(text: str) -> str:
        spans = [span for span in word_spans(text) if text[slice(*span)].lower() == word]
        for start, end in reversed(spans):
            text = text[:start] + text[end:]
        return text

    return replace(article, title=cut(article.title), abstract=cut(article.abstract))


@pytest.mark.parametrize("article", [ARTICLE, *UNSEEN[:4], *TRAINING[:3], Article(title=NAMES[5])])
def test_a_whole_article_has_the_numbers_of_its_candidates(candidates, article):
    _, _, labels, numbers = erase(candidates, article)
    assert np.allclose(numbers[:, WHOLE], numbers_of(candidates, article, labels), atol=1e-5)


@pytest.mark.parametrize("article", [ARTICLE, UNSEEN[1], TRAINING[2]])
def test_without_a_word_numbers_are_those_of_the_article_without_it(candidates, article):
    """All but the votes of neighbours, which keep their order here."""
    words, variants, labels, numbers = erase(candidates, article)
    assert words.words and len(set(words.words)) == len(words.words)
    for number, word in enumerate(words.words):
        truth = numbers_of(candidates, without(article, word), labels)
        both = ~np.isnan(truth[:, 0])
        here = numbers[both, variants.words + number]
        assert np.allclose(here[:, OTHERS], truth[both][:, OTHERS], atol=1e-5), word
    votes = numbers[:, variants.words :, FEATURES.index("vote_all")]
    assert np.ptp(votes, axis=1).max() > 0.01


@pytest.mark.parametrize("article", [ARTICLE, UNSEEN[2]])
def test_without_a_word_neighbours_are_as_near_as_the_article_without_it_has_them(candidates, article):
    [findings] = candidates.look_up([article.title], [article.abstract], [None])
    words, variants, _, _ = erase(candidates, article)
    erasures = Erasures(candidates, words, findings, np.array([1]), variants)
    found = candidates.index.similarities(*erasures.count_words(), findings.near, findings.own)
    assert np.allclose(found[:, WHOLE], findings.similarities, atol=1e-5)
    assert np.all(found[:, TEXTLESS] == 0)
    for number, word in enumerate(words.words[:10]):
        shorter = without(article, word)
        [truth] = candidates.look_up([shorter.title], [shorter.abstract], [None])
        near = dict(zip(truth.near.tolist(), truth.similarities, strict=True))
        expected = [near.get(article, 0.0) for article in findings.near.tolist()]
        assert np.allclose(found[:, variants.words + number], expected, atol=1e-5), word


def test_of_a_long_text_the_first_words_are_taken_out(candidates, monkeypatch):
    for module in (article_words_kenmesh, erasure_kenmesh):
        monkeypatch.setattr(module, "LONGEST", 9)
    words, variants, labels, numbers = erase(candidates, ARTICLE)
    assert 0 < len(words.words) <= 9
    assert np.allclose(numbers[:, WHOLE], numbers_of(candidates, ARTICLE, labels), atol=1e-5)
    # A word that comes again further on stays there.
    last = words.words[-1]
    assert words.places[-1] == [words.places[-1][0]]
    assert variants.neighbours == variants.words + words.words.index(last) + 1


def test_without_its_journal_an_article_has_the_numbers_of_one_without(candidates):
    for article in (ARTICLE, TRAINING[0]):
        _, _, labels, numbers = erase(candidates, article)
        truth = numbers_of(candidates, replace(article, journal=None), labels)
        both = ~np.isnan(truth[:, 0])
        assert both.any()
        assert np.allclose(numbers[both, WITHOUT_JOURNAL], truth[both], atol=1e-5)


def test_a_neighbour_left_out_has_no_vote(candidates):
    [findings] = candidates.look_up([ARTICLE.title], [ARTICLE.abstract], [ARTICLE.journal])
    first = set(findings.voted[: findings.lengths[0]].tolist())
    _, variants, labels, numbers = erase(candidates, ARTICLE, ranks=(0,))
    share = FEATURES.index("vote_all")
    change = numbers[:, WHOLE, share] - numbers[:, variants.neighbours, share]
    carried = np.isin(labels, list(first))
    everyone = numbers[:, WHOLE, share] > 1 - 1e-6
    assert np.all(change[carried & ~everyone] > 0) and np.all(change[~carried] <= 0)


ENCODER = {"encoder": True, "word_path": True}


@pytest.fixture(
    scope="module", params=[{}, {"two_channels": False}, ENCODER, ENCODER | {"two_channels": False}]
)
def tagger(request) -> MeSHIndexingPipeline:
    return build_tagger(**request.param)


def test_weights_are_what_the_score_loses(tagger):
    weights, falls, strongest, greatest = [], [], [], []
    for article in UNSEEN[:6]:
        for tag in tagger(article.as_input() | {"pmid": None}, evidence=True, evidence_words=99):
            here = []
            for word in tag["evidence"]["words"] + tag["evidence"]["against"]:
                shorter = without(article, word["word"].lower()).as_input() | {"pmid": None}
                scores = {t["ui"]: t["score"] for t in tagger(shorter, threshold=0.0)}
                weights.append(word["weight"])
                here.append(tag["score"] - scores.get(tag["ui"], 0.0))
            falls += here
            strongest.append(here[0])
            greatest.append(max(here))
    assert len(weights) > 100 and np.corrcoef(weights, falls)[0, 1] > 0.7
    assert np.mean(strongest) > 0.9 * np.mean(greatest) > 0.05


def test_the_journal_and_the_whole_text_have_their_weights(tagger):
    for article in UNSEEN[:4]:
        row = article.as_input() | {"pmid": None}
        elsewhere = {tag["ui"]: tag["score"] for tag in tagger(row | {"journal": None}, threshold=0.0)}
        for tag in tagger(row, evidence=True):
            evidence = tag["evidence"]
            assert evidence["journal_weight"] == pytest.approx(tag["score"] - elsewhere[tag["ui"]], abs=1e-4)
            assert 0 <= evidence["without_text"] <= 1
            shown = sum(word["weight"] for word in evidence["words"] + evidence["against"])
            assert abs(evidence["all_words"] - shown) < 1


def test_words_come_strongest_first_and_stand_where_they_are_said_to(tagger):
    for article in UNSEEN[:4]:
        row = article.as_input()
        for tag in tagger(row, evidence=True, evidence_words=6):
            for name, sign in (("words", 1), ("against", -1)):
                named = tag["evidence"][name]
                weights = [sign * word["weight"] for word in named]
                assert (
                    len(named) <= 6
                    and weights == sorted(weights, reverse=True)
                    and min(weights, default=1) > 0
                )
                assert len({word["word"].lower() for word in named}) == len(named)
                assert all(row[w["field"]][w["start"] : w["end"]] == w["word"] for w in named)


def test_a_text_of_any_length_has_reasons(tagger):
    long = " ".join(article.abstract for article in UNSEEN) * 40
    assert len(long.split()) > 20_000
    for row in (
        {"abstract": long},
        {"title": NAMES[5]},
        {"title": "", "abstract": "…"},
        {"journal": JOURNALS[0]},
    ):
        for tag in tagger(row, top_k=3, evidence=True):
            evidence = tag["evidence"]
            named = evidence["words"] + evidence["against"]
            assert 0 <= evidence["without_text"] <= 1 and all(0 < abs(word["weight"]) <= 1 for word in named)
            assert all(row[word["field"]][word["start"] : word["end"]] == word["word"] for word in named)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_reasons_do_not_depend_on_the_batch(tagger, batch_size):
    rows = [article.as_input() for article in UNSEEN[:6]]
    together, apart = (tagger(rows, evidence=True, batch_size=size) for size in (6, batch_size))
    for one, other in zip(together, apart, strict=True):
        for tag, same in zip(one, other, strict=True):
            for name in ("words", "neighbours"):
                assert [word["weight"] for word in tag["evidence"][name]] == pytest.approx(
                    [word["weight"] for word in same["evidence"][name]], abs=1e-5
                )
