"""Desks as files of articles: what is done, read by every command."""

import gzip
import sqlite3
import tarfile
from contextlib import closing

import pytest

from kenmesh_hf.desk import Decision, Desk, decide, keep_tags, open_collection
from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Article, ReadReport, read_articles


@pytest.fixture
def desk(tmp_path):
    """Two articles, of which the second is done, at an open desk."""
    articles = [Article("One", pmid="1"), Article("Two", "Of zinc.", pmid="2", journal="Lancet", year=1999)]
    tag = {
        "ui": "D015032",
        "name": "Zinc",
        "score": 0.9,
        "threshold": 0.5,
        "tree_numbers": ["D01"],
        "major": True,
    }
    with closing(Desk(tmp_path / "review.sqlite")) as desk:
        open_collection(desk, "file", "Ana", articles)
        keep_tags(desk, "model", [(1, [tag], None), (2, [tag], None)])
        decide(desk, 2, Decision("a key", "Ana", 0, "done"))
        yield desk


def test_what_is_done_is_read_while_the_desk_is_open(desk):
    [article] = read_articles(desk.path)
    assert (article.title, article.abstract, article.journal, article.year) == (
        "Two",
        "Of zinc.",
        "Lancet",
        1999,
    )
    [heading] = article.headings
    assert (heading.ui, heading.name, heading.major) == ("D015032", "Zinc", True)


def test_copies_of_a_desk_are_read(desk, tmp_path):
    desk.back_up(tmp_path / "copy.sqlite")
    (tmp_path / "copy.sqlite.gz").write_bytes(gzip.compress((tmp_path / "copy.sqlite").read_bytes()))
    with tarfile.open(tmp_path / "copy.tar", "w") as tar:
        tar.add(tmp_path / "copy.sqlite", "copy.sqlite")
    for name in ("copy.sqlite", "copy.sqlite.gz", "copy.tar"):
        assert [article.pmid for article in read_articles(tmp_path / name)] == ["2"], name


def test_a_damaged_article_is_reported(desk):
    with desk.writing() as connection:
        connection.execute("UPDATE article SET headings = '{' WHERE id = 1")
    report = ReadReport()
    assert [article.pmid for article in read_articles(desk.path, report=report)] == ["2"]
    assert report.skipped == {"damaged article": 1} and "article 1" in report.examples["damaged article"][0]


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE recipes (name)",
        "CREATE VIEW article AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
        "SELECT id, '' AS title, '' AS abstract, '{}' AS record, '[]' AS headings FROM n",
        "CREATE VIRTUAL TABLE article USING fts5 (id, title, abstract, record, headings)",
        "CREATE TABLE article (id, title)",
    ],
)
def test_other_sqlite_files_are_refused(tmp_path, schema):
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute(schema)
        other.commit()
    with pytest.raises(InputError, match="is no desk"):
        list(read_articles(tmp_path / "other.sqlite", strict=True))
    report = ReadReport()
    assert list(read_articles(tmp_path / "other.sqlite", report=report)) == [] and not report.ok


def test_a_cut_off_desk_is_refused(desk, tmp_path):
    desk.back_up(tmp_path / "copy.sqlite")
    (tmp_path / "half.sqlite").write_bytes((tmp_path / "copy.sqlite").read_bytes()[:5000])
    with pytest.raises(InputError, match="no desk, or damaged"):
        list(read_articles(tmp_path / "half.sqlite", strict=True))
