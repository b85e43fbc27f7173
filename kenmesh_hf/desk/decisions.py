"""What people decide on an article, each saved with who, when and what the model said; undo and redo."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError, KenMeSHError
from .collections import article_row, aspects_said, read_article
from .store import Desk, NotOnDesk, moment, tick

# Of tags; `clear` takes back what was decided. An article's state is decided by its name.
TAG_ACTIONS = ("accept", "strike", "clear", "add", "major", "qualify")
STATE_ACTIONS = {"done": "done", "skip": "skipped", "reopen": "todo"}


class Conflict(KenMeSHError):
    """Somebody else changed the article since; `article` is how it is now, `by` what was done since."""

    def __init__(self, sentence: str, article: dict[str, Any], by: list[dict[str, Any]]):
        super().__init__(sentence)
        self.article, self.by = article, by


@dataclass(frozen=True)
class Decision:
    """One decision of one person.

    Attributes:
        key: Any text that no other decision has: sent again, the decision is not made twice.
        who: The person's name.
        version: Version of the article that the person saw.
        action: One of `TAG_ACTIONS` or `STATE_ACTIONS`.
        ui: The descriptor, for actions on tags.
        name: Its name, for `add`.
        tree_numbers: Its places in the tree, for `add`.
        major: Whether it is a major topic, for `major`.
        qualifiers: Its qualifiers as `{"ui", "name", "major"}`, for `qualify`.
        opened_at: When the collection was opened, if the person's page knows: numbers of articles begin anew
            on every desk, and the page may be of another one than is served now.
    """

    key: str
    who: str
    version: int
    action: str
    ui: str | None = None
    name: str | None = None
    tree_numbers: tuple[str, ...] = ()
    major: bool = False
    qualifiers: list[dict[str, Any]] = field(default_factory=list)
    opened_at: str | None = None


def decide(desk: Desk, number: int, decision: Decision) -> dict[str, Any]:
    """Makes a decision on an article.

    Returns:
        The article as `show_article` gives it.

    Raises:
        NotOnDesk: There is no such article, it is of another desk, or the descriptor is not among its tags.
        InputError: The article waits for its tags and cannot be done yet.
        Conflict: The article is not as the person saw it.
    """
    with desk.writing() as connection:
        if not _made(connection, decision.key):
            article = article_row(connection, number)
            _check_opened(connection, article, decision.opened_at)
            if article["version"] != decision.version:
                raise _conflict(connection, article, decision)
            _make(connection, article, decision)
        return _show(connection, number)


def _check_opened(connection: sqlite3.Connection, article: sqlite3.Row, opened_at: str | None) -> None:
    query = "SELECT opened_at FROM collection WHERE id = ?"
    [found] = connection.execute(query, (article["collection"],)).fetchone()
    if opened_at not in (None, found):
        raise NotOnDesk(
            f"This was decided at another desk, where article {article['id']} is another one. "
            "Load the page again."
        )


def _made(connection: sqlite3.Connection, key: str) -> bool:
    return connection.execute("SELECT 1 FROM decision WHERE key = ?", (key,)).fetchone() is not None


def _conflict(connection: sqlite3.Connection, article: sqlite3.Row, decision: Decision) -> Conflict:
    since = connection.execute(
        "SELECT who, at, action, ui, undone_at IS NOT NULL AS undone FROM decision "
        "WHERE article = ? AND version > ? ORDER BY id",
        (article["id"], decision.version),
    ).fetchall()
    others = ", ".join(sorted({row["who"] for row in since})) or "Somebody"
    sentence = f"{others} changed this article after you saw it. Look at it, then decide again or leave it."
    return Conflict(sentence, _show(connection, article["id"]), list(map(dict, since)))


def _make(connection: sqlite3.Connection, article: sqlite3.Row, decision: Decision) -> None:
    if decision.action == "done" and article["model"] is None:
        raise InputError("This article has no tags yet. Wait until it is tagged, then mark it as done.")
    if decision.action in STATE_ACTIONS:
        before: Any = article["state"]
        after: Any = STATE_ACTIONS[decision.action]
        said = None
    else:
        tag = _tag(connection, article["id"], decision.ui)
        before, said = _value(tag), None if tag is None else tag["said"]
        after = _decided(tag, decision)
    version = _write(connection, article, decision.ui, after)
    connection.execute(
        "INSERT INTO decision "
        "(key, collection, article, version, who, at, action, ui, before, after, said, model) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            decision.key,
            article["collection"],
            article["id"],
            version,
            decision.who,
            moment(),
            decision.action,
            decision.ui,
            json.dumps(before),
            json.dumps(after),
            said,
            article["model"],
        ),
    )


def _tag(connection: sqlite3.Connection, article: int, ui: str | None) -> sqlite3.Row | None:
    return connection.execute("SELECT * FROM tag WHERE article = ? AND ui = ?", (article, ui)).fetchone()


def _value(tag: sqlite3.Row | None) -> dict[str, Any] | None:
    """What is decided on a tag; None if the article has no such tag."""
    if tag is None:
        return None
    flags = {"decision": tag["decision"], "major": bool(tag["major"])}
    return {**_named(tag), **flags, "qualifiers": json.loads(tag["qualifiers"])}


def _named(tag: sqlite3.Row) -> dict[str, Any]:
    return {"name": tag["name"], "tree_numbers": tag["tree_numbers"].split()}


def _decided(tag: sqlite3.Row | None, decision: Decision) -> dict[str, Any] | None:
    """What is decided on a tag after the decision; what is made major or qualified is thereby accepted."""
    value = _value(tag)
    if value is None or tag is None:
        if decision.action != "add":
            raise NotOnDesk(f"{decision.ui} is not among the tags of this article; add it first.")
        named = {"name": decision.name or decision.ui, "tree_numbers": list(decision.tree_numbers)}
        return named | {"decision": "added", "major": False, "qualifiers": []}
    mine = "accepted" if tag["said"] is not None else "added"
    if decision.action == "clear":
        return _undecided(tag)
    if decision.action == "strike":
        return value | {"decision": "struck"}
    kept = value | {"decision": mine}
    if decision.action == "major":
        # What is no major topic has no major aspect, either.
        aspects = value["qualifiers"] if decision.major else _minor(value["qualifiers"])
        return kept | {"major": decision.major, "qualifiers": aspects}
    if decision.action == "qualify":
        return kept | {"qualifiers": decision.qualifiers, "major": _major(value, decision.qualifiers)}
    return kept


def _undecided(tag: sqlite3.Row) -> dict[str, Any] | None:
    """A tag on which nothing is decided: as the model said it, or none where it said nothing of it."""
    if tag["said"] is None:
        return None
    major, qualifiers = aspects_said(json.loads(tag["said"]))
    return _named(tag) | {"decision": "", "major": major, "qualifiers": qualifiers}


def _minor(qualifiers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item | {"major": False} for item in qualifiers]


def _major(value: dict[str, Any], qualifiers: list[dict[str, Any]]) -> bool:
    return value["major"] or any(item["major"] for item in qualifiers)


def _write(connection: sqlite3.Connection, article: sqlite3.Row, ui: str | None, after: Any) -> int:
    """Sets a state or what is decided on a tag, and whatever follows from it; gives the new version."""
    number, now = article["id"], tick(connection)
    if ui is None:
        connection.execute("UPDATE article SET state = ? WHERE id = ?", (after, number))
    elif after is None:
        connection.execute("DELETE FROM tag WHERE article = ? AND ui = ?", (number, ui))
    else:
        cells = (after["decision"], after["major"], json.dumps(after["qualifiers"]))
        connection.execute(
            "INSERT INTO tag (article, ui, name, tree_numbers, proposed, decision, major, qualifiers) "
            "VALUES (?, ?, ?, ?, 0, ?, ?, ?) "
            "ON CONFLICT (article, ui) DO UPDATE SET decision = ?, major = ?, qualifiers = ?",
            (number, ui, after["name"], " ".join(after["tree_numbers"]), *cells, *cells),
        )
    [version] = connection.execute(
        "UPDATE article SET version = version + 1, change = ? WHERE id = ? RETURNING version", (now, number)
    ).fetchone()
    _settle(connection, number)
    return version


def _settle(connection: sqlite3.Connection, number: int) -> None:
    """What is done has its headings written down, as every command reads them; what is not has none."""
    [state] = connection.execute("SELECT state FROM article WHERE id = ?", (number,)).fetchone()
    headings = json.dumps(headings_of(connection, number), ensure_ascii=False) if state == "done" else None
    connection.execute("UPDATE article SET headings = ? WHERE id = ?", (headings, number))


def headings_of(connection: sqlite3.Connection, number: int) -> list[dict[str, Any]]:
    """The headings that an article has as things stand, the surest first."""
    rows = connection.execute(
        "SELECT ui, name, major, qualifiers FROM tag WHERE article = ? AND kept "
        "ORDER BY score IS NULL, score DESC, name",
        (number,),
    )
    return [
        {"ui": row["ui"], "name": row["name"], "major": bool(row["major"])}
        | {"qualifiers": json.loads(row["qualifiers"])}
        for row in rows
    ]


def show_article(desk: Desk, number: int) -> dict[str, Any]:
    """An article with its tags, what was decided on them, and by whom.

    Raises:
        NotOnDesk: There is no such article.
    """
    with desk.reading() as connection:
        return _show(connection, number)


def _show(connection: sqlite3.Connection, number: int) -> dict[str, Any]:
    row = article_row(connection, number)
    article = read_article(row)
    last = {
        made["ui"]: {"who": made["who"], "at": made["at"]}
        for made in connection.execute(
            "SELECT ui, who, at FROM decision WHERE article = ? AND undone_at IS NULL ORDER BY id", (number,)
        )
    }
    tags = connection.execute(
        "SELECT * FROM tag WHERE article = ? ORDER BY proposed DESC, score IS NOT NULL, score DESC, name",
        (number,),
    )
    columns = ("id", "collection", "state", "version", "doubt", "model", "problem")
    return {column: row[column] for column in columns} | {
        "article": {key: getattr(article, key) for key in ("pmid", "title", "abstract", "journal", "year")},
        "headings_in_file": [heading.to_dict() for heading in article.headings],
        "tags": [_shown(tag, last.get(tag["ui"])) for tag in tags],
        "decided": last.get(None),
    }


def _shown(tag: sqlite3.Row, decided: dict[str, str] | None) -> dict[str, Any]:
    told = {key: tag[key] for key in ("ui", "name", "score", "decision")} | _named(tag)
    flags = {key: bool(tag[key]) for key in ("proposed", "kept", "major")}
    return told | flags | {"qualifiers": json.loads(tag["qualifiers"]), "decided": decided}


def undo(desk: Desk, collection: int, who: str) -> dict[str, Any]:
    """Takes back the last decision that a person made in a collection.

    Returns:
        The article as `show_article` gives it.

    Raises:
        NotOnDesk: There is nothing to take back.
        Conflict: Somebody else has since decided otherwise on the same thing.
    """
    wanted = "undone_at IS NULL ORDER BY id DESC"
    return _step(desk, collection, who, wanted, ("after", "before"), moment, "There is nothing to undo.")


def redo(desk: Desk, collection: int, who: str) -> dict[str, Any]:
    """Makes again the decision that the person took back last, unless another one was made since.

    Returns:
        The article as `show_article` gives it.

    Raises:
        NotOnDesk: There is nothing to make again.
        Conflict: Somebody else has since decided otherwise on the same thing.
    """
    wanted = (
        "undone_at IS NOT NULL AND id > (SELECT coalesce(max(id), 0) FROM decision AS later "
        "WHERE later.collection = decision.collection AND later.who = decision.who "
        "AND later.undone_at IS NULL) "
        "ORDER BY id"
    )
    return _step(
        desk, collection, who, wanted, ("before", "after"), lambda: None, "There is nothing to redo."
    )


def _step(
    desk: Desk,
    collection: int,
    who: str,
    wanted: str,
    way: tuple[str, str],
    stamp: Callable[[], str | None],
    nothing: str,
) -> dict[str, Any]:
    """Moves one decision of a person from one side to the other, if it is still as the person left it."""
    source, target = way
    with desk.writing() as connection:
        made = connection.execute(
            f"SELECT * FROM decision WHERE collection = ? AND who = ? AND {wanted} LIMIT 1", (collection, who)
        ).fetchone()
        if made is None:
            raise NotOnDesk(nothing)
        article = article_row(connection, made["article"])
        ui = made["ui"]
        tag = None if ui is None else _tag(connection, article["id"], ui)
        now = article["state"] if ui is None else _value(tag)
        left, goal = json.loads(made[source]), json.loads(made[target])
        # What was not there when it was decided on may have come since with the model's tags.
        came = left is None and tag is not None and not tag["decision"]
        if now != left and not came:
            sentence = "Somebody else has decided otherwise since then, so this stays as it is."
            raise Conflict(sentence, _show(connection, article["id"]), [])
        if goal is None and tag is not None:
            goal = _undecided(tag)
        version = _write(connection, article, ui, goal)
        connection.execute(
            "UPDATE decision SET undone_at = ?, version = ? WHERE id = ?", (stamp(), version, made["id"])
        )
        return _show(connection, article["id"])
