"""Articles with headings and qualifiers, sets of PMIDs, the newest version, and the report."""

import pytest

from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Article, Heading, PmidSet, Qualifier, ReadReport
from kenmesh_hf.reading.records import latest_versions


def test_dict_has_six_keys_and_others_only_where_present():
    row = Article(title="A", pmid="1").to_dict()
    assert row == {"pmid": "1", "title": "A", "abstract": "", "journal": None, "year": None, "mesh": []}
    full = Article("A", "B", "1", "J", 2020, (Heading("D1", "One", True),), pmcid="PMC1", version=2)
    assert full.to_dict()["pmcid"] == "PMC1"
    assert Article.from_dict(full.to_dict()) == full


def test_from_dict_understands_numbers_and_plain_descriptors():
    article = Article.from_dict(
        {"pmid": 7, "title": " A ", "year": "1999", "mesh": ["D000818"], "unknown": 1}
    )
    assert (article.pmid, article.title, article.year) == ("7", "A", 1999)
    assert article.headings == (Heading("D000818"),)


@pytest.mark.parametrize(
    "row",
    [
        {"title": ["a"]},
        {"year": "soon"},
        {"year": float("inf")},
        {"mesh": 7},
        {"mesh": "Humans"},
        {"mesh": {"ui": "D1"}},
        {"mesh": True},
        {"mesh": [3]},
        {"mesh": [""]},
        {"mesh": [{"major": True}]},
        {"mesh": [{"ui": "D1", "name": 3}]},
        {"mesh": [{"ui": "D1", "qualifiers": "blood"}]},
        {"mesh": [{"ui": "D1", "qualifiers": [3]}]},
        {"mesh": [{"ui": "D1", "qualifiers": [""]}]},
        {"mesh": [{"ui": "D1", "qualifiers": [{"ui": "Q1", "name": []}]}]},
        {"mesh": [{"ui": "D1", "qualifiers": [{"major": True}]}]},
        {"abstract": True},
    ],
)
def test_from_dict_refuses_wrong_types(row):
    with pytest.raises(ValueError, match="must"):
        Article.from_dict(row)


def test_half_a_character_becomes_one_that_can_be_written():
    row = {"title": "Zinc \ud83d in", "mesh": [{"name": "Caf\ud83d", "qualifiers": [{"name": "\ud83dnew"}]}]}
    article = Article.from_dict(row)
    assert article.title == "Zinc ? in"
    assert article.headings == (Heading("", "Caf?", False, (Qualifier("", "?new"),)),)


def test_qualifiers_are_kept_where_there_are_any():
    plain, full = (
        Heading("D1", "One"),
        Heading("D2", "Two", True, (Qualifier("Q000097", "blood"),)),
    )
    rows = Article(headings=(plain, full)).to_dict()["mesh"]
    assert rows == [
        {"ui": "D1", "name": "One", "major": False},
        {
            "ui": "D2",
            "name": "Two",
            "major": True,
            "qualifiers": [{"ui": "Q000097", "name": "blood", "major": False}],
        },
    ]
    assert Article.from_dict({"mesh": rows}).headings == (plain, full)


def test_a_qualifier_is_known_by_ui_or_name_even_without_its_blanks():
    given = [{"name": "adverseeffects"}, {"ui": "Q000188"}, "Blood", {"ui": "Q9", "name": "new"}]
    [heading] = Article.from_dict({"mesh": [{"ui": "D1", "qualifiers": given}]}).headings
    assert heading.qualifiers == (
        Qualifier("Q000009", "adverse effects"),
        Qualifier("Q000188", "drug therapy"),
        Qualifier("Q000097", "blood"),
        Qualifier("Q9", "new"),
    )


def test_a_heading_is_major_if_a_qualifier_is():
    row = {"ui": "D1", "major": False, "qualifiers": [{"name": "blood"}, {"name": "urine", "major": True}]}
    [heading] = Article.from_dict({"mesh": [row]}).headings
    assert heading.major and [item.major for item in heading.qualifiers] == [False, True]


def test_descriptors_come_once_and_only_with_ui():
    headings = (Heading("D2"), Heading("D1", "One"), Heading("D2", major=True), Heading("", "Nameless"))
    assert Article(headings=headings).descriptors == ("D2", "D1")


def test_names_get_their_uis():
    blood = (Qualifier("Q000097", "blood"),)
    article = Article(
        headings=(Heading("", "Humans", True, blood), Heading("", "Unheard of"), Heading("D1", "One"))
    )
    named = article.with_uis({"humans": "D006801", "one": "D2"})
    assert named.headings == (
        Heading("D006801", "Humans", True, blood),
        Heading("", "Unheard of"),
        Heading("D1", "One"),
    )
    assert (article.unresolved, named.unresolved) == (("Humans", "Unheard of"), ("Unheard of",))


@pytest.mark.parametrize(
    ("method", "human"), [(None, True), ("Human", True), ("Automated", False), ("Curated", False)]
)
def test_human_indexed(method, human):
    assert Article(headings=(Heading("D1"),), indexing_method=method).human_indexed is human
    assert not Article(indexing_method=method).human_indexed


def test_pmid_set_keeps_numbers_and_anything_else_apart():
    pmids = PmidSet(["1", "40000000", "007", "x1", "99999999999"])
    assert all(pmid in pmids for pmid in ("1", "40000000", "007", "x1", "99999999999"))
    assert not any(pmid in pmids for pmid in ("7", "2", "0", "39999999", "x", "88888888888"))
    assert len(pmids) == 5


def test_latest_versions_in_any_order():
    newest = Article(title="new", pmid="1", version=2)
    old = Article(title="old", pmid="1", version=1, date_revised="2022-01-01")
    nameless = [Article(title="x"), Article(title="y")]
    for order in ([newest, old], [old, newest]):
        assert list(latest_versions([*order, *nameless])) == [newest, *nameless]


def test_latest_versions_by_revision_then_last():
    early, late = (
        Article("a", pmid="1", date_revised="2020-01-01"),
        Article("b", pmid="1", date_revised="2021-01-01"),
    )
    assert list(latest_versions([late, early])) == [late]
    assert list(latest_versions([early, Article("c", pmid="1", date_revised="2020-01-01")]))[0].title == "c"
    assert list(latest_versions([early, late], deleted=PmidSet(["1"]))) == []


def test_report_counts_and_names_places():
    report = ReadReport(read=1200)
    for line in range(5):
        report.skip("broken JSON", f"a.jsonl, line {line}")
    report.note("older version of a PMID", "b.xml, record 3")
    assert not report.ok
    assert report.summary().splitlines() == [
        "1,200 articles read, 5 skipped",
        "  skipped: 5 × broken JSON (a.jsonl, line 0; a.jsonl, line 1; a.jsonl, line 2; …)",
        "  note: 1 × older version of a PMID (b.xml, record 3)",
    ]
    assert report.to_dict()["skipped"] == {"broken JSON": 5}


def test_notes_leave_a_report_ok_and_strict_raises():
    report = ReadReport(strict=True)
    report.note("deleted by NLM", "a.xml")
    assert report.ok
    with pytest.raises(InputError, match="a.xml, record 2: broken XML"):
        report.skip("broken XML", "a.xml, record 2")
