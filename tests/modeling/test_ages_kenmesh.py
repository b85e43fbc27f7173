"""Ages told in numbers: which phrases are ages, which groups they name, what the lexicon makes of them."""

import numpy as np
import pytest

from kenmesh_hf.modeling.ages_kenmesh import AGE_GROUPS, find_ages
from kenmesh_hf.modeling.lexicon_kenmesh import ABSTRACT, TITLE, Lexicon
from kenmesh_hf.modeling.terms_kenmesh import hash_words, split_words

NAMES = list(AGE_GROUPS)


def ages(text: str) -> dict[str, set[str]]:
    """Phrases that tell ages, each with its groups."""
    words, found = split_words(text), find_ages(hash_words([text]))
    phrases: dict[str, set[str]] = {}
    for start, length, group in zip(found.starts, found.lengths, found.groups, strict=True):
        phrases.setdefault(" ".join(words[start : start + length]), set()).add(NAMES[group])
    return phrases


@pytest.mark.parametrize(
    ("text", "phrase", "groups"),
    [
        ("men aged 18-44 years", "aged 18 44 years", {"Adolescent", "Young Adult", "Adult"}),
        ("children 6 to 12 years of age", "6 to 12 years of age", {"Child"}),
        ("a 45-year-old man", "45 year old", {"Middle Aged"}),
        ("mean age was 70.1 ± 8.2 yr", "age was 70 1 8 2 yr", {"Middle Aged", "Aged", "Aged, 80 and over"}),
        ("6-month-old girls", "6 month old", {"Infant"}),
        ("at 3 days of age", "3 days of age", {"Infant, Newborn"}),
        ("older than 80 years", "older than 80 years", {"Aged, 80 and over"}),
        ("aged under 2 years", "aged under 2 years", {"Infant, Newborn", "Infant", "Child, Preschool"}),
        ("AGED 65.2 TO 79.1", "AGED 65 2 TO 79 1", {"Aged"}),
        (
            "the mean age of the patients was 50 years",
            "age of the patients was 50 years",
            {"Adult", "Middle Aged"},
        ),
        ("ages 2, 3 and 4", "ages 2 3 and 4", {"Child, Preschool"}),
    ],
)
def test_ages_are_told_in_many_ways(text, phrase, groups):
    assert ages(text) == {phrase: groups}


def test_a_range_after_a_mean_is_a_range():
    found = ages("median age, 30 years; range 23-81")
    assert found["age 30 years"] == {"Young Adult", "Adult"}
    assert {"Young Adult", "Aged, 80 and over"} < found["age 30 years range 23 81"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "followed for 10 years",
        "aged rats",
        "in 2005, 230 patients (34%) of the age group",
        "aged 900 years",
        "5 mg twice a day for 6 months",
        "stage 3 disease",
        "middle-aged hospitalized patients with COVID-19",
        "older rats were fed for 6 months",
    ],
)
def test_other_numbers_are_no_ages(text):
    assert ages(text) == {}


def test_a_phrase_ends_with_its_text():
    found = find_ages(hash_words(["old men aged", "18 years", "aged 70"]))
    assert found.starts.tolist() == [5] and found.lengths.tolist() == [2]


def test_the_lexicon_takes_ages_for_terms_of_their_groups():
    lexicon = Lexicon.build(["Zinc", "Aged", "Adult"], [[], ["Elderly"], []])
    words = [hash_words(["Zinc in 70-year-old men"]), hash_words(["Patients were aged 30 to 70 years."])]
    hits = lexicon.hits(*words)
    found = {
        (int(lexicon.labels[term]), int(place)) for term, place in zip(hits.terms, hits.places, strict=True)
    }
    # "aged" itself lies within the longer phrase, so it does not stand for old people.
    assert found == {(0, TITLE), (1, TITLE), (1, ABSTRACT), (2, ABSTRACT), (1, 2)}
    spans = lexicon.find(words[1])
    assert (spans.starts[0], spans.lengths[0], spans.inside[0]) == (2, 5, False)


def test_a_lexicon_without_age_groups_finds_none():
    lexicon = Lexicon.build(["Zinc"], [["Aged Zinc"]])
    assert not len(lexicon.hits(*[hash_words(["men aged 70 years"])] * 2).terms)


def test_lexicons_of_earlier_versions_know_no_ages():
    lexicon = Lexicon.build(["Aged"], [[]])
    ages = np.isin(np.arange(len(lexicon.hashes)), lexicon._ages)
    older = {
        name: tensor if name == "base" else tensor[..., ~ages] for name, tensor in lexicon.tensors.items()
    }
    assert ages.sum() == 1 and not len(Lexicon(older).find(hash_words(["70-year-old men"])).terms)
