"""Times alternatives in turn in one process, so that a busy machine slows them alike."""

import argparse
import ctypes
import gc
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


def parse_arguments(
    description: str, argv: Sequence[str] | None = None, *, threads: int = 1, **options: Any
) -> argparse.Namespace:
    """Options every benchmark has, and those of its own, each of the type of its default."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in options.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(value), default=value, help="default %(default)s"
        )
    parser.add_argument("--repeats", type=int, default=5, help="runs of each, of which the median counts")
    parser.add_argument("--threads", type=int, default=threads, help="threads of torch; default %(default)s")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    return arguments


def alternate(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each after one warm-up, taking turns.

    A single thread is timed by the processor time it used, which other programs on the machine hardly touch.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            started = clock()
            run()
            if repeat:
                seconds[name].append(clock() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_memory(run: Callable[[], object]) -> int:
    """Bytes that a run adds to the process at its highest point, looked at every millisecond."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except OSError:
        pass
    before = highest = _resident_bytes()
    done = threading.Event()

    def watch():
        nonlocal highest
        while not done.wait(0.001):
            highest = max(highest, _resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    done.set()
    watcher.join()
    return highest - before


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def print_table(rows: dict[str, dict[str, str]]):
    """One line for each row, columns aligned."""
    columns = list(next(iter(rows.values())))
    width = max(map(len, rows))
    print(" " * width, *(f"{column:>16}" for column in columns))
    for name, row in rows.items():
        print(f"{name:<{width}}", *(f"{row[column]:>16}" for column in columns))


@dataclass(frozen=True)
class Costs:
    """Median seconds of a forward pass and of a step of each alternative, and the bytes that a step adds."""

    forward: dict[str, float]
    step: dict[str, float]
    memory: dict[str, int]


def measure_costs(
    forward: str,
    forwards: dict[str, Callable[[], object]],
    steps: dict[str, Callable[[], object]],
    repeats: int,
    between: Callable[[], object] = gc.collect,
) -> Costs:
    """Times training steps, then forward passes without gradients, and prints both as a table.

    Args:
        forward: Heading of the forward passes.
        forwards: The alternatives' forward passes.
        steps: Their training steps.
        repeats: Runs of each.
        between: Called once the steps are done.
    """
    step = alternate(steps, repeats)
    memory = {name: peak_memory(run) for name, run in steps.items()}
    between()
    with torch.no_grad():
        costs = Costs(alternate(forwards, repeats), step, memory)
    print_table(
        {
            name: {
                forward: f"{1000 * costs.forward[name]:.0f} ms",
                "step": f"{1000 * seconds:.0f} ms",
                "peak memory": f"{memory[name] / 2**20:.0f} MiB",
            }
            for name, seconds in step.items()
        }
    )
    return costs
