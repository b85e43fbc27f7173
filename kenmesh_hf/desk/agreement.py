"""How far a model's proposals and the decisions of people agree, on articles that are done."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..evaluating import precision_recall_f1
from .store import Desk, moment

# Descriptors that are named as struck or added most.
MOST = 20
BINS = 10
# What the figures cannot tell; it goes wherever they go.
NOTE = (
    "People decided with the model's proposals before their eyes, and what nobody changed counts as agreed, "
    "so agreement favours the model that proposed: it is likely higher than with articles indexed without it."
)
_DONE = "article IN (SELECT id FROM article WHERE state = 'done' AND collection IN ({}))"


def score_agreement(desk: Desk, collections: Iterable[int] | None = None) -> dict[str, Any]:
    """Figures of the proposals against what was decided.

    Returns:
        `note`, what to bear in mind with them; `articles` by state, where all figures are of those that are
        done; `proposed`, `kept` and `agreed` descriptors; their `precision`, `recall` and `f1`, over all
        articles together; `major` and `qualifiers` with the same figures of the headings on which both agree,
        where the model tells of them;
        the descriptors `struck` and `added` most; `by_score`, the share of what was kept among what the model
        scored alike; `people` with their decisions; `models` that proposed.
    """
    with desk.reading() as connection:
        known = [row["id"] for row in connection.execute("SELECT id FROM collection ORDER BY id")]
        wanted = known if collections is None else list(collections)
        tags = _tags(connection, wanted)
        counts = Counter({state: 0 for state in ("todo", "done", "skipped")})
        counts.update(dict(_grouped(connection, "article", "state, count(*)", "state", wanted)))
        people = _grouped(connection, "decision", "who, count(*)", "who", wanted)
        models = _grouped(connection, "article", "model, count(*)", "model", wanted)
        named = dict(map(tuple, connection.execute("SELECT id, name FROM collection")))
    agreed = [tag for tag in tags if tag["proposed"] and tag["kept"]]
    return {
        "at": moment(),
        "note": NOTE,
        "collections": [named[number] for number in wanted],
        "articles": dict(counts),
        **_figures(len(agreed), sum(tag["proposed"] for tag in tags), sum(tag["kept"] for tag in tags)),
        "major": _major(agreed),
        "qualifiers": _qualifiers(agreed),
        "struck": _most(tags, lambda tag: tag["proposed"] and not tag["kept"], "proposed"),
        "added": _most(tags, lambda tag: tag["kept"] and not tag["proposed"], "kept"),
        "by_score": _by_score(tags),
        "people": dict(people),
        "models": {name: count for name, count in models if name},
    }


def _tags(connection: sqlite3.Connection, collections: Sequence[int]) -> list[sqlite3.Row]:
    where = _DONE.format(", ".join("?" * len(collections)))
    columns = "article, ui, name, score, said, proposed, kept, major, qualifiers"
    return connection.execute(f"SELECT {columns} FROM tag WHERE {where}", list(collections)).fetchall()


def _grouped(
    connection: sqlite3.Connection, table: str, columns: str, by: str, collections: Sequence[int]
) -> list[tuple[str, int]]:
    """Numbers of rows by a column, the most first; names of tables and columns are this file's own."""
    places = ", ".join("?" * len(collections))
    query = f"SELECT {columns} FROM {table} WHERE collection IN ({places}) GROUP BY {by} ORDER BY 2 DESC, 1"
    return [tuple(row) for row in connection.execute(query, list(collections))]  # type: ignore[misc]


def _figures(agreed: int, proposed: int, kept: int) -> dict[str, Any]:
    precision, recall, f1 = map(float, precision_recall_f1(agreed, proposed, kept))
    counts = {"proposed": proposed, "kept": kept, "agreed": agreed}
    return counts | {"precision": precision, "recall": recall, "f1": f1}


def _major(agreed: Sequence[sqlite3.Row]) -> dict[str, Any] | None:
    """Of the descriptors on which both agree, how far they agree on which are major topics."""
    told = [(json.loads(tag["said"]).get("major"), bool(tag["major"])) for tag in agreed]
    pairs = [(said, decided) for said, decided in told if said is not None]
    if not pairs:
        return None
    both = sum(said and decided for said, decided in pairs)
    return _figures(both, sum(said for said, _ in pairs), sum(decided for _, decided in pairs))


def _qualifiers(agreed: Sequence[sqlite3.Row]) -> dict[str, Any] | None:
    """Of the descriptors on which both agree, how far they agree on the qualifiers."""
    pairs = [(json.loads(tag["said"]).get("qualifiers"), json.loads(tag["qualifiers"])) for tag in agreed]
    sets = [
        ({item["ui"] for item in said}, {item["ui"] for item in decided})
        for said, decided in pairs
        if said is not None
    ]
    if not sets:
        return None
    both = sum(len(said & decided) for said, decided in sets)
    return _figures(both, sum(len(said) for said, _ in sets), sum(len(decided) for _, decided in sets))


def _most(tags: Sequence[sqlite3.Row], wrong: Any, of: str) -> list[dict[str, Any]]:
    """Descriptors that the model had wrong most often, and in how many cases they came up at all."""
    counts = Counter(tag["ui"] for tag in tags if wrong(tag))
    all_of = Counter(tag["ui"] for tag in tags if tag[of])
    names = {tag["ui"]: tag["name"] for tag in tags}
    order = sorted(counts, key=lambda ui: (-counts[ui], names[ui]))
    return [{"ui": ui, "name": names[ui], "articles": counts[ui], "of": all_of[ui]} for ui in order[:MOST]]


def _by_score(tags: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    """Tags by their score in steps of a tenth: how many, and which share was kept."""
    scored = [tag for tag in tags if tag["score"] is not None]
    rows = []
    for step in range(BINS):
        here = [tag for tag in scored if min(int(tag["score"] * BINS), BINS - 1) == step]
        share = sum(tag["kept"] for tag in here) / len(here) if here else None
        rows.append({"from": step / BINS, "to": (step + 1) / BINS, "tags": len(here), "kept": share})
    return rows


def report_lines(report: dict[str, Any]) -> list[str]:
    """The figures for a terminal."""
    articles = report["articles"]
    lines = [
        f"{articles['done']:,} articles done, {articles['skipped']:,} skipped, {articles['todo']:,} to do",
        f"precision {report['precision']:.3f}, recall {report['recall']:.3f}, F1 {report['f1']:.3f}: of "
        f"{report['proposed']:,} proposed descriptors {report['agreed']:,} were kept; {report['kept']:,} "
        "were given in all",
    ]
    for name in ("major", "qualifiers"):
        if figures := report[name]:
            told = ", ".join(f"{key} {figures[key]:.3f}" for key in ("precision", "recall", "f1"))
            lines.append(f"{name}: {told}")
    for name in ("struck", "added"):
        told = ", ".join(f"{row['name']} {row['articles']}" for row in report[name][:10])
        lines.append(f"{name} most: {told or 'none'}")
    return [*lines, f"note: {report['note']}"]
