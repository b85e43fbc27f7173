"""Many people at one desk, and a server that is killed now and then: what was acknowledged must be there.

Used by `desk.py` and by the tests. Clients speak HTTP over plain sockets, so that they cost little beside the
server on the same machine; all of it goes to 127.0.0.1 and ends by itself.
"""

import asyncio
import json
import random
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
PATIENCE = 300.0


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server((HOST, 0)) as server:
        return server.getsockname()[1]


class DeskServer:
    """A server in a process of its own that can be killed and started again at the same port.

    Args:
        command: Its command, but for the port, which comes last.
        port: Where it listens.
    """

    def __init__(self, command: Sequence[str], port: int):
        self.command, self.port, self.kills = [*map(str, command), str(port)], port, 0
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "DeskServer":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end(signal.SIGINT)

    def start(self) -> None:
        """Starts it and waits until it answers."""
        self.process = subprocess.Popen(self.command)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.get("/api/desk")
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"The server did not start: {' '.join(self.command)}") from None
                time.sleep(0.05)

    def kill(self) -> None:
        """Ends it as a power cut would, without a word."""
        self._end(signal.SIGKILL)
        self.kills += 1

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)

    def get(self, path: str) -> Any:
        """What the server answers."""
        with urllib.request.urlopen(f"http://{HOST}:{self.port}{path}", timeout=60) as answer:
            return json.load(answer)

    def post(self, path: str, data: bytes) -> Any:
        """What the server answers to some bytes."""
        request = urllib.request.Request(f"http://{HOST}:{self.port}{path}", data, method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


class Connection:
    """One browser's connection, kept open and opened again where the server ended it."""

    def __init__(self, port: int):
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and answer; ConnectionError where the server is not there, or no more."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{self.port}\r\nContent-Type: application/json\r\n"
        try:
            if self.streams is None:
                self.streams = await asyncio.open_connection(HOST, self.port)
            reader, writer = self.streams
            writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            await writer.drain()
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
            return int(lines[0].split()[1]), json.loads(await reader.readexactly(length))
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise ConnectionError(str(error)) from error

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


@dataclass
class Load:
    """What so many people did together."""

    acknowledged: list[str] = field(default_factory=list)
    conflicts: int = 0
    broken: int = 0
    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)


class Reviewer:
    """One of many people: decides on articles of a collection, some of them others' articles, too."""

    def __init__(self, name: str, number: int, port: int, articles: Sequence[int], load: Load, wanted: int):
        self.name, self.load, self.wanted = name, load, wanted
        self.connection = Connection(port)
        self.articles = articles
        self.draw = random.Random(number)
        self.versions: dict[int, int] = {}

    async def work(self) -> None:
        """Decides until all together have decided as often as wanted."""
        count = 0
        while len(self.load.acknowledged) < self.wanted:
            count += 1
            await self._decide(f"{self.name}, decision {count}", self.draw.choice(self.articles))
        self.connection.close()

    async def _decide(self, key: str, article: int) -> None:
        body = {"key": key, "who": self.name, "action": self.draw.choice(["skip", "reopen", "skip"])}
        while True:
            sent = body | {"version": self.versions.get(article, 0)}
            started = time.perf_counter()
            try:
                status, answer = await self.connection.send(
                    "POST", f"/api/desk/articles/{article}/decisions", sent
                )
            except ConnectionError:
                self.load.broken += 1
                await asyncio.sleep(0.05 + self.draw.random() / 10)
                continue
            if status == 200:
                self.versions[article] = answer["version"]
                self.load.acknowledged.append(key)
                self.load.milliseconds.append(1000 * (time.perf_counter() - started))
                return
            assert status == 409, answer
            self.load.conflicts += 1
            self.versions[article] = answer["article"]["version"]
            # Told that somebody was faster, people leave it or insist.
            if self.draw.random() < 0.5:
                return


def decide_together(
    server: DeskServer, articles: Sequence[int], people: int, decisions: int, kills: int = 0, seed: int = 0
) -> Load:
    """Lets people decide at once, while the server is killed at random moments and started again."""
    return asyncio.run(_decide_together(server, articles, people, decisions, kills, seed))


async def _decide_together(
    server: DeskServer, articles: Sequence[int], people: int, decisions: int, kills: int, seed: int
) -> Load:
    load, started = Load(), time.perf_counter()
    # Most of the time everybody has articles of their own; now and then all are at the same.
    own = [[*10 * articles[n::people], articles[0], articles[-1]] for n in range(people)]
    reviewers = [
        Reviewer(f"person {seed}.{n}", n, server.port, own[n], load, decisions) for n in range(people)
    ]
    killer = asyncio.create_task(_kill_now_and_then(server, load, decisions, kills, seed))
    await asyncio.gather(*(reviewer.work() for reviewer in reviewers))
    load.seconds = time.perf_counter() - started
    await killer
    return load


async def _kill_now_and_then(server: DeskServer, load: Load, decisions: int, kills: int, seed: int) -> None:
    """Kills when so many decisions are through, drawn at random, and a random moment more has passed."""
    draw = random.Random(seed)
    for moment in sorted(draw.randrange(decisions * 9 // 10) for _ in range(kills)):
        while len(load.acknowledged) < moment:
            await asyncio.sleep(0.002)
        await asyncio.sleep(draw.random() / 50)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)


def lost_decisions(desk: Path, load: Load) -> list[str]:
    """Acknowledged decisions that are not on disk, or there twice; articles whose version does not fit."""
    with closing(sqlite3.connect(desk)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kept = [key for (key,) in connection.execute("SELECT key FROM decision")]
        odd = connection.execute(
            "SELECT id FROM article "
            "WHERE version != (SELECT count(*) FROM decision WHERE article = article.id)"
        ).fetchall()
    assert len(kept) == len(set(kept))
    return [*sorted(set(load.acknowledged) - set(kept)), *(f"article {number}" for (number,) in odd)]


def half_open(port: int, count: int) -> list[socket.socket]:
    """Connections that begin a request and then say nothing more."""
    sockets = [socket.create_connection((HOST, port), timeout=60) for _ in range(count)]
    for number, connection in enumerate(sockets):
        head = f"POST /api/desk/collections?who=x HTTP/1.1\r\nHost: {HOST}:{port}\r\n"
        rest = "" if number % 2 else "Content-Length: 1000\r\n\r\nhalf a body"
        connection.sendall((head + rest).encode())
    return sockets
