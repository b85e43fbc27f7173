"""Decisions: what they do to tags, who and when, conflicts, undo and redo, and what is handed in."""

import csv
import io
import json
from contextlib import closing

import pytest

from kenmesh_hf.desk import (
    Conflict,
    Decision,
    Desk,
    NotOnDesk,
    decide,
    hand_in,
    keep_tags,
    list_collections,
    open_collection,
    redo,
    show_article,
    undo,
)
from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Article, Heading, read_articles

ZINC, IRON, LEAD = "D015032", "D007501", "D007854"
THERAPY = {"ui": "Q000627", "name": "therapeutic use", "major": True}


def said(ui, name, score, **more):
    return {"ui": ui, "name": name, "score": score, "threshold": 0.5, "tree_numbers": ["D01.268"]} | more


@pytest.fixture
def desk(tmp_path):
    """Two articles: Zinc proposed, Iron a suggestion."""
    with closing(Desk(tmp_path / "review.sqlite")) as desk:
        old = (Heading("D000818", "Animals"),)
        articles = [Article("Zinc", "In blood.", pmid="1", headings=old), Article("Iron", pmid="2")]
        open_collection(desk, "export.ris", "Ana", articles)
        tags = [said(ZINC, "Zinc", 0.9), said(IRON, "Iron", 0.2)]
        keep_tags(desk, "model-1", [(1, tags, None), (2, tags, None)])
        yield desk


class Person:
    """Decides on an article, always having seen it as it is."""

    def __init__(self, desk, who="Ana"):
        self.desk, self.who, self.count = desk, who, 0

    def __call__(self, action, ui=None, number=1, **more):
        self.count += 1
        version = more.pop("version", show_article(self.desk, number)["version"])
        key = more.pop("key", f"{self.who}-{self.count}")
        return decide(self.desk, number, Decision(key, self.who, version, action, ui, **more))

    def undo(self):
        return undo(self.desk, 1, self.who)

    def redo(self):
        return redo(self.desk, 1, self.who)


@pytest.fixture
def ana(desk):
    return Person(desk)


@pytest.fixture
def ben(desk):
    return Person(desk, "Ben")


def kept(shown):
    return [tag["name"] for tag in shown["tags"] if tag["kept"]]


def tag(shown, ui=ZINC):
    return next((tag for tag in shown["tags"] if tag["ui"] == ui), None)


def test_what_the_model_proposes_is_kept_unless_struck(desk, ana):
    assert kept(show_article(desk, 1)) == ["Zinc"]
    assert kept(ana("strike", ZINC)) == []
    assert kept(ana("accept", IRON)) == ["Iron"]
    assert kept(ana("clear", ZINC)) == ["Zinc", "Iron"]
    assert kept(ana("add", LEAD, name="Lead", tree_numbers=("D01.1",))) == ["Zinc", "Lead", "Iron"]
    assert tag(show_article(desk, 1), LEAD)["decision"] == "added"
    assert kept(ana("clear", LEAD)) == ["Zinc", "Iron"] and tag(show_article(desk, 1), LEAD) is None
    assert tag(ana("add", IRON, name="Iron"), IRON)["decision"] == "accepted"


def test_who_when_and_what_the_model_said_are_kept(desk, ana, ben):
    ana("accept", ZINC)
    shown = ben("major", ZINC, major=True)
    assert tag(shown)["decided"]["who"] == "Ben" and tag(shown)["decided"]["at"].startswith("20")
    with desk.reading() as connection:
        first, second = connection.execute("SELECT * FROM decision ORDER BY id").fetchall()
    assert (first["who"], first["action"], first["model"]) == ("Ana", "accept", "model-1")
    assert json.loads(first["said"]) == {"score": 0.9, "threshold": 0.5}
    assert json.loads(second["before"])["major"] is False and json.loads(second["after"])["major"] is True


def test_major_topics_and_qualifiers(ana):
    shown = ana("qualify", ZINC, qualifiers=[THERAPY])
    assert (
        tag(shown)["qualifiers"] == [THERAPY] and tag(shown)["major"] and tag(shown)["decision"] == "accepted"
    )
    shown = ana("major", ZINC, major=False)
    assert not tag(shown)["major"] and tag(shown)["qualifiers"] == [THERAPY | {"major": False}]
    assert tag(ana("qualify", ZINC, qualifiers=[]))["qualifiers"] == []


def test_what_the_model_says_of_majors_and_qualifiers_is_the_start(desk):
    open_collection(desk, "more", "Ana", [Article("Zinc")])
    full = said(ZINC, "Zinc", 0.9, major=True, major_score=0.8, qualifiers=[THERAPY | {"score": 0.7}])
    keep_tags(desk, "model-1", [(3, [full], None)])
    found = tag(show_article(desk, 3))
    assert found["major"] and found["qualifiers"] == [THERAPY] and found["decision"] == ""


def test_states_go_round(desk, ana):
    assert ana("done")["state"] == "done" and ana("reopen")["state"] == "todo"
    shown = ana("skip")
    assert shown["state"] == "skipped" and shown["decided"]["who"] == "Ana"
    assert list_collections(desk)[0]["skipped"] == 1


def test_a_decision_sent_twice_is_made_once(desk, ana):
    first = ana("strike", ZINC, key="same key")
    again = ana("strike", ZINC, key="same key", version=0)
    assert again == first and again["version"] == 1


def test_whoever_comes_later_is_told_and_can_choose(desk, ana, ben):
    ana("strike", ZINC)
    ana("accept", IRON)
    with pytest.raises(Conflict, match="Ana changed this article after you saw it") as told:
        ben("accept", ZINC, version=1)
    assert [(row["who"], row["action"], row["ui"]) for row in told.value.by] == [("Ana", "accept", IRON)]
    assert kept(told.value.article) == kept(show_article(desk, 1)) == ["Iron"]
    assert kept(ben("accept", ZINC, version=told.value.article["version"])) == ["Zinc", "Iron"]


def test_undo_and_redo_follow_one_person_through_a_collection(desk, ana, ben):
    ana("strike", ZINC)
    ana("add", LEAD, number=2, name="Lead", tree_numbers=("D01.1",))
    ben("accept", IRON, number=2)
    assert kept(ana.undo()) == ["Zinc", "Iron"] and ana.undo()["id"] == 1
    assert kept(show_article(desk, 1)) == ["Zinc"] and kept(show_article(desk, 2)) == ["Zinc", "Iron"]
    with pytest.raises(NotOnDesk, match="nothing to undo"):
        ana.undo()
    assert kept(ana.redo()) == []
    assert tag(ana.redo(), LEAD) == tag(show_article(desk, 2), LEAD) != None  # noqa: E711
    assert tag(show_article(desk, 2), LEAD)["tree_numbers"] == ["D01.1"]
    with pytest.raises(NotOnDesk, match="nothing to redo"):
        ana.redo()


def test_a_new_decision_ends_what_could_be_made_again(ana):
    ana("strike", ZINC)
    ana("accept", IRON)
    ana.undo()
    ana("done")
    with pytest.raises(NotOnDesk):
        ana.redo()
    assert ana.undo()["state"] == "todo"
    assert kept(ana.undo()) == ["Zinc"]


def test_undo_does_not_overwrite_what_somebody_else_decided_since(desk, ana, ben):
    ana("strike", ZINC)
    ben("accept", ZINC)
    with pytest.raises(Conflict, match="Somebody else has decided otherwise"):
        ana.undo()
    assert tag(show_article(desk, 1))["decision"] == "accepted"
    assert tag(ben.undo())["decision"] == "struck"
    assert tag(ana.undo())["decision"] == ""


def test_an_undone_decision_is_a_change_to_others(ana, ben):
    seen = ana("strike", ZINC)["version"]
    ana.undo()
    with pytest.raises(Conflict, match="^Ana changed") as told:
        ben("accept", ZINC, version=seen)
    assert told.value.by[0]["undone"]


def test_what_cannot_be_decided_is_refused(desk, ana):
    with pytest.raises(NotOnDesk, match="D007854 is not among the tags"):
        ana("strike", LEAD)
    with pytest.raises(NotOnDesk, match="no article 99"):
        ana("done", number=99, version=0)
    open_collection(desk, "more", "Ana", [Article("Zinc")])
    with pytest.raises(InputError, match="no tags yet"):
        ana("done", number=3)
    assert show_article(desk, 3)["version"] == 0


def test_what_was_decided_at_another_desk_is_refused(desk, ana):
    opened_at = list_collections(desk)[0]["opened_at"]
    with pytest.raises(NotOnDesk, match="decided at another desk"):
        ana("strike", ZINC, opened_at="2020-01-01T00:00:00+00:00")
    assert kept(show_article(desk, 1)) == ["Zinc"]
    assert kept(ana("strike", ZINC, opened_at=opened_at)) == []


def test_what_is_added_before_the_tags_come_stays(desk, ana):
    open_collection(desk, "more", "Ana", [Article("Zinc")])
    ana("add", ZINC, number=3, name="Zinc", tree_numbers=("D01.268",))
    keep_tags(desk, "model-1", [(3, [said(ZINC, "Zinc", 0.3), said(IRON, "Iron", 0.8)], None)])
    shown = show_article(desk, 3)
    assert kept(shown) == ["Iron", "Zinc"] and tag(shown)["score"] == 0.3


def test_undo_of_what_was_added_before_the_tags_came_leaves_what_the_model_says(desk, ana):
    open_collection(desk, "more", "Ana", [Article("Zinc")])
    ana("add", ZINC, number=3, name="Zinc", tree_numbers=("D01.268",))
    full = said(ZINC, "Zinc", 0.9, major=True, qualifiers=[THERAPY | {"score": 0.7}])
    keep_tags(desk, "model-1", [(3, [full], None)])
    taken_back = tag(undo(desk, 2, "Ana"))
    assert (taken_back["decision"], taken_back["proposed"], taken_back["score"]) == ("", True, 0.9)
    assert taken_back["major"] and taken_back["qualifiers"] == [THERAPY]
    made_again = tag(redo(desk, 2, "Ana"))
    assert (made_again["decision"], made_again["score"]) == ("added", 0.9)


def test_what_was_taken_back_before_the_tags_came_can_be_undone_after(desk, ana):
    open_collection(desk, "more", "Ana", [Article("Zinc")])
    ana("add", ZINC, number=3, name="Zinc", tree_numbers=("D01.268",))
    ana("clear", ZINC, number=3)
    keep_tags(desk, "model-1", [(3, [said(ZINC, "Zinc", 0.3)], None)])
    assert kept(undo(desk, 2, "Ana")) == ["Zinc"] and kept(undo(desk, 2, "Ana")) == []


def test_a_decision_taken_back_leaves_nothing_of_it(desk, ana):
    before = tag(show_article(desk, 1))
    ana("qualify", ZINC, qualifiers=[THERAPY])
    assert tag(ana("clear", ZINC)) | {"decided": None} == before


def handed_in(desk, format, **options):
    return "".join(hand_in(desk, format, **options))


def test_what_is_done_is_handed_in_in_every_form(desk, ana, tmp_path):
    with pytest.raises(InputError, match="No article is done yet"):
        hand_in(desk, "ris")
    ana("add", LEAD, name="Lead", tree_numbers=("D01.1",))
    ana("qualify", ZINC, qualifiers=[THERAPY])
    ana("done")
    [row] = map(json.loads, handed_in(desk, "jsonl").splitlines())
    assert row["pmid"] == "1" and row["abstract"] == "In blood." and row["state"] == "done"
    assert [item["decision"] for item in row["decisions"]] == ["accepted", "added"]
    assert "KW  - Zinc/*therapeutic use\r\nKW  - Lead" in handed_in(desk, "ris")
    nbib = handed_in(desk, "nbib")
    assert "MH  - Zinc/*therapeutic use\nMH  - Lead\n" in nbib and "Animals" not in nbib
    rows = list(csv.DictReader(io.StringIO(handed_in(desk, "csv"))))
    assert [(r["ui"], r["major"], r["tree_numbers"]) for r in rows] == [
        (ZINC, "Y", "D01.268"),
        (LEAD, "N", "D01.1"),
    ]
    assert handed_in(desk, "pubmed") == '("Zinc/therapeutic use"[Majr] OR "Lead"[MeSH Terms])\n'
    assert handed_in(desk, "ovid") == "(exp *Zinc/tu or exp Lead/)\n"
    assert len(handed_in(desk, "jsonl", only_done=False).splitlines()) == 2
    with pytest.raises(InputError, match="Unknown format 'docx'"):
        hand_in(desk, "docx")


def test_what_is_handed_in_is_read_by_every_command(desk, ana, tmp_path):
    ana("qualify", ZINC, qualifiers=[THERAPY])
    ana("done")
    path = tmp_path / "done.jsonl"
    path.write_text(handed_in(desk, "jsonl"), encoding="utf-8")
    [article] = read_articles(path)
    [heading] = article.headings
    assert (heading.ui, heading.major, heading.qualifiers[0].name) == (ZINC, True, "therapeutic use")


def test_a_search_without_tags_is_refused_at_once(desk, ana):
    ana("strike", ZINC)
    ana("done")
    with pytest.raises(InputError, match="no tag to search for"):
        hand_in(desk, "pubmed")
