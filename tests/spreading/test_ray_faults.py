"""Ray clusters of several nodes on this machine, of which parts are ended: nothing is lost, nothing twice."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import ray
from patience import PATIENCE, wait_until
from process_tree import descendants, title_of, working
from ray._private.utils import get_system_memory, get_used_memory
from ray.cluster_utils import Cluster
from tiny import tiny_articles

from kenmesh_hf.commands import main
from kenmesh_hf.errors import KenMeSHError
from kenmesh_hf.reading import write_articles
from kenmesh_hf.spreading import RayOptions
from kenmesh_hf.spreading.crew import Crew

pytestmark = pytest.mark.ray
FILES, ARTICLES = 6, 150
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for number in range(FILES):
        articles = tiny_articles(ARTICLES, seed=number, first_pmid=1000 * number + 1)
        write_articles(articles, folder / f"part{number}.jsonl.gz")
    return folder


@pytest.fixture(scope="module")
def alone(inputs, tiny_model, tmp_path_factory) -> str:
    """What one process without Ray makes of all of them."""
    out = tmp_path_factory.mktemp("alone") / "tags.jsonl"
    command = ["tag", str(inputs), "--model", str(tiny_model), "--out", str(out), "--quiet"]
    assert main([*command, "--batch-size", "1"]) == 0
    return out.read_text(encoding="utf-8")


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Cluster]:
    """A head that does no work itself; tests add nodes."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    settings = {"num_cpus": 0, "include_dashboard": False, "_system_config": {"worker_niceness": 0}}
    cluster = Cluster(initialize_head=True, head_node_args=settings)
    yield cluster
    cluster.shutdown()


def start(inputs: Path, model: Path, out: Path, *more: str) -> subprocess.Popen:
    """`kenmesh tag --engine ray`, slow enough to be disturbed."""
    command = [
        "tag",
        inputs,
        "--model",
        model,
        "--out",
        out,
        "--engine",
        "ray",
        "--quiet",
        "--batch-size",
        "1",
    ]
    program = [sys.executable, "-m", "kenmesh_hf", *map(str, command), *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(program, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT)


def finish(job: subprocess.Popen) -> str:
    printed, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, said
    assert not printed
    return said


def assert_complete(out: Path, alone: str) -> None:
    """Every article once, as one process tags it, and a line in the manifest for each file."""
    outputs = sorted(out.glob("part*.jsonl"))
    assert "".join(path.read_text(encoding="utf-8") for path in outputs) == alone
    records = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    assert [record["output"] for record in records] == [f"part{number}.jsonl" for number in range(FILES)]
    assert {record["articles"] for record in records} == {ARTICLES}
    assert not list(out.rglob("*.unfinished"))


def raylet_of(node) -> int:
    [info] = node.all_processes["raylet"]
    return info.process.pid


def test_a_node_killed_in_the_middle(cluster, inputs, tiny_model, alone, tmp_path):
    cluster.add_node(num_cpus=1)
    other = cluster.add_node(num_cpus=1)
    job = start(inputs, tiny_model, tmp_path, "--address", cluster.address, "--workers", "2")
    wait_until(lambda: working(raylet_of(other)), "work on the node")
    cluster.remove_node(other, allow_graceful=False)
    assert finish(job).startswith("A worker was lost; ")
    assert_complete(tmp_path, alone)


def test_the_only_node_killed_and_another_joins(cluster, inputs, tiny_model, alone, tmp_path):
    first = cluster.add_node(num_cpus=1)
    job = start(inputs, tiny_model, tmp_path, "--address", cluster.address, "--workers", "1")
    wait_until(lambda: working(raylet_of(first)), "work on the node")
    cluster.remove_node(first, allow_graceful=False)
    assert job.poll() is None
    cluster.add_node(num_cpus=1)
    finish(job)
    assert_complete(tmp_path, alone)


@pytest.mark.parametrize("own", [True, False], ids=["its own Ray", "a cluster"])
def test_the_driver_killed(cluster, own, inputs, tiny_model, alone, tmp_path):
    where = []
    if not own:
        cluster.add_node(num_cpus=2)
        where = ["--address", cluster.address]
    job = start(inputs, tiny_model, tmp_path, "--workers", "2", *where)
    wait_until(lambda: len(list(tmp_path.glob("part*.jsonl"))) >= 2, "two finished files")
    left = descendants(job.pid)
    job.send_signal(signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL
    job.stderr.close()
    job.stdout.close()
    # Nobody goes on without the driver.
    wait_until(lambda: not any(title_of(pid) for pid in left), "the end of the driver's Ray")
    wait_until(lambda: not working(), "the end of the driver's workers")
    assert not (tmp_path / "manifest.jsonl").exists()
    noted = {path.stem for path in (tmp_path / ".manifest").glob("*.json")}
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in noted}
    assert 2 <= len(before) < FILES
    finish(start(inputs, tiny_model, tmp_path, "--workers", "2", *where, "--resume"))
    assert_complete(tmp_path, alone)
    assert before == {name: (tmp_path / name).stat().st_mtime_ns for name in before}


@pytest.mark.parametrize("sign, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_job_that_is_stopped_ends_its_ray_and_says_no_more_than_that(
    sign, code, inputs, tiny_model, tmp_path
):
    job = start(inputs, tiny_model, tmp_path, "--workers", "2")
    wait_until(lambda: working(job.pid), "work")
    started = descendants(job.pid)
    job.send_signal(sign)
    _, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == code
    assert "Traceback" not in said and "received" not in said
    wait_until(lambda: not any(title_of(pid) for pid in started), "the end of Ray")


def test_from_a_machine_outside_the_cluster(cluster, inputs, tiny_model, alone, tmp_path):
    """Through Ray's client, as from a laptop: the model is sent, a killed worker replaced."""
    node = cluster.add_node(num_cpus=2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gate = [sys.executable, "-m", "ray.util.client.server", "--address", cluster.address]
    server = subprocess.Popen([*gate, "--host", "127.0.0.1", "--port", str(port)], env=ENVIRONMENT)
    try:
        wait_until(lambda: _listens(port), "the client server")
        job = start(inputs, tiny_model, tmp_path, "--address", f"ray://127.0.0.1:{port}", "--workers", "2")
        os.kill(wait_until(lambda: working(raylet_of(node)), "work on the node")[0], signal.SIGKILL)
        finish(job)
    finally:
        server.kill()
        server.wait()
    assert_complete(tmp_path, alone)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "127.0.0.1:1"])
def test_an_address_where_nobody_answers(inputs, tiny_model, tmp_path, address):
    job = start(inputs, tiny_model, tmp_path, "--address", address)
    _, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1
    assert said.startswith(f"kenmesh: error: kenmesh cannot connect to the Ray cluster at {address}")
    assert said.count("\n") == 1
    assert "Traceback" not in said


@pytest.fixture
def far_node(cluster, tmp_path):
    """Starts a node from which some folders are not to be seen."""
    hidden = shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if not hidden or hidden.returncode:
        pytest.skip("only a system that allows mount namespaces can hide a disk from a node")
    started = []

    def begin(*folders: Path) -> Path:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        hide = "; ".join(f"mount -t tmpfs none {folder}" for folder in folders)
        ray_start = f"{sys.executable} -m ray.scripts.scripts start --address {cluster.address} --num-cpus 2"
        script = f"set -e; {hide}; exec {ray_start} --block"
        environment = ENVIRONMENT | {"TMPDIR": str(scratch)}
        output = open(tmp_path / "far.log", "w")
        process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script], env=environment, stdout=output, stderr=output
        )
        started.append(process)
        wait_until(lambda: len([n for n in cluster.global_state.node_table() if n["Alive"]]) == 2, "the node")
        return scratch

    yield begin
    for process in started:
        for pid in descendants(process.pid):
            psutil.Process(pid).kill() if psutil.pid_exists(pid) else None
        process.kill()
        process.wait()


def test_a_node_without_the_disk_of_the_model(cluster, far_node, inputs, tiny_model, alone, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    scratch, out = far_node(model), tmp_path / "tags"
    finish(start(inputs, model, out, "--address", cluster.address, "--workers", "2"))
    assert_complete(out, alone)
    [copies] = scratch.glob("kenmesh-models-*")
    # One copy for both workers, equal to the model.
    [copy] = [path for path in copies.iterdir() if path.is_dir()]
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == {
        path.name: path.read_bytes() for path in model.iterdir() if path.is_file()
    }


@pytest.mark.parametrize("what", ["inputs", "outputs"])
def test_a_node_without_the_disk_of_the_files(cluster, far_node, what, inputs, tiny_model, tmp_path):
    given, out = tmp_path / "given", tmp_path / "tags"
    shutil.copytree(inputs, given)
    out.parent.mkdir(exist_ok=True)
    hidden = {"inputs": given, "outputs": tmp_path / "shared"}[what]
    hidden.mkdir(exist_ok=True)
    far_node(hidden)
    target = hidden / "tags" if what == "outputs" else out
    job = start(given, tiny_model, target, "--address", cluster.address, "--workers", "1")
    _, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1
    [sentence] = said.strip().splitlines()
    assert "is not to be seen on the node" in sentence and str(hidden) in sentence
    assert not list(target.glob("part*"))


def test_a_worker_out_of_memory_is_a_sentence(monkeypatch):
    def start():
        held = []

        def hoard(item):
            # Up to a bound that spares the machine where nobody ends it.
            for _ in range(80):
                held.append(bytearray(os.urandom(1 << 10) * (100 << 10)))

        return hoard

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    threshold = (get_used_memory() + (3 << 30)) / get_system_memory()
    settings = {"memory_usage_threshold": threshold, "memory_monitor_refresh_ms": 50, "worker_niceness": 0}
    ray.init(
        address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, _system_config=settings
    )
    try:
        # Other programs of the machine may take the memory before the worker can.
        with pytest.raises(KenMeSHError, match="ran out of memory (on large.xml|as it started).*--workers"):
            list(Crew(start, RayOptions(workers=1)).work(["large.xml"]))
    finally:
        ray.shutdown()
