"""The report of agreement as a page with plots: plain HTML and SVG, no script, nothing fetched."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

WIDTH, BAR, GAP = 640, 22, 8

# For a page that is a file of its own; a page that is served links its style instead.
STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: 0.25rem 1rem 0.25rem 0; text-align: left; }
td.number, th.number { text-align: right; } svg { max-width: 100%; height: auto; } .muted { color: #56636a; }
.plot-bar { fill: #0b6b63; } .plot-back { fill: #dcdfdc; } .plot-text { fill: #1c2326; font-size: 13px; }
.plot-line { stroke: #a3261f; stroke-width: 2; fill: none; }
"""


def render_report(report: dict[str, Any], stylesheets: Sequence[str] = ()) -> str:
    """A whole page.

    Args:
        report: What `score_agreement` gives.
        stylesheets: Addresses of its style; by default the page brings its own.
    """
    title = "Agreement: " + (", ".join(report["collections"]) or "an empty desk")
    links = "".join(f'<link rel="stylesheet" href="{escape(sheet)}">' for sheet in stylesheets)
    style = links or f"<style>{STYLE}</style>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>{style}</head>'
        f'<body class="report"><main><section><h1>{escape(title)}</h1>{_body(report)}</section></main>'
        "</body></html>\n"
    )


def _body(report: dict[str, Any]) -> str:
    articles = report["articles"]
    told = f"{articles['done']:,} articles done, {articles['skipped']:,} skipped, {articles['todo']:,} to do."
    parts = [f'<p class="muted">{told} All figures are of those that are done. {escape(report["at"])}</p>']
    if not articles["done"]:
        return "".join([*parts, "<p>Nothing is done yet, so there is nothing to compare.</p>"])
    parts += ["<h2>Proposals against decisions</h2>", f"<p>{escape(report['note'])}</p>", _overview(report)]
    parts += ["<h2>Precision, recall and F1</h2>", _shares(report)]
    parts += ["<h2>What was kept of what the model scored alike</h2>", _calibration(report["by_score"])]
    for name, verb in (("struck", "Struck out"), ("added", "Added")):
        parts += [f"<h2>{verb} most</h2>", _most(report[name])]
    parts += ["<h2>Who decided</h2>", _table(["Name", "Decisions"], list(report["people"].items()))]
    return "".join(parts)


def _overview(report: dict[str, Any]) -> str:
    rows = []
    for name, figures in (
        ("Descriptors", report),
        ("Major topics", report["major"]),
        ("Qualifiers", report["qualifiers"]),
    ):
        if figures:
            counts = [f"{figures[key]:,}" for key in ("proposed", "kept", "agreed")]
            rows.append((name, *counts, *(f"{figures[key]:.3f}" for key in ("precision", "recall", "f1"))))
    return _table(["What", "Proposed", "Given", "In both", "Precision", "Recall", "F1"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any], tag: str) -> str:
        classes = ["" if place == 0 else ' class="number"' for place in range(len(cells))]
        return "".join(
            f"<{tag}{kind}>{escape(str(cell))}</{tag}>" for cell, kind in zip(cells, classes, strict=True)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{line(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _bars(rows: Sequence[tuple[str, float, str]], label: str) -> str:
    """Horizontal bars: name, share of the whole width, and what stands at the end."""
    height, left, right = len(rows) * (BAR + GAP), 250, 90
    room = WIDTH - left - right
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{escape(label)}">']
    for number, (name, share, text) in enumerate(rows):
        top = number * (BAR + GAP)
        base = top + BAR - 6
        short = name if len(name) <= 34 else name[:33] + "…"
        parts += [
            f'<text class="plot-text" x="{left - 8}" y="{base}" text-anchor="end">{escape(short)}</text>',
            f'<rect class="plot-back" x="{left}" y="{top}" width="{room}" height="{BAR}" rx="3"/>',
            f'<rect class="plot-bar" x="{left}" y="{top}" width="{room * share:.1f}" height="{BAR}" rx="3"/>',
            f'<text class="plot-text" x="{left + room + 8}" y="{base}">{escape(text)}</text>',
        ]
    return "".join([*parts, "</svg>"])


def _shares(report: dict[str, Any]) -> str:
    names = {"precision": "precision", "recall": "recall", "F1": "f1"}
    rows = [(name, report[key], f"{report[key]:.3f}") for name, key in names.items()]
    told = ", ".join(f"{name} {text}" for name, _, text in rows)
    return _bars(rows, f"Bars: {told}")


def _calibration(by_score: Sequence[dict[str, Any]]) -> str:
    rows = [
        (
            f"score {row['from']:.1f} to {row['to']:.1f} ({row['tags']:,} tags)",
            row["kept"] or 0.0,
            "–" if row["kept"] is None else f"{row['kept']:.0%}",
        )
        for row in by_score
    ]
    return _bars(rows, "Bars: share of tags that were kept, by the model's score")


def _most(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "<p>None.</p>"
    highest = rows[0]["articles"]
    bars = [(row["name"], row["articles"] / highest, f"{row['articles']} of {row['of']}") for row in rows]
    return _bars(bars, "Bars: articles by descriptor")


def write_report(report: dict[str, Any], path: str | Path) -> None:
    """Writes the page as a file of its own."""
    Path(path).write_text(render_report(report), encoding="utf-8")
