"""Scores of major topics and of descriptor–qualifier pairs, counted by hand."""

import pytest

from kenmesh_hf.evaluating import HeadingScores
from kenmesh_hf.reading import Article, Heading, Qualifier

BLOOD, URINE = Qualifier("Q000097", "blood", True), Qualifier("Q000652", "urine")
GOLD = Article(
    headings=(
        Heading("D1", "One", True, (BLOOD, URINE)),
        Heading("", "Two", True),
        Heading("D3", "Three", False, (URINE, Qualifier("", "Odd aspect"))),
        Heading("", "Unheard Of", True),
        Heading("D5", "Five"),
    )
)


def tag(ui, major=None, *names):
    told = {} if major is None else {"major": major, "major_score": 0.5}
    return {"ui": ui, "name": ui, "score": 0.9, **told, "qualifiers": [{"name": name} for name in names]}


TAGS = [
    tag("D1", True, "blood"),
    tag("D2", True),
    tag("D3", False, "urine", "oddaspect", "blood"),
    tag("D5", True),
]


def figures(*pairs):
    scores = HeadingScores({"two": "D2"})
    for tags, article in pairs:
        scores.add(tags, article)
    return scores.figures()


def test_counts_are_over_all_articles_and_missing_descriptors_are_missed():
    found = figures((TAGS, GOLD), ([], GOLD))
    # Majors: D1 and D2 of D1, D2, D5 against D1, D2, Unheard Of, twice. Pairs: 3 of 4 against 4, twice.
    assert found == pytest.approx(
        {
            "major_MiP": 2 / 3,
            "major_MiR": 2 / 6,
            "major_MiF": 4 / 9,
            "major_articles": 2,
            "qualifier_MiP": 3 / 4,
            "qualifier_MiR": 3 / 8,
            "qualifier_MiF": 6 / 12,
            "qualifier_articles": 2,
        }
    )


def test_a_heading_given_twice_counts_once():
    twice = Article(headings=(*GOLD.headings, *GOLD.headings))
    assert figures((TAGS, twice)) == figures((TAGS, GOLD))


def test_articles_that_do_not_tell_are_passed_over():
    bare = Article(headings=(Heading("D1", "One"), Heading("D2", "Two")))
    major = Article(headings=(Heading("D1", "One", True),))
    assert figures((TAGS, bare)) == {}
    assert figures((TAGS, GOLD), (TAGS, bare)) == figures((TAGS, GOLD))
    assert set(figures((TAGS, major))) == {"major_MiP", "major_MiR", "major_MiF", "major_articles"}


def test_there_are_no_figures_of_what_no_tag_tells():
    plain = [{"ui": "D1", "name": "One", "score": 0.9}]
    assert figures((plain, GOLD)) == figures(([], GOLD)) == figures() == {}
    assert not [name for name in figures(([tag("D1")], GOLD)) if name.startswith("major")]
