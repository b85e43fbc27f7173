"""Preparing on a Ray of this machine: the files of one process, gone on with after a kill, bad input told."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE, wait_until
from process_tree import wait_for_worker

from kenmesh_hf.commands import main
from kenmesh_hf.errors import InputError
from kenmesh_hf.options import PrepareOptions
from kenmesh_hf.spreading import RayPrepareOptions, prepare_on_ray

ENGINE = ["--engine", "ray", "--workers", "2"]


def digests(folder: Path) -> dict[str, str]:
    """All that a dataset holds, without the records of its stages and the seconds of its report."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith((".stages/", "report")) and path.suffix != ".png":
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    del report["seconds"], report["options"]["out"]
    return found | {"report": report}


def command(sources: dict, out: Path) -> list[str]:
    said = ["prepare", "--out", str(out), "--quiet", "--articles", *sources["articles"]]
    for name, value in sources.items():
        if name != "articles":
            said += [f"--{name.replace('_', '-')}", str(value)]
    return [*said, *ENGINE]


@pytest.mark.ray
def test_the_same_files_though_a_worker_and_the_driver_are_killed(tiny_sources, tmp_path):
    def start(*said: str) -> subprocess.Popen:
        program, pipe = [sys.executable, "-m", "kenmesh_hf", *said], subprocess.PIPE
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.Popen(program, env=environment, stdout=pipe, stderr=pipe, text=True)

    def finish(job: subprocess.Popen) -> str:
        printed, said = job.communicate(timeout=PATIENCE)
        assert job.returncode == 0, said
        return printed

    # The card of a dataset names its folder.
    alone, out = tmp_path / "alone" / "data", tmp_path / "spread" / "data"
    finish(start(*command(tiny_sources, alone)[: -len(ENGINE)]))
    job = start(*command(tiny_sources, out))
    os.kill(wait_for_worker(job.pid), signal.SIGKILL)
    wait_until(lambda: (out / ".stages" / "words.json").exists(), "the words")
    job.send_signal(signal.SIGKILL)
    job.communicate()
    assert not (out / "report.json").exists()
    assert "Prepared in" in finish(start(*command(tiny_sources, out)))
    assert digests(out) == digests(alone)


@pytest.mark.parametrize(
    "ray_options, changes, sentence",
    [
        ({"build_memory": 1e6}, {}, "No node of this Ray has 1 cores and 1e\\+06 GB"),
        ({"build_cpus": 0}, {}, "--build-cpus is 0"),
        ({}, {"out": "s3://bucket/data"}, "copy it there when it is done"),
        ({}, {"articles": ["/nowhere/articles.jsonl"]}, "/nowhere/articles.jsonl does not exist"),
    ],
)
def test_what_cannot_be_is_a_sentence(tiny_sources, tmp_path, ray_options, changes, sentence):
    options = PrepareOptions(**{"out": str(tmp_path / "data"), **tiny_sources} | changes)
    with pytest.raises(InputError, match=sentence):
        prepare_on_ray(options, RayPrepareOptions(**ray_options), progress=False)
    assert not (tmp_path / "data").exists()


def test_options_of_the_engine_need_the_engine(tiny_sources, tmp_path, capsys):
    said = [word for word in command(tiny_sources, tmp_path / "data") if word not in ("--engine", "ray")]
    assert main([*said]) == 1
    assert "--workers is for --engine ray; give both" in capsys.readouterr().err
