"""A desk on disk: its version, migrations, what it refuses, lists and filters, backups."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest
from patience import PATIENCE

from kenmesh_hf.desk import (
    Decision,
    Desk,
    DeskFailed,
    Filter,
    NotOnDesk,
    decide,
    find_collection,
    keep_tags,
    list_articles,
    list_changes,
    list_collections,
    open_collection,
    remove_collection,
    schema,
    show_article,
    tag_again,
    untagged,
)
from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.reading import Article, Heading


def said(ui, name, score, threshold=0.5, **more):
    return {"ui": ui, "name": name, "score": score, "threshold": threshold, "tree_numbers": ["C01"]} | more


def articles(count):
    return [
        Article(f"Title {n} of zinc", f"Abstract {n}.", pmid=str(1000 + n), journal="Lancet")
        for n in range(count)
    ]


@pytest.fixture
def desk(tmp_path):
    with closing(Desk(tmp_path / "review.sqlite")) as desk:
        yield desk


@pytest.fixture
def tagged(desk):
    """Three articles; the second is the one of which the model is least sure."""
    open_collection(desk, "export.ris", "Ana", articles(3), skipped=2)
    numbers = [number for number, _ in untagged(desk, 10)]
    tags = [
        [said("D1", "Zinc", 0.99)],
        [said("D1", "Zinc", 0.6), said("D2", "Iron", 0.4)],
        [said("D2", "Iron", 0.9)],
    ]
    keep_tags(desk, "model-1", [(number, row, None) for number, row in zip(numbers, tags, strict=True)])
    return desk


def test_a_collection_is_kept_as_it_was_opened(desk, tmp_path):
    article = Article("Zinc", "In blood.", pmid="7", year=1999, headings=(Heading("D015032", "Zinc", True),))
    number = open_collection(desk, "one", "Ana", [article])
    desk.close()
    with closing(Desk(tmp_path / "review.sqlite", new=False)) as again:
        [(first, found)] = untagged(again, 10)
        [collection] = list_collections(again)
        assert found == article and show_article(again, first)["headings_in_file"][0]["name"] == "Zinc"
    assert collection["id"] == number and collection["opened_by"] == "Ana"
    assert (collection["articles"], collection["tagged"], collection["todo"]) == (1, 0, 1)


def test_closing_waits_for_who_is_writing(desk, tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    def write():
        with desk.writing() as connection:
            begun.set()
            go_on.wait(PATIENCE)
            connection.execute("UPDATE clock SET now = 77")

    writer, closer = threading.Thread(target=write), threading.Thread(target=desk.close)
    writer.start()
    assert begun.wait(PATIENCE)
    closer.start()
    closer.join(0.2)
    waited = closer.is_alive()
    go_on.set()
    for thread in (writer, closer):
        thread.join(PATIENCE)
    assert waited
    with closing(Desk(tmp_path / "review.sqlite", new=False)) as again, again.reading() as connection:
        assert connection.execute("SELECT now FROM clock").fetchone()[0] == 77


def test_a_connection_in_use_outlives_the_desk_and_is_ended_after_it(desk):
    with desk.reading() as connection:
        desk.close()
        assert connection.execute("SELECT now FROM clock").fetchone()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT now FROM clock")


def test_an_empty_collection_is_refused_and_leaves_nothing(desk):
    with pytest.raises(InputError, match="no article to put on the desk in none.txt"):
        open_collection(desk, "none.txt", "Ana", [])
    assert list_collections(desk) == []


def titles(desk, **wanted):
    found = list_articles(desk, 1, Filter(**wanted))
    assert found.total == len(found.articles)
    return [row["title"].split()[1] for row in found.articles]


def test_articles_are_filtered_and_sorted(tagged):
    assert titles(tagged) == ["0", "1", "2"]
    assert titles(tagged, sort="doubt") == ["1", "2", "0"]
    assert titles(tagged, words="1001") == titles(tagged, words="TITLE abstr 1001") == ["1"]
    assert titles(tagged, words="zinc") == ["0", "1", "2"] and titles(tagged, words="lead") == []
    assert titles(tagged, words='"zi" OR (NEAR * -') == []
    # Iron is a mere suggestion for the second.
    assert titles(tagged, descriptor="D2") == ["2"] and titles(tagged, descriptor="D1") == ["0", "1"]
    assert titles(tagged, state="todo", descriptor="D1", words="1001") == ["1"]
    assert titles(tagged, state="done") == []


def test_long_lists_come_in_pieces(desk):
    open_collection(desk, "many", "Ana", articles(250))
    found = list_articles(desk, 1, Filter(), start=200, limit=100)
    assert found.total == 250 and [row["pmid"] for row in found.articles] == [
        str(n) for n in range(1200, 1250)
    ]
    assert found.counts["articles"] == 250 and found.counts["name"] == "many"
    with pytest.raises(NotOnDesk, match="no collection 9"):
        list_articles(desk, 9, Filter())


@pytest.mark.parametrize("sort", ["file", "doubt"])
def test_a_list_goes_on_behind_an_article_that_left_it(desk, sort):
    open_collection(desk, "many", "Ana", articles(9))
    tags = [(number, [said("D1", "Zinc", number % 3 / 10)], None) for number in range(1, 10)]
    keep_tags(desk, "model-1", tags)
    wanted = Filter(state="todo", sort=sort)
    whole = [row["id"] for row in list_articles(desk, 1, wanted).articles]
    for place, number in enumerate(whole[:5]):
        decide(desk, number, Decision(f"skip {place}", "Ana", 0, "skip"))
    rest = list_articles(desk, 1, wanted, limit=2, after=whole[4])
    assert [row["id"] for row in rest.articles] == whole[5:7] and rest.total == 4
    assert list_articles(desk, 1, wanted, after=whole[-1]).articles == []
    assert list_articles(desk, 1, wanted, after=99).articles == []


def test_changes_since_a_moment_are_told(tagged):
    now = list_articles(tagged, 1, Filter()).now
    assert list_changes(tagged, 1, now).articles == []
    open_collection(tagged, "other", "Ben", articles(2))
    assert list_changes(tagged, 1, now).articles == []
    assert list_changes(tagged, 2, now).total == 2
    assert len(list_changes(tagged, 2, now, limit=1).articles) == 1


def test_doubt_is_the_number_of_tags_expected_to_be_wrong(tagged):
    rows = {row["pmid"]: row["doubt"] for row in list_articles(tagged, 1, Filter()).articles}
    assert rows == pytest.approx({"1000": 0.01, "1001": 0.8, "1002": 0.1})


def test_tags_come_once_and_problems_are_kept(tagged):
    number = untagged(tagged, 1)
    assert number == []
    keep_tags(tagged, "model-2", [(1, [said("D3", "Lead", 0.9)], None)])
    assert [tag["name"] for tag in show_article(tagged, 1)["tags"]] == ["Zinc"]
    open_collection(tagged, "odd", "Ana", [Article("poison")])
    keep_tags(tagged, "model-1", [(4, [], "The model failed on this text.")])
    assert show_article(tagged, 4)["problem"] == "The model failed on this text."
    assert untagged(tagged, 10) == []


def test_another_model_may_tag_again_what_nobody_touched(tagged):
    assert tag_again(tagged, 1, "model-1") == 0
    assert tag_again(tagged, 1, "model-2") == 3
    assert [number for number, _ in untagged(tagged, 10)] == [1, 2, 3]
    assert show_article(tagged, 1)["tags"] == []


def test_collections_are_found_and_removed(tagged):
    open_collection(tagged, "other", "Ben", articles(1))
    assert find_collection(tagged, "other") == find_collection(tagged, 2) == 2
    with pytest.raises(
        InputError, match=r"no collection 'x' on this desk; it has 1 \(export.ris\), 2 \(other\)"
    ):
        find_collection(tagged, "x")
    remove_collection(tagged, 1)
    assert [row["name"] for row in list_collections(tagged)] == ["other"]
    with pytest.raises(NotOnDesk):
        show_article(tagged, 1)
    assert list_articles(tagged, 2, Filter(words="zinc")).total == 1


def test_what_comes_too_late_for_a_removed_collection_reaches_no_other(tagged):
    open_collection(tagged, "other", "Ben", articles(2))
    late = [number for number, _ in untagged(tagged, 10)]
    remove_collection(tagged, 2)
    assert open_collection(tagged, "third", "Ben", articles(2)) == 3
    keep_tags(tagged, "model-1", [(number, [said("D1", "Zinc", 0.9)], None) for number in late])
    assert len(untagged(tagged, 10)) == 2 and list_collections(tagged)[0]["tagged"] == 0


def test_half_a_character_spoils_no_file(desk):
    odd = Article("Zinc \ud800 in blood", journal="Lan\udfffcet", headings=(Heading("D1", "Zi\ud800nc"),))
    open_collection(desk, "odd", "Ana", [odd])
    shown = show_article(desk, 1)
    assert shown["article"]["title"] == "Zinc ? in blood" and shown["article"]["journal"] == "Lan?cet"
    assert shown["headings_in_file"][0]["name"] == "Zi?nc"
    assert list_articles(desk, 1, Filter(words="zinc\0blood")).total == 1


def test_a_full_disk_is_told_and_the_desk_goes_on_when_there_is_room(desk):
    open_collection(desk, "small", "Ana", articles(3))
    with desk.reading() as connection:
        [pages] = connection.execute("PRAGMA page_count").fetchone()
    desk._writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DeskFailed, match="review.sqlite cannot be used: .* full. Make room"):
        open_collection(desk, "large", "Ana", articles(2000))
    desk._writer.execute("PRAGMA max_page_count = 1000000")
    assert [row["name"] for row in list_collections(desk)] == ["small"]
    assert open_collection(desk, "large", "Ana", articles(2000)) == 2


def test_a_commit_that_fails_stops_nothing_that_comes_later(desk):
    with pytest.raises(DeskFailed, match="FOREIGN KEY"), desk.writing() as connection:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute("INSERT INTO tag VALUES (99, 'D1', 'Zinc', '', 0, '', 0, '', 0, '')")
    assert open_collection(desk, "small", "Ana", articles(3)) == 1


def test_a_backup_is_a_desk(tagged, tmp_path):
    tagged.back_up(tmp_path / "copy.sqlite")
    with closing(Desk(tmp_path / "copy.sqlite", new=False)) as copy:
        assert list_collections(copy) == list_collections(tagged)
    with pytest.raises(InputError, match="already there"):
        tagged.back_up(tmp_path / "copy.sqlite")


def test_what_is_no_desk_is_refused(tmp_path):
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be looked at as one" * 50)
    with pytest.raises(InputError, match="cannot be .* desk"):
        Desk(tmp_path / "text.sqlite")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute("CREATE TABLE recipes (name)")
        other.commit()
    with pytest.raises(InputError, match="of another program"):
        Desk(tmp_path / "other.sqlite")
    with pytest.raises(InputError, match="no folder"):
        Desk(tmp_path / "nowhere" / "review.sqlite")
    with pytest.raises(InputError, match="no desk .*kenmesh serve --desk"):
        Desk(tmp_path / "missing.sqlite", new=False)


def test_a_desk_of_a_later_version_is_refused(desk, tmp_path):
    with desk.writing() as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(MismatchError, match="version 99"):
        Desk(tmp_path / "review.sqlite")


def test_a_desk_of_an_earlier_version_is_migrated(tagged, tmp_path, monkeypatch):
    def add_notes(connection):
        connection.execute("ALTER TABLE article ADD COLUMN note TEXT")

    def fail(connection):
        connection.execute("ALTER TABLE article ADD COLUMN other TEXT")
        raise sqlite3.OperationalError("the disk is full")

    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, fail])
    with pytest.raises(InputError, match="disk is full"):
        Desk(tmp_path / "review.sqlite")
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS[:-1], add_notes])
    for _ in range(2):
        with closing(Desk(tmp_path / "review.sqlite")) as newer, newer.reading() as connection:
            columns = [row["name"] for row in connection.execute("PRAGMA table_info(article)")]
            assert "note" in columns and "other" not in columns
            assert connection.execute("PRAGMA user_version").fetchone()[0] == len(schema.MIGRATIONS)
            assert connection.execute("SELECT count(*) FROM article").fetchone()[0] == 3


def test_processes_may_make_a_desk_at_the_same_time(tmp_path):
    program = "import sys; from kenmesh_hf.desk import Desk; Desk(sys.argv[1])"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "new.sqlite")], stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.wait() == 0, process.stderr.read()


def test_what_fails_changes_nothing(tagged):
    with pytest.raises(ZeroDivisionError), tagged.writing() as connection:
        connection.execute("UPDATE article SET title = 'lost'")
        raise ZeroDivisionError
    assert titles(tagged) == ["0", "1", "2"]
