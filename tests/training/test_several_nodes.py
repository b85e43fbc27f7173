"""Training on two nodes of this machine: one is killed, which ends the job, and the same commands go on."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from patience import PATIENCE, wait_until
from process_tree import descendants
from safetensors.torch import load_file

pytestmark = pytest.mark.ray
# Dropout draws its numbers anew after a break; without it the two runs must agree.
OPTIONS = [
    "--preset",
    "paper",
    "--epochs",
    "4",
    "--batch-size",
    "4",
    "--learning-rate",
    "0.01",
    "--dropout",
    "0",
]
Node = subprocess.Popen


@pytest.fixture
def start(tiny_prepared: Path, tmp_path: Path):
    """Starts both nodes of a training, as a person would on two machines; whatever is left ends at last."""
    nodes: list[Node] = []

    def start(out: Path, *more: str) -> list[Node]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
        meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", str(port)]
        command = ["-m", "kenmesh_hf", "train", str(tiny_prepared), "--out", str(out), *OPTIONS, *more]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
        for number in range(2):
            log = open(tmp_path / f"{out.name}-{number}{''.join(more)}.log", "w")
            node = Node([*launcher, *meeting, *command], stdout=log, stderr=log, env=environment)
            nodes.append(node)
            if number == 0:
                # The first to come keeps the meeting place: the test kills the other.
                wait_until(lambda: _listens(port), "the first node")
        return nodes[-2:]

    yield start
    for node in nodes:
        kill(node)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def kill(node: Node) -> None:
    """As a power cut would: the launcher and its processes, at once."""
    for pid in [*descendants(node.pid), node.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    node.wait()


def test_a_killed_node_ends_the_job_and_resume_goes_on(start: Callable, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert [node.wait(PATIENCE) for node in start(whole)] == [0, 0]
    first, second = start(broken)
    wait_until(
        lambda: list(broken.glob("checkpoints/checkpoint-*/trainer_state.json")) or first.poll() is not None,
        "a checkpoint",
    )
    kill(second)
    assert first.wait(PATIENCE) != 0
    assert not (broken / "model.safetensors").exists()
    assert [node.wait(PATIENCE) for node in start(broken, "--resume")] == [0, 0]
    one, other = (load_file(folder / "model.safetensors") for folder in (whole, broken))
    assert all(torch.allclose(weight, other[name], atol=1e-4) for name, weight in one.items())
    found = [json.loads((folder / "training.json").read_text())["history"] for folder in (whole, broken)]
    scores = [[entry["eval_MiF"] for entry in history if "eval_MiF" in entry] for history in found]
    assert scores[0] == pytest.approx(scores[1], abs=0.01) and len(scores[0]) == 4
