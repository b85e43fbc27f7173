"""Reads a desk (`kenmesh serve --desk`): the articles that are done, with the headings that were decided."""

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import InputError
from .records import Article
from .sources import LARGEST_RECORD, Source

MAGIC = b"SQLite format 3\0"
_DONE = "SELECT id, title, abstract, record, headings FROM article WHERE headings IS NOT NULL ORDER BY id"


def read_desk(source: Source) -> Iterator[Article]:
    """Articles of a desk's file, or of a copy of one in an archive.

    Raises:
        InputError: It is an SQLite file of another kind, or damaged.
    """
    with _file_of(source) as path:
        try:
            with closing(_connect(path)) as connection:
                yield from _articles(connection, source)
        except sqlite3.Error as error:
            raise InputError(f"{source.name} is no desk, or damaged ({error}).") from error


@contextmanager
def _file_of(source: Source) -> Iterator[Path]:
    """The file itself, whose newest decisions may stand in another one beside it, or a copy of a stream."""
    if source.path is not None and _begins(source.path) == MAGIC:
        yield source.path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "desk.sqlite"
        with open(path, "wb") as copy:
            copy.writelines(source.raw())
        yield path


def _begins(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(len(MAGIC))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    # The file may come from anybody: nothing in its schema may call functions or grow without bound.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_RECORD)
    kind = connection.execute("SELECT type, substr(sql, 1, 13) FROM sqlite_master WHERE name = 'article'")
    if kind.fetchone() != ("table", "CREATE TABLE "):
        raise sqlite3.DatabaseError("it has no table of articles")
    return connection


def _articles(connection: sqlite3.Connection, source: Source) -> Iterator[Article]:
    for number, title, abstract, record, headings in connection.execute(_DONE):
        try:
            row = json.loads(record) | {"title": title, "abstract": abstract, "mesh": json.loads(headings)}
            yield Article.from_dict(row)
        except (ValueError, TypeError) as error:
            source.report.skip("damaged article", f"{source.name}, article {number} ({error})")
