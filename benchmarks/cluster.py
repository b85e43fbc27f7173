"""Tagging on Ray with one and two workers of this machine, beside one process without Ray.

Pieces of a real PubMed file are tagged. Every worker, and the process without Ray, is held to a core of its
own: that is what a worker is given, and one that could would prepare its next articles on a second core. The
clock runs from when all have loaded the model to when the last file is written; rounds take turns, and the
best of each counts, since other programs of the machine can only make one slower. `scaling` is one worker's
time over that of two, `overhead` one worker's over that of a process without Ray; `cpu_scaling` and
`cpu_overhead` are the same by processor time, which other programs touch less: there 2.0 means that two
workers do not slow each other down. `ceiling` is what two processes without Ray gain that share the files and
know nothing of each other: below 2.0 the machine's cores slow each other down, whoever uses them.
`identical` tells whether all give the same descriptors, `score_difference` by how much scores differ at most.
For `lost` a worker is killed in the middle, and the articles are counted that are then missing or there
twice. `peak_driver_mb` is the driver's memory, `driver_growth_mb` what twenty times as many files add to it,
`workers_mb` what the workers hold together.

    python benchmarks/cluster.py [--articles 2400] [--files 8] [--repeats 3]
"""

import gzip
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ray
from _measure import parse_arguments, print_table
from parse_pubmed import sample_file
from processes import ALONE, check_proc, in_fresh_process, memory_of, processes_below

from kenmesh_hf import BUNDLED_CHECKPOINT
from kenmesh_hf.spreading import (
    Crew,
    FileJob,
    FileTagger,
    Manifest,
    Parcel,
    RayOptions,
    connected,
    find_inputs,
)
from kenmesh_hf.tagging import TagOptions, tag_files

RECORD = re.compile(rb"<PubmedArticle>.*?</PubmedArticle>", re.DOTALL)
# What Ray calls a worker that is at work.
WORKING = b"ray::Worker.run"


def cut(source: Path, folder: Path, articles: int, files: int) -> list[Path]:
    """So many records of a PubMed file, as files of their own."""
    content = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    records = [match[0] for _, match in zip(range(articles), RECORD.finditer(content), strict=False)]
    size, paths = -(-len(records) // files), []
    for number, start in enumerate(range(0, len(records), size)):
        paths.append(folder / f"pubmed{number:04d}.xml.gz")
        body = b"\n".join(records[start : start + size])
        paths[-1].write_bytes(gzip.compress(b"<PubmedArticleSet>\n" + body + b"\n</PubmedArticleSet>\n", 4))
    return paths


class LoadedOptions(TagOptions):
    """Options whose model is loaded before the time runs."""

    def load(self) -> Any:
        if not hasattr(self, "tagger"):
            self.tagger = super().load()
        return self.tagger


def begin_together(ready: Path, workers: int) -> None:
    """Waits until so many processes are here, and holds each of them to a core of its own."""
    (ready / str(os.getpid())).touch()
    while len(list(ready.iterdir())) < workers:
        time.sleep(0.005)
    cores, all_of_us = sorted(os.sched_getaffinity(0)), sorted(int(path.name) for path in ready.iterdir())
    os.sched_setaffinity(0, {cores[all_of_us.index(os.getpid()) % len(cores)]})


def tag_alone(inputs: list[Path], out: Path, model: str, ready: Path, workers: int) -> dict[str, float]:
    """Tags files without Ray; when it worked, and seconds of the processor."""
    options = LoadedOptions(model)
    options.load()
    begin_together(ready, workers)
    began, cpu = time.time(), time.process_time()
    tag_files(inputs, out, options, progress=False)
    return {"began": began, "ended": time.time(), "cpu": time.process_time() - cpu}


def without_ray(inputs: list[Path], out: Path, model: str, processes: int) -> dict[str, float]:
    """Seconds of so many processes that share the files: of the clock and of the processor."""
    ready, spawn = Path(tempfile.mkdtemp(dir=out.parent)), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn) as pool:
        jobs = [
            pool.submit(
                tag_alone, inputs[number::processes], out / f"{number}.jsonl", model, ready, processes
            )
            for number in range(processes)
        ]
        records = [job.result() for job in jobs]
    return seconds_of(records)


def seconds_of(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """From the first beginning to the last end, and what all used of the processor."""
    clock = max(record["ended"] for record in records) - min(record["began"] for record in records)
    return {"clock": clock, "cpu": sum(record["cpu"] for record in records)}


def punctual(parcel: Parcel, job: FileJob, ready: Path, workers: int) -> Callable[[], Callable]:
    """Workers that begin together, and tell when they worked and for how long."""

    def start() -> Callable:
        tagger = FileTagger(parcel, job)
        begin_together(ready, workers)

        def work(piece: Any) -> dict[str, Any]:
            began, cpu = time.time(), time.process_time()
            record = tagger(piece)
            return record | {"began": began, "ended": time.time(), "cpu": time.process_time() - cpu}

        return work

    return start


def with_ray(inputs: list[Path], out: Path, model: str, workers: int) -> dict[str, float]:
    """Seconds of a Ray of this machine with so many workers, and megabytes that these hold together."""
    out, options, parcel = out.absolute(), RayOptions(workers=workers), Parcel.of(TagOptions(model))
    ready = Path(tempfile.mkdtemp(dir=out.parent))
    job = FileJob(str(out), "jsonl", {"model": model, "options": {}})
    pieces = Manifest(str(out), job.settings, resume=False).plan(find_inputs(inputs), ".jsonl")
    records, held = [], 0
    # Workers get the functions of this file whole: they cannot import it where another program did.
    ray.cloudpickle.register_pickle_by_value(sys.modules[with_ray.__module__])
    with connected(options):
        for _, record in Crew(punctual(parcel.send(), job, ready, workers), options).work(pieces):
            records.append(record)
            held = max(held, memory_of(working(os.getpid())))
    return seconds_of(records) | {"workers_mb": held / 2**20}


def working(root: int) -> list[int]:
    """Workers below a process that are at work."""
    return [pid for pid in processes_below(root)[0] if _title(pid).startswith(WORKING)]


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def read_tags(folder: Path) -> Iterator[dict[str, Any]]:
    """Rows of all outputs of a run, in order."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.name != "manifest.jsonl":
            yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def compare(one: Path, other: Path) -> tuple[bool, float]:
    """Whether two runs gave the same descriptors to the same articles, and how far scores are apart."""
    same, apart = True, 0.0
    rows, others = list(read_tags(one)), list(read_tags(other))
    for row, expected in zip(rows, others, strict=False):
        scores = {tag["ui"]: tag["score"] for tag in row["tags"]}
        wanted = {tag["ui"]: tag["score"] for tag in expected["tags"]}
        same = same and row["pmid"] == expected["pmid"] and scores.keys() == wanted.keys()
        apart = max([apart, *(abs(scores[ui] - wanted[ui]) for ui in scores.keys() & wanted.keys())])
    return same and len(rows) == len(others), apart


def start_command(inputs: Sequence[Path], out: Path, model: str) -> subprocess.Popen:
    command = ["-m", "kenmesh_hf", "tag", *map(str, inputs), "--out", str(out), "--model", model, "--quiet"]
    engine = ["--engine", "ray", "--workers", "2"]
    return subprocess.Popen([sys.executable, *command, *engine], env=os.environ | ALONE)


def count_lost(inputs: list[Path], out: Path, model: str, expected: Path) -> int:
    """Articles that are missing or there twice after a worker was killed while it worked."""
    job = start_command(inputs, out, model)
    while not (found := working(job.pid)):
        if job.poll() is not None:
            raise SystemExit("The job ended before a worker could be killed; tag more articles.")
        time.sleep(0.01)
    os.kill(found[0], signal.SIGKILL)
    if job.wait():
        raise SystemExit(f"The job with a killed worker ended with {job.returncode}.")
    counts = Counter(row["pmid"] for row in read_tags(expected))
    there = Counter(row["pmid"] for row in read_tags(out))
    return (counts - there).total() + (there - counts).total()


def driver_memory(inputs: list[Path], out: Path, model: str) -> float:
    """Megabytes of the driver at its highest point."""
    job, highest = start_command(inputs, out, model), 0
    while job.poll() is None:
        status = Path(f"/proc/{job.pid}/status")
        if found := re.search(r"VmHWM:\s+(\d+)", status.read_text() if status.exists() else ""):
            highest = max(highest, int(found[1]))
        time.sleep(0.05)
    if job.returncode:
        raise SystemExit(f"The job ended with {job.returncode}.")
    return highest / 1024


def measure_rounds(inputs: list[Path], folder: Path, args: Any) -> dict[str, dict[str, float]]:
    """The best clock and processor seconds of each way; their outputs stay in folders of their names."""
    ways: dict[str, Callable[..., dict[str, float]]] = {
        "no Ray": partial(without_ray, processes=1),
        "2 processes": partial(without_ray, processes=2),
        "1 worker": partial(with_ray, workers=1),
        "2 workers": partial(with_ray, workers=2),
    }
    best: dict[str, dict[str, float]] = {}
    for repeat in range(args.repeats):
        for name, way in ways.items():
            out = folder / str(repeat) / name
            out.mkdir(parents=True)
            found = in_fresh_process(way, inputs, out, args.model)
            known = best.setdefault(name, found)
            best[name] = {key: min(value, known[key]) for key, value in found.items()}
    return best


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__.splitlines()[0], argv, articles=2400, files=8, file="", model=str(BUNDLED_CHECKPOINT)
    )
    check_proc()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = Path(args.file) if args.file else sample_file()
        inputs = cut(source, folder, args.articles, args.files)
        load = os.getloadavg()[0]
        best = measure_rounds(inputs, folder, args)
        runs = folder / "0"
        compared = [compare(runs / name, runs / "no Ray") for name in ("1 worker", "2 workers")]
        few = cut(source, _new(folder / "few"), 2, 2)
        many = cut(source, _new(folder / "many"), 40, 40)
        memory = {
            name: driver_memory(files, folder / f"out-{name}", args.model)
            for name, files in (("all", inputs), ("few", few), ("many", many))
        }
        lost = count_lost(inputs, folder / "killed", args.model, runs / "no Ray")
    print_table(
        {
            name: {
                "clock": f"{row['clock']:.1f} s",
                "processor": f"{row['cpu']:.1f} s",
                "ms an article": f"{1000 * row['clock'] / args.articles:.2f}",
            }
            for name, row in best.items()
        }
    )
    one, two, none, twice = (best[name] for name in ("1 worker", "2 workers", "no Ray", "2 processes"))
    result = {
        "benchmark": "cluster",
        "scaling": round(one["clock"] / two["clock"], 2),
        "overhead": round(one["clock"] / none["clock"], 3),
        "identical": all(same for same, _ in compared),
        "lost": lost,
        "peak_driver_mb": round(memory["all"]),
        "ceiling": round(none["clock"] / twice["clock"], 2),
        "cpu_scaling": round(2 * one["cpu"] / two["cpu"], 2),
        "cpu_overhead": round(one["cpu"] / none["cpu"], 3),
        "score_difference": max(apart for _, apart in compared),
        "driver_growth_mb": round(memory["many"] - memory["few"], 1),
        "workers_mb": {name: round(row["workers_mb"]) for name, row in best.items() if "workers_mb" in row},
        "seconds": {name: round(row["clock"], 2) for name, row in best.items()},
        "load_before": round(load, 1),
    }
    print(f"\nload of the machine before: {load:.1f} on {os.cpu_count()} cores\n")
    print(json.dumps(result | vars(args) | {"file": source.name}))


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    main()
