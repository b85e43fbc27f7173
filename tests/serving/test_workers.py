"""`kenmesh serve --workers`: tags and limits of one server, work done again after a loss, a clean stop."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from patience import PATIENCE, wait_until
from process_tree import descendants, title_of
from tiny_model import UNSEEN

from kenmesh_hf.errors import InputError
from kenmesh_hf.serving.tagger_processes import TaggerProcesses
from kenmesh_hf.serving.work_queue import QueueFull, WorkQueue

ROWS = [{"title": a.title, "abstract": a.abstract, "journal": a.journal or ""} for a in UNSEEN]


def taggers(pid: int) -> list[int]:
    """The processes of a server that have its model."""
    return [child for child in sorted(descendants(pid)) if "spawn_main" in title_of(child)]


def loads(pid: int) -> bool:
    """Whether a process has come as far as to load torch."""
    try:
        return "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


@pytest.fixture
def server(tiny_model, tmp_path) -> Iterator[tuple[subprocess.Popen, str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["serve", "--model", str(tiny_model), "--port", str(port), "--workers", "2"]
    command += ["--desk", str(tmp_path / "review.sqlite")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "kenmesh_hf", *command], stderr=subprocess.PIPE, text=True, env=environment
    )
    address = f"http://127.0.0.1:{port}/api"

    def answers() -> bool:
        assert process.poll() is None, process.stderr.read()
        try:
            return httpx.get(f"{address}/health").status_code == 200
        except httpx.TransportError:
            return False

    wait_until(answers, "the server")
    yield process, address
    process.kill()
    process.communicate()


def ask(address: str, rows: list[dict]) -> list[list[str]]:
    found = httpx.post(f"{address}/tag-many", json={"articles": rows}, timeout=PATIENCE)
    assert found.status_code == 200, found.text
    return [[tag["ui"] for tag in row["tags"]] for row in found.json()["results"]]


def test_tags_survive_a_killed_process_and_the_stop_is_clean(server, tiny_tagger):
    process, address = server
    expected = [[tag["ui"] for tag in tags] for tags in tiny_tagger(ROWS)]
    with ThreadPoolExecutor(4) as clients:
        assert list(clients.map(lambda _: ask(address, ROWS), range(4))) == [expected] * 4
    before = taggers(process.pid)
    assert len(before) == 2
    os.kill(before[0], signal.SIGKILL)
    assert ask(address, ROWS) == expected
    assert len(wait_until(lambda: taggers(process.pid), "fresh processes")) == 2
    started = descendants(process.pid)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in said and "Loading" not in said
    assert not any(title_of(pid) for pid in started)


def test_a_desk_is_tagged_in_all_processes_and_survives_the_loss_of_one(server, tiny_tagger):
    process, address = server
    expected = [{tag["ui"] for tag in tags} for tags in tiny_tagger(ROWS)]
    rows = "\n".join(json.dumps(row) for row in ROWS * 10)
    where = {"who": "Ana", "name": "many.jsonl"}
    opened = httpx.post(f"{address}/desk/collections", params=where, content=rows, timeout=PATIENCE)
    assert opened.json()["articles"] == 10 * len(ROWS)
    os.kill(taggers(process.pid)[0], signal.SIGKILL)

    def tagged() -> bool:
        [counts] = httpx.get(f"{address}/desk", timeout=PATIENCE).json()["collections"]
        return counts["tagged"] == counts["articles"]

    wait_until(tagged, "the tags of every article")
    for number in range(1, 10 * len(ROWS) + 1):
        shown = httpx.get(f"{address}/desk/articles/{number}", timeout=PATIENCE).json()
        assert shown["problem"] is None
        proposed = {tag["ui"] for tag in shown["tags"] if tag["proposed"]}
        assert proposed == expected[(number - 1) % len(ROWS)]


def test_ctrl_c_while_the_processes_start_ends_them_without_a_word(tiny_model):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kenmesh_hf",
            "serve",
            "--model",
            str(tiny_model),
            "--port",
            "0",
            "--workers",
            "2",
        ],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: [*map(loads, taggers(process.pid))] == [True, True], "processes at work")
    started = descendants(process.pid)
    # A terminal sends it to all of them.
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "Traceback" not in said
    wait_until(lambda: not any(title_of(pid) for pid in started), "the end of its processes")


def test_processes_end_with_a_killed_server(server):
    process, address = server
    started = descendants(process.pid)
    process.kill()
    wait_until(lambda: not any(title_of(pid) for pid in started), "the end of its processes")


def test_a_number_of_workers_that_cannot_be_is_refused(tiny_model):
    with pytest.raises(InputError, match="--workers is 0"):
        TaggerProcesses(str(tiny_model), 0)


def test_several_threads_share_one_queue_and_its_limits():
    gate, running, most = threading.Event(), [], []

    def tagger(articles, **options):
        running.append(len(articles))
        most.append(len(running))
        assert gate.wait(PATIENCE)
        running.pop()
        return [[{"ui": article["title"]}] for article in articles]

    queue = WorkQueue(tagger, batch_size=2, size=6, threads=2)
    rows = [{"title": str(number)} for number in range(6)]
    job = queue.submit("one", rows, {})
    wait_until(lambda: len(running) == 2, "two calls at once")
    # Four articles are being tagged, two wait: there is room for four more, of all clients together.
    assert queue.waiting == 2
    queue.submit("two", rows[:4], {})
    with pytest.raises(QueueFull):
        queue.submit("three", rows[:1], {})
    gate.set()
    assert [tags[0]["ui"] for tags in job.future.result(PATIENCE)] == [row["title"] for row in rows]
    queue.close()
    assert max(most) == 2 and not queue.alive
