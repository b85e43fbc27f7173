"""Exports: what other tools are given, read back as they would read it."""

import csv
import io
import json

import pytest
from example_tags import AMLODIPINE, HUMANS, HYPERTENSION, TAGS, WOUNDS

from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Article, Heading, read_articles
from kenmesh_hf.tagging import WRITERS
from kenmesh_hf.tagging.exports import csv_rows

ARTICLE = Article(
    title="Amlodipine, “evening” doses\nand more",
    abstract="Older adults.\nTY  - FAKE",
    pmid="31452104",
    journal="Journal of hypertension",
    year=2019,
)


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


def full(tag, major, *qualifiers):
    """A tag that says whether it is a major topic, and under which aspects."""
    names = ("name", "score", "major")
    given = [dict(zip(names, qualifier, strict=True)) for qualifier in qualifiers]
    return tag | {"major": major, "major_score": 0.75, "qualifiers": given}


FULL = [
    HUMANS,
    full(HYPERTENSION, True, ("drug therapy", 0.8, True), ("epidemiology", 0.6, False)),
    full(AMLODIPINE, True, ("therapeutic use", 0.7, False)),
    full(WOUNDS, False),
]


def test_headings_that_are_known_by_ui_alone_do_not_come_twice():
    known = Article(title="t", headings=(Heading(TAGS[0]["ui"]),))
    assert write("nbib", (known, TAGS)).count("MH  - ") == len(TAGS)


def test_medline_is_read_as_pubmeds_own_file(tmp_path):
    path = tmp_path / "tags.nbib"
    path.write_text(write("nbib", (ARTICLE, FULL), (Article(title="t"), [])), encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "PMID- 31452104"
    assert [line for line in lines if line.startswith("MH")] == [
        "MH  - Humans",
        "MH  - Hypertension/*drug therapy/epidemiology",
        "MH  - *Amlodipine/therapeutic use",
        "MH  - Wounds and Injuries",
    ]
    first, second = read_articles(path)
    assert [heading.major for heading in first.headings] == [False, True, True, False]
    assert (second.title, second.pmid, second.headings) == ("t", None, ())


def test_ris_has_full_headings(tmp_path):
    lines = write("ris", (ARTICLE, FULL)).splitlines()
    assert [line[6:] for line in lines if line.startswith("KW")] == [
        "Humans",
        "Hypertension/*drug therapy/epidemiology",
        "*Amlodipine/therapeutic use",
        "Wounds and Injuries",
    ]


def test_csv_has_full_headings_only_where_tags_tell_them():
    plain = write("csv", (ARTICLE, TAGS)).splitlines()
    assert plain[0] == "pmid,title,journal,year,ui,name,score,tree_numbers"
    rows = list(csv.DictReader(io.StringIO(write("csv", (Article(title="bare"), []), (ARTICLE, FULL)))))
    assert [(row["heading"], row["major"], row["major_score"]) for row in rows] == [
        ("", "", ""),
        ("Humans", "", ""),
        ("Hypertension/*drug therapy/epidemiology", "Y", "0.7500"),
        ("*Amlodipine/therapeutic use", "Y", "0.7500"),
        ("Wounds and Injuries", "N", "0.7500"),
    ]


def test_a_csv_file_goes_on_with_the_columns_it_has():
    for first, later in ((TAGS, FULL), (FULL, TAGS), ([], FULL)):
        begun = "".join(csv_rows([(ARTICLE, first)]))
        text = begun + "".join(csv_rows([(ARTICLE, later)], begun.splitlines()[0]))
        [header, *rows] = csv.reader(io.StringIO(text))
        assert len(rows) == max(1, len(first)) + len(later)
        assert {len(row) for row in rows} == {len(header)} == {8 if first is TAGS else 11}


def test_a_csv_file_that_begins_without_any_tag_has_whole_headings_later():
    begun = "".join(csv_rows([(Article(title="bare"), [])]))
    whole, plain = ("Hypertension/*drug therapy/epidemiology", "Y"), ("Hypertension", "")
    for later, told in ((FULL, whole), (TAGS, plain)):
        text = begun + "".join(csv_rows([(ARTICLE, later)], begun.splitlines()[0]))
        rows = list(csv.DictReader(io.StringIO(text)))
        assert (rows[2]["heading"], rows[2]["major"]) == told


def test_tags_in_a_wrong_form_are_refused():
    for bad in ({"qualifiers": "drug therapy"}, {"qualifiers": [{"score": 0.5}]}, {"qualifiers": [3]}):
        for format in ("csv", "ris", "nbib"):
            with pytest.raises(InputError, match="The tag D006973 cannot be exported: 'qualifiers' must"):
                write(format, (ARTICLE, [HYPERTENSION | bad]))
    with pytest.raises(InputError, match="The tag D006973 cannot be exported: 'major' must be true or false"):
        write("ris", (ARTICLE, [HYPERTENSION | {"major": "N"}]))
    with pytest.raises(InputError, match="'major_score' must be a number, not 'high'"):
        write("csv", (ARTICLE, [HYPERTENSION | {"major": True, "major_score": "high"}]))
