"""Words in one spelling, and their hashes."""

import numpy as np
import pytest

from kenmesh_hf.modeling.terms_kenmesh import (
    extend_hashes,
    fold,
    hash_phrase,
    hash_text,
    hash_words,
    is_acronym,
    split_words,
    word_spans,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mouse", "MICE"),
        ("neoplasm", "neoplasms"),
        ("therapy", "therapies"),
        ("virus", "viruses"),
        ("nucleus", "nuclei"),
        ("bacterium", "bacteria"),
        ("diagnosis", "diagnoses"),
        ("larva", "larvae"),
        ("disease", "diseases"),
        ("process", "processes"),
        ("tumor", "tumours"),
        ("edema", "oedema"),
        ("anemia", "anaemia"),
        ("center", "centres"),
        ("fiber", "fibre"),
        ("sulfate", "sulphate"),
        ("localized", "localised"),
        ("β", "beta"),
        ("Sjögren", "Sjogren"),
    ],
)
def test_forms_of_a_word_are_folded_alike(one, other):
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cell", "call"),
        ("il6", "il16"),
        ("gas", "gap"),
        ("as", "a"),
        ("asthma", "asthenia"),
        ("h1n1", "h1n2"),
    ],
)
def test_different_words_stay_different(one, other):
    assert fold(one) != fold(other)


def test_words_and_their_offsets_go_together():
    text = "IL-6 (β-catenin), 5_HT: naïve"
    words = split_words(text)
    assert words == ["IL", "6", "β", "catenin", "5", "HT", "naïve"]
    assert [text[start:end] for start, end in word_spans(text)] == words
    assert split_words("") == word_spans(" ., ") == []


def test_hashes_of_text_never_change():
    # Saved tables hold these numbers, so they must be the same on every machine and in every version.
    assert hash_text("neoplasm") == 12817846044360667364
    assert hash_text("a") != hash_text("b")
    assert 0 < hash_text("") < 1 << 64


@pytest.mark.parametrize(
    ("word", "expected"),
    [("AIDS", True), ("CD4", True), ("A", False), ("aids", False), ("Cat", False), ("55", False)],
)
def test_acronyms_are_words_in_capitals(word, expected):
    assert is_acronym(word) is expected


def test_hashed_words_of_several_texts():
    words = hash_words(["The AIDS virus", "", "viruses"])
    assert words.offsets.tolist() == [0, 3, 3, 4]
    assert words.content.tolist() == [False, True, True, True]
    assert (words.acronyms > 0).tolist() == [False, True, False, False]
    assert words.folded[2] == words.folded[3] == hash_text(fold("virus"))


def test_no_texts_give_no_words():
    words = hash_words([])
    assert words.offsets.tolist() == [0]
    assert len(words.folded) == len(words.content) == 0


def test_a_phrase_is_hashed_by_words_in_their_order():
    assert hash_phrase(["Breast", "Neoplasms"]) == hash_phrase(["breast", "neoplasm"])
    assert hash_phrase(["breast", "cancer"]) != hash_phrase(["cancer", "breast"])
    one, two = (hash_words([word]).folded for word in ("breast", "cancer"))
    assert int(extend_hashes(one, two)[0]) == hash_phrase(["breast", "cancer"])
    assert len(np.unique(extend_hashes(np.repeat(one, 2), np.concatenate([one, two])))) == 2
