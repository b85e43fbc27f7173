"""The accelerate example: two processes give the losses of one on the same global batch."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE
from places import EXAMPLES

from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor

SCRIPT = EXAMPLES / "train_with_accelerate.py"


def run(launcher: list[str], data: Path, out: Path) -> tuple[list[float], float]:
    """Losses of all steps, and the last MiF."""
    # Dropout draws other numbers in each process; without it the two runs must agree.
    options = ["--preset", "small", "--epochs", "1", "--dropout", "0"]
    done = subprocess.run(
        [*launcher, str(SCRIPT), str(data), str(out), *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"step \d+ loss (\S+)", done.stdout)]
    return losses, float(re.findall(r"MiF (\S+)", done.stdout)[-1])


def test_two_processes_are_as_one(
    tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    alone, score = run([sys.executable], tiny_prepared, tmp_path / "alone")
    together, same = run(torchrun, tiny_prepared, tmp_path / "together")
    assert len(alone) == len(together) > 3
    assert together == pytest.approx(alone, abs=5e-6)
    assert same == pytest.approx(score, abs=0.01)
    model = KenMeSHForMeSHIndexing.from_pretrained(tmp_path / "together")
    assert len(KenMeSHProcessor.from_pretrained(tmp_path / "together").vocabulary) == model.config.num_labels
