"""Terms found in a text: plural, turned round, acronyms, terms within terms."""

import numpy as np
import pytest

from kenmesh_hf.modeling.lexicon_kenmesh import ABSTRACT, INSIDE, TITLE, Hits, Lexicon
from kenmesh_hf.modeling.terms_kenmesh import hash_words

NAMES = (
    "Breast Neoplasms",
    "Neoplasms",
    "Vitamin D",
    "Vitamins",
    "Acquired Immunodeficiency Syndrome",
    "Tomography, X-Ray Computed",
    "Larva",
    "Hemorrhage",
    "Cats",
)
ENTRY_TERMS = (("Neoplasms, Breast", "Mammary Cancer"), (), (), ("Vitamin",), ("AIDS",), ("CAT",), (), (), ())
LABELS = {name: label for label, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon.build(NAMES, ENTRY_TERMS)


def names_in(lexicon: Lexicon, text: str, inside: bool | None = None) -> set[str]:
    spans = lexicon.find(hash_words([text]))
    chosen = np.ones(len(spans.terms), bool) if inside is None else spans.inside == inside
    return {NAMES[lexicon.labels[term]] for term in spans.terms[chosen]}


def hits_of(lexicon: Lexicon, titles: list[str], abstracts: list[str]) -> Hits:
    return lexicon.hits(hash_words(titles), hash_words(abstracts))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a breast neoplasm was seen", "Breast Neoplasms"),
        ("BREAST-NEOPLASMS", "Breast Neoplasms"),
        ("mammary cancers", "Breast Neoplasms"),
        ("Neoplasms, breast", "Breast Neoplasms"),
        ("X-ray computed tomography", "Tomography, X-Ray Computed"),
        ("tomography, x ray computed", "Tomography, X-Ray Computed"),
        ("larvae of the fly", "Larva"),
        ("severe haemorrhages", "Hemorrhage"),
        ("one cat", "Cats"),
    ],
)
def test_a_term_is_found_in_its_other_forms(lexicon, text, name):
    assert name in names_in(lexicon, text)


@pytest.mark.parametrize("text", ["", "...", "the of and", "neo plasm", "mammary and cancer", "breasts"])
def test_nothing_is_found_where_no_term_stands(lexicon, text):
    assert names_in(lexicon, text) == set()


def test_acronyms_are_found_in_capitals_only(lexicon):
    assert names_in(lexicon, "patients with AIDS") == {"Acquired Immunodeficiency Syndrome"}
    assert names_in(lexicon, "it aids healing") == set()
    assert "Tomography, X-Ray Computed" in names_in(lexicon, "CAT scans")
    assert names_in(lexicon, "the cat") == {"Cats"}


def test_one_letter_makes_another_term(lexicon):
    assert names_in(lexicon, "vitamin D levels", inside=False) == {"Vitamin D"}
    assert names_in(lexicon, "vitamin levels") == {"Vitamins"}
    assert names_in(lexicon, "vitamin. D levels", inside=False) == {"Vitamin D"}
    assert names_in(lexicon, "grade D levels") == set()


def test_a_hit_within_a_longer_one_is_marked(lexicon):
    text = "breast neoplasms and other neoplasms"
    assert names_in(lexicon, text, inside=True) == {"Neoplasms"}
    assert names_in(lexicon, text, inside=False) == {"Breast Neoplasms", "Neoplasms"}
    assert names_in(lexicon, "breast neoplasms", inside=False) == {"Breast Neoplasms"}


def test_occurrences_give_text_and_words(lexicon):
    spans = lexicon.find(hash_words(["no term", "of x-ray computed tomography", "larva"]))
    found = {
        (int(text), NAMES[lexicon.labels[term]]): (int(start), int(length))
        for text, start, length, term in zip(
            spans.texts, spans.starts, spans.lengths, spans.terms, strict=True
        )
    }
    # Words are numbered through all texts: two, then five, then one.
    assert found == {(1, "Tomography, X-Ray Computed"): (3, 4), (2, "Larva"): (7, 1)}


def test_a_term_does_not_reach_into_the_next_text(lexicon):
    assert len(lexicon.find(hash_words(["seen in breast", "cancer", "mammary", "cancer"])).terms) == 0


def test_hits_tell_article_place_and_count(lexicon):
    hits = hits_of(lexicon, ["Larvae", "Breast neoplasms"], ["larva and larvae", "none"])
    rows = {
        (int(article), NAMES[lexicon.labels[term]], int(place)): int(count)
        for article, term, place, count in zip(*hits, strict=True)
    }
    assert rows == {
        (0, "Larva", TITLE): 1,
        (0, "Larva", ABSTRACT): 2,
        (1, "Breast Neoplasms", TITLE): 1,
        (1, "Neoplasms", INSIDE): 1,
    }
    assert np.all(np.diff(hits.articles) >= 0)


def test_an_entry_term_gives_way_to_another_labels_name():
    lexicon = Lexicon.build(["Cold Temperature", "Common Cold"], [("Common Cold", "Cold"), ("Cold",)])
    found = lexicon.find(hash_words(["a common cold"]))
    whole = lexicon.labels[found.terms[~found.inside]]
    assert whole.tolist() == [1]
    both = lexicon.find(hash_words(["cold"]))
    assert sorted(lexicon.labels[both.terms].tolist()) == [0, 1]


def test_stop_words_digits_and_letters_alone_are_no_terms():
    lexicon = Lexicon.build(["Who", "5", "Zinc"], [("A",), (), ("WHO",)])
    assert len(lexicon.find(hash_words(["who had a 5"])).terms) == 0
    assert lexicon.labels[lexicon.find(hash_words(["WHO"])).terms].tolist() == [2]


def test_precision_is_the_share_of_articles_that_carry_the_label(lexicon):
    lexicon = Lexicon.build(NAMES, ENTRY_TERMS)
    titles = ["Larvae"] * 40 + ["Haemorrhage"] * 40
    hits = hits_of(lexicon, titles, [""] * 80)
    carried = (lexicon.labels[hits.terms] == LABELS["Larva"]) & (hits.articles != 0)
    lexicon = lexicon.learned([(hits, carried)])
    often, never = (hits_of(lexicon, [text], [""]) for text in ("larva", "hemorrhage"))
    nothing = np.zeros(1)
    assert lexicon.precision(often, nothing, nothing)[0] > 0.85
    assert lexicon.precision(never, nothing, nothing)[0] < 0.15
    # One of the articles without the label is the query itself: without it all carry the label.
    base = lexicon.base[TITLE, 1, 0]
    assert lexicon.precision(often, np.ones(1), nothing)[0] == pytest.approx((39 + 4 * base) / (39 + 4))


def test_an_empty_vocabulary_finds_nothing():
    lexicon = Lexicon.build([], [])
    assert len(lexicon.find(hash_words(["breast neoplasms"])).terms) == 0
    assert len(lexicon.hits(hash_words(["AIDS"]), hash_words([""])).terms) == 0
