"""Searches for articles like those that have the tags."""

import pytest
from example_tags import FEMALE, HUMANS, HYPERTENSION, TAGS, WOUNDS, make_tag

from kenmesh_hf.errors import InputError
from kenmesh_hf.tagging import search_string


def test_pubmed_search_joins_categories_and_leaves_check_tags_out():
    found = search_string([[*TAGS, WOUNDS, FEMALE]])
    assert found == (
        '("Hypertension"[MeSH Terms] OR "Wounds and Injuries"[MeSH Terms])\nAND\n("Amlodipine"[MeSH Terms])'
    )


def test_check_tags_can_take_part_even_outside_the_tree():
    found = search_string([[HUMANS, FEMALE]], check_tags=True)
    assert found == '("Humans"[MeSH Terms])\nAND\n("Female"[MeSH Terms])'


def test_ovid_search_explodes_and_quotes_operators():
    assert (
        search_string([[WOUNDS, HYPERTENSION]], "ovid") == '(exp Hypertension/ or exp "Wounds and Injuries"/)'
    )
    named = make_tag("D000001", 'Receptors (a/b), "x"', 0.5, "D12")
    assert search_string([[named]], "ovid") == '(exp "Receptors (a/b), x"/)'


def test_headings_that_more_articles_share_come_first():
    found = search_string([[HYPERTENSION, WOUNDS], [WOUNDS], []])
    assert found.index("Wounds") < found.index("Hypertension")
    assert found.count("Wounds") == 1


def test_a_search_for_nothing_or_in_an_unknown_syntax_is_refused():
    with pytest.raises(InputError, match="no tag to search for"):
        search_string([[HUMANS], []])
    with pytest.raises(InputError, match="pubmed, ovid"):
        search_string([TAGS], "embase")


def aspects(tag, major, **qualifiers):
    """The tag with qualifiers, named with underscores, each major or not."""
    given = [{"name": name.replace("_", " "), "major": star} for name, star in qualifiers.items()]
    return tag | {"major": major, "qualifiers": given}


@pytest.mark.parametrize(
    ("tag", "pubmed", "ovid"),
    [
        (aspects(WOUNDS, False), '"Wounds and Injuries"[MeSH Terms]', 'exp "Wounds and Injuries"/'),
        (aspects(WOUNDS, True), '"Wounds and Injuries"[Majr]', 'exp *"Wounds and Injuries"/'),
        (
            aspects(HYPERTENSION, True, drug_therapy=True),
            '"Hypertension/drug therapy"[Majr]',
            "exp *Hypertension/dt",
        ),
        (
            aspects(HYPERTENSION, True, drug_therapy=False),
            '"Hypertension/drug therapy"[Majr]',
            "exp *Hypertension/dt",
        ),
        (
            aspects(HYPERTENSION, False, drug_therapy=False, blood=False),
            '"Hypertension/drug therapy"[MeSH Terms] OR "Hypertension/blood"[MeSH Terms]',
            "exp Hypertension/dt, bl",
        ),
        (
            aspects(HYPERTENSION, True, drug_therapy=True, blood=False),
            '"Hypertension/drug therapy"[Majr] OR "Hypertension/blood"[MeSH Terms]',
            "exp *Hypertension/dt or exp Hypertension/bl",
        ),
        (
            aspects(HYPERTENSION, False, odd_aspect=False),
            '"Hypertension/odd aspect"[MeSH Terms]',
            "exp Hypertension/",
        ),
    ],
)
def test_major_topics_and_qualifiers_are_searched_for(tag, pubmed, ovid):
    assert search_string([[tag]]) == f"({pubmed})"
    assert search_string([[tag]], "ovid") == f"({ovid})"


def test_every_article_is_found_by_the_widest_of_the_tags():
    focused, treated = aspects(HYPERTENSION, True, blood=True), aspects(HYPERTENSION, True, drug_therapy=True)
    assert search_string([[focused], [treated]]) == (
        '("Hypertension/blood"[Majr] OR "Hypertension/drug therapy"[Majr])'
    )
    major, plain = aspects(HYPERTENSION, True), aspects(HYPERTENSION, False)
    assert search_string([[focused], [major]]) == '("Hypertension"[Majr])'
    assert search_string([[focused], [major], [plain]]) == '("Hypertension"[MeSH Terms])'
    loose = aspects(HYPERTENSION, False, blood=False)
    assert search_string([[focused], [loose]]) == '("Hypertension/blood"[MeSH Terms])'
    assert search_string([[loose], [major]]) == '("Hypertension/blood"[MeSH Terms] OR "Hypertension"[Majr])'


def test_a_tag_whose_place_is_outside_mesh_takes_part_by_itself():
    assert search_string([[make_tag("D000001", "Odd", 0.5, "x9"), HYPERTENSION]]) == (
        '("Hypertension"[MeSH Terms])\nAND\n("Odd"[MeSH Terms])'
    )
