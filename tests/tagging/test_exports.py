"""Exports: what other tools are given, read back as they would read it."""

import csv
import io
import json

import pytest

from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Article, Heading, read_articles
from kenmesh_hf.tagging import WRITERS, search_string

ARTICLE = Article(
    title="Amlodipine, “evening” doses\nand more",
    abstract="Older adults.\nTY  - FAKE",
    pmid="31452104",
    journal="Journal of hypertension",
    year=2019,
)


def make_tag(ui, name, score, *numbers):
    return {"ui": ui, "name": name, "score": score, "tree_numbers": list(numbers)}


HYPERTENSION = make_tag("D006973", "Hypertension", 0.91234, "C14.907.489")

AMLODIPINE = make_tag("D017311", "Amlodipine", 0.8, "D03.383")
WOUNDS = make_tag("D014947", "Wounds and Injuries", 0.6, "C26")
HUMANS = make_tag("D006801", "Humans", 0.99, "B01.050")
FEMALE = make_tag("D005260", "Female", 0.95)
TAGS = [HUMANS, HYPERTENSION, AMLODIPINE]


def write(format, *results):
    return "".join(WRITERS[format](results))


def test_json_is_one_array_with_all_tags():
    [first, second] = json.loads(write("json", (ARTICLE, TAGS), (Article(abstract="x"), [])))
    assert first == {
        "pmid": "31452104",
        "title": ARTICLE.title,
        "journal": "Journal of hypertension",
        "year": 2019,
        "tags": TAGS,
    }
    assert second == {"tags": []}
    assert json.loads(write("json")) == []


def test_jsonl_is_one_line_for_each_article():
    lines = write("jsonl", (ARTICLE, TAGS), (Article(title="b"), [])).splitlines()
    assert [json.loads(line)["tags"] for line in lines] == [TAGS, []]


def test_csv_has_a_line_for_each_tag_and_keeps_articles_without():
    rows = list(csv.DictReader(io.StringIO(write("csv", (ARTICLE, TAGS), (Article(title="bare"), [])))))
    assert [row["name"] for row in rows] == ["Humans", "Hypertension", "Amlodipine", ""]
    assert rows[1]["title"] == ARTICLE.title and rows[1]["score"] == "0.9123"
    assert rows[3]["title"] == "bare"


def test_ris_comes_back_with_tags_as_keywords_and_known_ones_once(tmp_path):
    known = Article(title="t", abstract="a", headings=(Heading("", "Humans"), Heading("", "Old keyword")))
    path = tmp_path / "tags.ris"
    path.write_bytes(write("ris", (ARTICLE, TAGS), (known, TAGS)).encode())
    first, second = read_articles(path, format="ris")
    assert (first.pmid, first.journal, first.year) == ("31452104", "Journal of hypertension", 2019)
    assert first.abstract == "Older adults. TY - FAKE"
    assert [heading.name for heading in first.headings] == ["Humans", "Hypertension", "Amlodipine"]
    assert [heading.name for heading in second.headings] == [
        "Humans",
        "Old keyword",
        "Hypertension",
        "Amlodipine",
    ]


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
