"""Collections of a desk: articles of a file, what a model says of them, and lists of them."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError
from ..reading import Article
from .store import Desk, NotOnDesk, moment, tick

STATES = ("todo", "done", "skipped")
SORTS = {"file": "id", "doubt": "doubt DESC, id"}
# What comes behind an article in each order.
_BEHIND = {
    "file": "id > ?",
    "doubt": "(-doubt, id) > (SELECT -last.doubt, last.id FROM article AS last WHERE last.id = ?)",
}
Tag = Mapping[str, Any]

_BRIEF = "id, pmid, title, state, version, doubt, model IS NOT NULL AS tagged, problem"
_COUNTS = """
SELECT collection, count(*) AS articles, sum(model IS NOT NULL) AS tagged, sum(state = 'todo') AS todo,
    sum(state = 'done') AS done, sum(state = 'skipped') AS skipped
FROM article GROUP BY collection"""

# What somebody added before the model spoke of it stays added.
_KEEP = """
INSERT INTO tag (article, ui, name, tree_numbers, score, said, proposed, decision, major, qualifiers)
VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?)
ON CONFLICT (article, ui) DO UPDATE
SET score = excluded.score, said = excluded.said, proposed = excluded.proposed"""


def open_collection(desk: Desk, name: str, who: str, articles: Iterable[Article], skipped: int = 0) -> int:
    """Puts articles on the desk, to be tagged later; all of them or, if it fails, none.

    Args:
        desk: Where to.
        name: What people will know the collection by.
        who: Who opened it.
        articles: At least one.
        skipped: How many records of the file could not be read.

    Returns:
        The collection's number.
    """
    with desk.writing() as connection:
        now = tick(connection)
        [number] = connection.execute(
            "INSERT INTO collection (name, opened_by, opened_at, skipped) VALUES (?, ?, ?, ?) RETURNING id",
            (name, who, moment(), skipped),
        ).fetchone()
        added = connection.executemany(
            "INSERT INTO article (collection, pmid, title, abstract, record, change) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            ((number, *_cells(article), now) for article in articles),
        )
        if not added.rowcount:
            raise InputError(f"There is no article to put on the desk in {name}.")
    return number


def _cells(article: Article) -> tuple[str | None, ...]:
    """PMID, title, abstract and all else; half a character, which JSON can have and no file, becomes "?"."""
    row = replace(article, title="", abstract="").to_dict()
    record = json.dumps({key: value for key, value in row.items() if value}, ensure_ascii=False)
    texts = (article.pmid, article.title, article.abstract, record)
    return tuple(None if text is None else text.encode(errors="replace").decode() for text in texts)


def read_article(row: sqlite3.Row) -> Article:
    """The article of a row of the desk, with the headings that its file had."""
    return Article.from_dict(json.loads(row["record"]) | {key: row[key] for key in ("title", "abstract")})


def article_of(desk: Desk, number: int) -> Article:
    """An article as its file had it.

    Raises:
        NotOnDesk: There is no such article.
    """
    with desk.reading() as connection:
        return read_article(article_row(connection, number))


def article_row(connection: sqlite3.Connection, number: int) -> sqlite3.Row:
    """All that is kept of an article but its tags."""
    row = connection.execute("SELECT * FROM article WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise NotOnDesk(f"There is no article {number} on this desk; perhaps its collection was removed.")
    return row


def list_collections(desk: Desk) -> list[dict[str, Any]]:
    """Every collection with how far it is, the newest first."""
    with desk.reading() as connection:
        counts = {row["collection"]: dict(row) for row in connection.execute(_COUNTS)}
        rows = connection.execute("SELECT * FROM collection ORDER BY id DESC").fetchall()
    return [_described(row, counts[row["id"]]) for row in rows]


def _described(row: sqlite3.Row, counts: dict[str, Any]) -> dict[str, Any]:
    """A collection's row with its counts; `unreadable` are the records that its file lost."""
    told = {key: row[key] for key in ("id", "name", "opened_by", "opened_at")}
    return (
        told | {"unreadable": row["skipped"]} | {key: n for key, n in counts.items() if key != "collection"}
    )


def find_collection(desk: Desk, wanted: str | int) -> int:
    """A collection's number, by it or by the collection's name.

    Raises:
        InputError: There is none, or several have the name.
    """
    with desk.reading() as connection:
        rows = connection.execute("SELECT id, name FROM collection ORDER BY id").fetchall()
    fitting = [row["id"] for row in rows if str(row["id"]) == str(wanted) or row["name"] == wanted]
    if len(fitting) != 1:
        known = ", ".join(f"{row['id']} ({row['name']})" for row in rows) or "none yet"
        what = "no collection" if not fitting else "more than one collection"
        raise InputError(f"There is {what} {wanted!r} on this desk; it has {known}.")
    return fitting[0]


def remove_collection(desk: Desk, collection: int) -> None:
    """Takes a collection off the desk with all that was decided on it."""
    with desk.writing() as connection:
        tick(connection)
        connection.execute("DELETE FROM collection WHERE id = ?", (collection,))


@dataclass(frozen=True)
class Filter:
    """Which articles of a collection are wanted.

    Attributes:
        state: One of `STATES`, or empty for any.
        words: Beginnings of words of title and abstract, or of the PMID; an article must have all of them.
        descriptor: A UI; only articles that have it as things stand.
        sort: One of `SORTS`.
    """

    state: str = ""
    words: str = ""
    descriptor: str = ""
    sort: str = "file"

    def where(self, collection: int) -> tuple[str, list[Any]]:
        """The condition in SQL, and its parameters."""
        parts = ["collection = ?"]
        values: list[Any] = [collection]
        if self.state:
            parts.append("state = ?")
            values.append(self.state)
        # NUL would end what SQLite reads of a search.
        if words := self.words.replace("\0", " ").split():
            parts.append("id IN (SELECT rowid FROM article_text WHERE article_text MATCH ?)")
            values.append(" ".join('"{}"*'.format(word.replace('"', '""')) for word in words))
        if self.descriptor:
            parts.append("id IN (SELECT article FROM tag WHERE ui = ? AND kept)")
            values.append(self.descriptor)
        return " AND ".join(parts), values


@dataclass
class ArticleList:
    """Some articles of a collection, how many there are, and the desk's clock when it was asked."""

    total: int
    now: int
    counts: dict[str, Any]
    articles: list[dict[str, Any]] = field(default_factory=list)


def list_articles(
    desk: Desk, collection: int, wanted: Filter, start: int = 0, limit: int = 100, after: int | None = None
) -> ArticleList:
    """Articles in the wanted order, from a place in it on, or those that come behind one of them.

    Who goes through a list decides what is in it: of what is to do, what is done is gone. So whoever reads on
    tells the last article that was read, which has its place in the order even if it no longer fits.

    Raises:
        NotOnDesk: There is no such collection.
    """
    where, values = wanted.where(collection)
    with desk.reading() as connection:
        found = _header(connection, collection)
        [found.total] = connection.execute(f"SELECT count(*) FROM article WHERE {where}", values).fetchone()
        if after is not None:
            where, values = f"{where} AND {_BEHIND[wanted.sort]}", [*values, after]
        rows = connection.execute(
            f"SELECT {_BRIEF} FROM article WHERE {where} ORDER BY {SORTS[wanted.sort]} LIMIT ? OFFSET ?",
            [*values, limit, start],
        )
        found.articles = list(map(dict, rows))
    return found


def list_changes(desk: Desk, collection: int, since: int, limit: int = 200) -> ArticleList:
    """Articles that changed after a time of the desk's clock, the latest first; `total` tells of all."""
    with desk.reading() as connection:
        found = _header(connection, collection)
        where = "collection = ? AND change > ?"
        [found.total] = connection.execute(
            f"SELECT count(*) FROM article WHERE {where}", (collection, since)
        ).fetchone()
        rows = connection.execute(
            f"SELECT {_BRIEF} FROM article WHERE {where} ORDER BY change DESC LIMIT ?",
            (collection, since, limit),
        )
        found.articles = list(map(dict, rows))
    return found


def _header(connection: sqlite3.Connection, collection: int) -> ArticleList:
    row = connection.execute("SELECT * FROM collection WHERE id = ?", (collection,)).fetchone()
    if row is None:
        raise NotOnDesk(f"There is no collection {collection} on this desk.")
    counts = connection.execute(
        _COUNTS.replace("GROUP", "WHERE collection = ? GROUP"), (collection,)
    ).fetchone()
    [now] = connection.execute("SELECT now FROM clock").fetchone()
    return ArticleList(0, now, _described(row, dict(counts)))


def untagged(desk: Desk, limit: int) -> list[tuple[int, Article]]:
    """The first articles that wait for their tags, with their numbers."""
    with desk.reading() as connection:
        rows = connection.execute(
            "SELECT id, title, abstract, record FROM article WHERE model IS NULL ORDER BY id LIMIT ?",
            (limit,),
        ).fetchall()
    return [(row["id"], read_article(row)) for row in rows]


def keep_tags(desk: Desk, model: str, results: Iterable[tuple[int, Sequence[Tag], str | None]]) -> None:
    """Keeps what a model says of articles; one that has been tagged meanwhile stays as it is.

    Args:
        desk: Where the articles are.
        model: Which model says it.
        results: An article's number, its tags with `score` and `threshold`, and why there are none, if so.
    """
    with desk.writing() as connection:
        now = tick(connection)
        for number, tags, problem in results:
            done = connection.execute(
                "UPDATE article SET model = ?, problem = ?, doubt = ?, change = ? "
                "WHERE id = ? AND model IS NULL",
                (model, problem, doubt(tags), now, number),
            )
            if done.rowcount:
                connection.executemany(_KEEP, [(number, *_tag_cells(tag)) for tag in tags])


def _tag_cells(tag: Tag) -> tuple[Any, ...]:
    said = {key: value for key, value in tag.items() if key not in ("ui", "name", "tree_numbers")}
    major, qualifiers = aspects_said(said)
    return (
        tag["ui"],
        tag["name"],
        " ".join(tag["tree_numbers"]),
        tag["score"],
        json.dumps(said),
        tag["score"] >= tag["threshold"],
        major,
        json.dumps(qualifiers),
    )


def aspects_said(said: Tag) -> tuple[bool, list[dict[str, Any]]]:
    """Whether the model takes a descriptor for a major topic, and its qualifiers, as they are decided on."""
    qualifiers = [
        {key: item[key] for key in ("ui", "name", "major")} for item in said.get("qualifiers") or ()
    ]
    return bool(said.get("major")), qualifiers


def doubt(tags: Iterable[Tag]) -> float:
    """How many of these tags the model expects to have wrong: the chance of each that it does not give and
    of the contrary of each that it gives."""
    return sum(1 - tag["score"] if tag["score"] >= tag["threshold"] else tag["score"] for tag in tags)


def tag_again(desk: Desk, collection: int, model: str) -> int:
    """Lets another model tag the articles that nobody has touched; gives their number."""
    with desk.writing() as connection:
        now = tick(connection)
        untouched = "collection = ? AND version = 0 AND model != ?"
        connection.execute(
            f"DELETE FROM tag WHERE article IN (SELECT id FROM article WHERE {untouched})",
            (collection, model),
        )
        return connection.execute(
            f"UPDATE article SET model = NULL, problem = NULL, change = ? WHERE {untouched}",
            (now, collection, model),
        ).rowcount
