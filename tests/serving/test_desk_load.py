"""Many people at one desk in a process of its own: nothing acknowledged is lost when it is killed."""

import json
import statistics
import sys
from pathlib import Path

import pytest
from desk_load import DeskServer, decide_together, free_port, half_open, lost_decisions
from patience import wait_until
from places import ROOT


@pytest.fixture
def server(tmp_path: Path):
    command = [sys.executable, ROOT / "tests" / "desk_server.py", tmp_path / "review.sqlite"]
    with DeskServer(command, free_port()) as server:
        yield server


def open_articles(server: DeskServer, count: int) -> list[int]:
    rows = [json.dumps({"pmid": str(n), "title": f"Heparin in mice, part {n}"}) for n in range(1, count + 1)]
    opened = server.post("/api/desk/collections?who=Ana&name=many.jsonl", "\n".join(rows).encode())
    assert opened["articles"] == count

    def tagged() -> bool:
        [counts] = server.get("/api/desk")["collections"]
        return counts["tagged"] == count

    wait_until(tagged, "the tags")
    return list(range(1, count + 1))


def check(server: DeskServer, desk: Path, people: int, decisions: int, kills: int, articles: int) -> None:
    numbers = open_articles(server, articles)
    load = decide_together(server, numbers, people, decisions, kills)
    assert len(load.acknowledged) >= decisions and server.kills == kills
    assert len(load.acknowledged) == len(set(load.acknowledged))
    assert lost_decisions(desk, load) == []
    if kills:
        assert load.broken, "a kill should have been felt"
    print(f"{len(load.acknowledged)} decisions, {load.conflicts} conflicts, {load.broken} broken connections")
    print(f"median {statistics.median(load.milliseconds):.1f} ms")


def test_what_was_acknowledged_survives_a_kill_and_silent_connections(server: DeskServer, tmp_path: Path):
    sockets = half_open(server.port, 60)
    check(server, tmp_path / "review.sqlite", people=20, decisions=400, kills=1, articles=60)
    for connection in sockets:
        connection.close()


@pytest.mark.stress
def test_200_people_and_10_000_decisions_survive_kills(server: DeskServer, tmp_path: Path):
    check(server, tmp_path / "review.sqlite", people=200, decisions=10_000, kills=10, articles=1000)


@pytest.mark.stress
def test_300_half_open_connections_keep_nobody_out(server: DeskServer, tmp_path: Path):
    numbers = open_articles(server, 100)
    sockets = half_open(server.port, 300)
    load = decide_together(server, numbers, people=50, decisions=1000)
    assert lost_decisions(tmp_path / "review.sqlite", load) == []
    assert len(server.get("/api/desk")["collections"]) == 1
    for connection in sockets:
        connection.close()
