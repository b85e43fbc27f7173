"""Figures in tables: aligned for a terminal, or in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table_lines(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> list[str]:
    """Rows of a table with aligned columns; numbers to the right."""
    columns = list(columns)
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in [columns, *cells]) for i in range(len(columns))]
    right = [all(isinstance(row.get(column), int | float) for row in rows) for column in columns]
    return [
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [columns, *cells]
    ]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) > 1 else f"{value:.4f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def count(number: float) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,.0f}"


def table(rows: list[list[str]]) -> str:
    """Rows, the first of them the head, as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
