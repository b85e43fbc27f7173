"""Lets a model learn: decided articles vote, thresholds move, others tell what that is worth."""

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..evaluating import MIN_ARTICLES, compare_models, retune_thresholds
from ..files import check_new, unfinished
from ..indexing import add_articles, indexed
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..reading import Article, Heading
from ..sharing import find_model, load
from ..updating import save_grown
from .handing_in import decided_articles
from .store import Desk, moment

# Shares, in hundredths, of decided articles that are kept apart to judge by, and to choose thresholds on.
JUDGED, TUNED = 25, 20
# What the comparison cannot tell; it goes wherever its figures go.
NOTE = (
    "People decided with a model's proposals before their eyes, so this comparison favours the model that "
    "proposed, usually the old one."
)
_UNKNOWN = "whether it got better can't be told"


@dataclass
class Parts:
    """Decided articles by what they are for."""

    voting: list[Article] = field(default_factory=list)
    tuning: list[Article] = field(default_factory=list)
    judging: list[Article] = field(default_factory=list)


def share_out(articles: Iterable[Article]) -> Parts:
    """Shares articles out by what they are, so that each is always for the same, however many join later."""
    parts = Parts()
    for article in articles:
        name = article.pmid or f"{article.title}\n{article.abstract}"
        place = zlib.crc32(name.encode()) % 100
        chosen = parts.judging if place < JUDGED else parts.tuning if place < JUDGED + TUNED else parts.voting
        chosen.append(article)
    return parts


def decided(desk: Desk, collections: Iterable[int] | None = None) -> list[Article]:
    """Articles that are done, each once, with the headings that were decided; none without any."""
    found: dict[str, Article] = {}
    for article, tags, _ in decided_articles(desk, collections):
        if tags:
            labelled = replace(article, headings=tuple(map(Heading.from_dict, tags)))
            found[article.pmid or f"{article.title}\n{article.abstract}"] = labelled
    return list(found.values())


def learn(
    desk: Desk,
    model: str | os.PathLike,
    out: str | os.PathLike,
    collections: Iterable[int] | None = None,
    **loading: Any,
) -> dict[str, Any]:
    """Makes a model that knows the decided articles, beside the old one, which stays as it is.

    Args:
        desk: Whose done articles to learn from.
        model: Folder or Hub name of the model.
        out: New folder for the model that has learned.
        collections: Which collections; all by default.
        **loading: `revision` and `token` of a model on the Hub.

    Returns:
        What was learned from how many articles (`voting`, `tuning`, `judging`), how many `joined` the index,
        whether the `thresholds` moved, what the articles kept apart say (`compare_models`), and a `note` on
        what they cannot say.

    Raises:
        InputError: Nothing is done yet, or `out` is not new.
    """
    out = Path(out)
    check_new(out, "the model that has learned")
    parts = share_out(decided(desk, collections))
    if not parts.voting:
        raise InputError("Too little is done at this desk to learn from. Mark more articles as done first.")
    folder = find_model(model, dict(loading))
    old = load(folder)
    processor, growth = add_articles(old.processor, parts.voting)
    parts.tuning, parts.judging = _unknown(old, parts.tuning), _unknown(old, parts.judging)
    if tuned := len(parts.tuning) >= MIN_ARTICLES:
        grown = MeSHIndexingPipeline(model=old.model, processor=processor)
        processor = processor.with_parts(thresholds=retune_thresholds(grown, parts.tuning))
    new = MeSHIndexingPipeline(model=old.model, processor=processor)
    judged = compare_models(old, new, parts.judging)
    report = {
        "model": str(model),
        "out": str(out),
        "voting": len(parts.voting),
        "tuning": len(parts.tuning),
        "joined": growth.added,
        "already_known": growth.known,
        "thresholds": _threshold_note(old, new) if tuned else None,
        "judging": judged.pop("articles"),
        **judged,
        "note": NOTE,
    }
    with unfinished(out) as part:
        save_grown(folder, part, processor)
    keep_learning(desk, report)
    return report


def _unknown(tagger: MeSHIndexingPipeline, articles: Sequence[Article]) -> list[Article]:
    """Articles that the model's index does not hold: of those in it, it knows the answers."""
    found = indexed(tagger.processor.candidates, articles) if articles else ()
    return [article for article, known in zip(articles, found, strict=True) if not known]


def _threshold_note(old: MeSHIndexingPipeline, new: MeSHIndexingPipeline) -> dict[str, float]:
    return {
        name: round(tagger.processor.thresholds.global_threshold, 4)
        for name, tagger in (("before", old), ("after", new))
        if tagger.processor.thresholds is not None
    }


def keep_learning(desk: Desk, report: dict[str, Any]) -> None:
    """Notes on the desk what was learned."""
    with desk.writing() as connection:
        connection.execute(
            "INSERT INTO learning (at, model, out, report) VALUES (?, ?, ?, ?)",
            (moment(), report["model"], report["out"], json.dumps(report)),
        )


def list_learning(desk: Desk) -> list[dict[str, Any]]:
    """What was learned from the desk, the newest first."""
    with desk.reading() as connection:
        rows = connection.execute("SELECT at, report FROM learning ORDER BY id DESC").fetchall()
    return [{"at": row["at"]} | json.loads(row["report"]) for row in rows]


def learning_lines(report: dict[str, Any]) -> list[str]:
    """What was learned, and what it is worth, for a terminal."""
    lines = [
        f"{report['joined']:,} decided articles vote now, {report['already_known']:,} were known "
        f"→ {report['out']}"
    ]
    lines.append(_threshold_line(report["thresholds"], report["tuning"]))
    return [*lines, _verdict(report), *([f"note: {report['note']}"] if report["judging"] else [])]


def _threshold_line(thresholds: dict[str, float] | None, tuning: int) -> str:
    if thresholds is None:
        return f"thresholds stay: {tuning:,} articles are for choosing them, {MIN_ARTICLES} are needed"
    if len(set(thresholds.values())) == 1 < len(thresholds):
        return f"thresholds stay: moving them is no better on {tuning:,} others"
    moved = " → ".join(f"{value:.3f}" for value in thresholds.values())
    return f"thresholds chosen on {tuning:,} others: {moved}"


def _verdict(report: dict[str, Any]) -> str:
    count = report["judging"]
    if not count:
        return f"{_UNKNOWN}: no decided article was left to judge by"
    before, after = report["before"]["MiF"], report["after"]["MiF"]
    low, high = report["interval"]
    told = {"better": "it got better", "worse": "it got worse"}.get(report["verdict"], _UNKNOWN)
    return (
        f"{told}: micro F1 {before:.3f} → {after:.3f} on {count:,} decided articles kept apart "
        f"(difference {report['difference']:+.3f}, 95 % between {low:+.3f} and {high:+.3f})"
    )
