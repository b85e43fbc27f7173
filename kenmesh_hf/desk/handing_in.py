"""What was decided, in the forms in which it is handed in: articles, tables, records, searches."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from ..errors import InputError
from ..reading import Article, Heading
from ..tagging import SEARCH_SYNTAXES, WRITERS, search_string
from .collections import read_article
from .store import Desk

FORMATS = ("jsonl", "csv", "ris", "nbib", *SEARCH_SYNTAXES)
Decided = tuple[Article, list[dict[str, Any]], str]

_TAGS = """
SELECT ui, name, tree_numbers, score, decision, major, qualifiers FROM tag WHERE article = ? AND kept
ORDER BY score IS NULL, score DESC, name"""


def decided_articles(
    desk: Desk, collections: Iterable[int] | None = None, only_done: bool = True
) -> Iterator[Decided]:
    """Articles without the headings of their file, their tags as decided, and their state.

    Args:
        desk: Where they are.
        collections: Of which collections; of all by default.
        only_done: Leave out what is to do or skipped; otherwise what nobody decided is as the model proposed.
    """
    with desk.reading() as connection:
        known = [row["id"] for row in connection.execute("SELECT id FROM collection ORDER BY id")]
        wanted = known if collections is None else list(collections)
        where = "collection = ? AND (state = 'done' OR NOT ?)"
        for collection in wanted:
            rows = connection.execute(
                f"SELECT * FROM article WHERE {where} ORDER BY id", (collection, only_done)
            )
            for row in rows:
                tags = [_tag(tag) for tag in connection.execute(_TAGS, (row["id"],))]
                yield replace(read_article(row), headings=()), tags, row["state"]


def _tag(row: sqlite3.Row) -> dict[str, Any]:
    """A tag as `tagging` writes it; its score is the model's, 0 where it was not among the model's best."""
    return {
        "ui": row["ui"],
        "name": row["name"],
        "score": row["score"] or 0.0,
        "tree_numbers": row["tree_numbers"].split(),
        "major": bool(row["major"]),
        "qualifiers": json.loads(row["qualifiers"]),
        "decision": row["decision"] or "proposed",
    }


def hand_in(
    desk: Desk, format: str, collections: Iterable[int] | None = None, only_done: bool = True
) -> Iterator[str]:
    """Decided articles as text in one of `FORMATS`, piece by piece.

    JSONL holds whole articles whose `mesh` is what was decided, so that every command reads them; `decisions`
    tells how each heading came about.

    Raises:
        InputError: The format is unknown, or there is nothing to hand in.
    """
    if format not in FORMATS:
        raise InputError(f"Unknown format {format!r}. Use one of: {', '.join(FORMATS)}.")
    articles = decided_articles(desk, collections, only_done)
    first = next(articles, None)
    if first is None:
        what = "No article is done yet" if only_done else "There is no article"
        raise InputError(f"{what}, so there is nothing to hand in.")
    everything = chain([first], articles)
    if format in SEARCH_SYNTAXES:
        # At once, since only all tags together make a search, or turn out to make none.
        return iter([search_string((tags for _, tags, _ in everything), format) + "\n"])
    if format == "jsonl":
        return (_line(*decided) for decided in everything)
    return WRITERS[format]((article, tags) for article, tags, _ in everything)


def _line(article: Article, tags: list[dict[str, Any]], state: str) -> str:
    row = replace(article, headings=tuple(map(Heading.from_dict, tags))).to_dict()
    decisions = [{key: tag[key] for key in ("ui", "decision", "score")} for tag in tags]
    return json.dumps(row | {"state": state, "decisions": decisions}, ensure_ascii=False) + "\n"
