"""A desk under load: many people decide while the server is killed, and 10,000 records are opened.

The server is `kenmesh serve --desk` with a real model, in a process of its own; clients are in this one, on
the same machine, and take their share of its processors. Decisions count when they are acknowledged, which is
when they are on disk. Lists are asked for one at a time, with the filters that people use in turn: while the
records are still being tagged, and when nobody decides any more.

    python benchmarks/desk.py [--records 10000] [--people 200] [--decisions 10000] [--kills 5] [--model M]
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from _measure import parse_arguments, print_table
from desk_load import Connection, DeskServer, decide_together, free_port, lost_decisions
from parse_pubmed import sample_file

from kenmesh_hf import BUNDLED_CHECKPOINT
from kenmesh_hf.reading import read_articles

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"start": 5000},
    {"sort": "doubt"},
    {"q": "treatment"},
    {"q": "effect of the"},
    {"ui": "D006801"},
    {"state": "todo", "sort": "doubt", "start": 2000},
    {"state": "skipped"},
)


def records(path: str, count: int) -> bytes:
    """Real citations, as many as wanted, as a file that somebody would open."""
    articles = islice(read_articles(path or sample_file(), every_version=True), count)
    rows = (
        {"pmid": a.pmid, "title": a.title, "abstract": a.abstract, "journal": a.journal} for a in articles
    )
    return "\n".join(map(json.dumps, rows)).encode()


def open_records(server: DeskServer, data: bytes) -> tuple[float, int]:
    """Seconds from sending a file to its first articles in the list, and how many it has."""
    started = time.perf_counter()
    opened = server.post("/api/desk/collections?who=benchmark&name=records.jsonl", data)
    found = server.get(f"/api/desk/collections/{opened['collection']}/articles?limit=100")
    return time.perf_counter() - started, found["total"]


def list_milliseconds(server: DeskServer, requests: int) -> list[float]:
    """How long lists take, one after the other."""

    async def ask() -> list[float]:
        connection, taken = Connection(server.port), []
        for number in range(requests):
            query = urlencode({"limit": 100} | FILTERS[number % len(FILTERS)])
            started = time.perf_counter()
            status, _ = await connection.send("GET", f"/api/desk/collections/1/articles?{query}")
            taken.append(1000 * (time.perf_counter() - started))
            assert status == 200
        connection.close()
        return taken

    return asyncio.run(ask())


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(
        __doc__.splitlines()[0],
        argv,
        records=10_000,
        people=200,
        decisions=10_000,
        kills=5,
        lists=400,
        file="",
        model=str(BUNDLED_CHECKPOINT),
    )
    with tempfile.TemporaryDirectory() as folder:
        desk = Path(folder) / "review.sqlite"
        serve = [sys.executable, "-m", "kenmesh_hf", "serve", "--model", arguments.model, "--desk", desk]
        with DeskServer([*serve, "--port"], free_port()) as server:
            seconds, total = open_records(server, records(arguments.file, arguments.records))
            while_tagging = list_milliseconds(server, arguments.lists)
            numbers = list(range(1, total + 1))
            calm = decide_together(server, numbers, arguments.people, arguments.decisions)
            killed = decide_together(
                server, numbers, arguments.people, arguments.decisions, arguments.kills, seed=1
            )
            lists = list_milliseconds(server, arguments.lists)
        lost = sum(len(lost_decisions(desk, load)) for load in (calm, killed))
    result = {
        "records": total,
        "open_10k_records_s": seconds,
        "decisions_per_s": len(calm.acknowledged) / calm.seconds,
        "decision_ms_p50": float(np.quantile(calm.milliseconds, 0.5)),
        "lost": lost,
        "kills": server.kills,
        "conflicts": calm.conflicts + killed.conflicts,
        "list_ms_p50": float(np.quantile(lists, 0.5)),
        "list_ms_p99": float(np.quantile(lists, 0.99)),
        "list_while_tagging_ms_p99": float(np.quantile(while_tagging, 0.99)),
    }
    print_table({name: {"measured": f"{value:,.1f}"} for name, value in result.items()})
    print(json.dumps(result))


if __name__ == "__main__":
    main()
