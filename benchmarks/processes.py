"""Memory and processor time of a command with all the processes it starts, from /proc; fresh processes."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kenmesh_hf.errors import InputError

SAMPLE_SECONDS, NOTE_SECONDS = 0.2, 2.0
# How many times as long as a look at the processes took nobody looks again.
LEISURE = 50
PR_SET_PDEATHSIG = 1
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ALONE = dict.fromkeys(THREADS, "1") | {"TQDM_DISABLE": "1"}


class Cost(NamedTuple):
    """Processor seconds of a command with all its processes, and the most bytes they held together."""

    cpu: float
    peak: int


def check_proc() -> None:
    """Says that nothing can be measured here, before the work that would be."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise InputError("The memory of processes is read from /proc; run this on Linux.")


def memory_of(pids: Iterable[int]) -> int:
    """Bytes that processes hold together.

    Shared pages are counted once, as those of the process that has most of them. The kernel's own shares
    (PSS) would be less the more other programs on the machine have the same libraries loaded.
    """
    private = shared = 0
    for pid in pids:
        try:
            sizes = _sizes(Path(f"/proc/{pid}/smaps_rollup").read_text())
        except OSError:
            # It has ended meanwhile.
            continue
        private += sum(size for name, size in sizes.items() if name.startswith("Private_"))
        shared = max(shared, sum(size for name, size in sizes.items() if name.startswith("Shared_")))
    return private + shared


def _sizes(rollup: str) -> dict[str, int]:
    lines = (line.split() for line in rollup.splitlines()[1:])
    return {name.rstrip(":"): 1024 * int(size) for name, size, *_ in lines}


def processes_below(root: int) -> tuple[list[int], float]:
    """A process with all that it started: the living ones, and processor seconds.

    The seconds are of these and of those that ended and were waited for.
    """
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in brackets may hold blanks; behind it come the state and the parent.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found, sum(ticks.get(pid, 0) for pid in found) / os.sysconf("SC_CLK_TCK")


def run_measured(
    command: Sequence[str], log: Path, note: Callable[[Cost], None] = lambda cost: None, **env: str
) -> Cost:
    """Runs a command to its end.

    Args:
        command: Arguments of Python.
        log: File for what it prints.
        note: Is told from time to time what was used so far.
        **env: More variables of its environment.

    Raises:
        InputError: It ended with an error.
    """
    with log.open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, *command],
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=os.environ | env,
            preexec_fn=_end_with_parent,
        )
        cost = _watch(process, note)
    if process.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        said = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        raise InputError(f"python {' '.join(command[:3])} failed: {said} (all it printed is in {log})")
    return cost


def _end_with_parent() -> None:
    """A command whose benchmark was killed must not go on beside the next run of it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(process: subprocess.Popen, note: Callable[[Cost], None]) -> Cost:
    """What a process has used when it has ended."""
    peak, noted = 0, time.monotonic()
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            # The kernel counts in it all processes that it waited for.
            cost = Cost(usage.ru_utime + usage.ru_stime, peak)
            note(cost)
            return cost
        looked = time.monotonic()
        pids, cpu = processes_below(process.pid)
        peak = max(peak, memory_of(pids))
        took = time.monotonic() - looked
        if time.monotonic() > noted + NOTE_SECONDS:
            note(Cost(cpu, peak))
            noted = time.monotonic()
        # The kernel goes through all pages of large processes, on a core that they would use.
        time.sleep(max(SAMPLE_SECONDS, LEISURE * took))


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes that are started meanwhile compute in one thread and show no bars."""
    before = os.environ.copy()
    os.environ.update(ALONE)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def in_fresh_process(work: Callable[..., Any], *args: Any) -> Any:
    """What a function returns in a process of its own with one thread."""
    with one_thread(), ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()
