"""Long work in stages: what is complete with the same inputs and settings is not done again."""

import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from .._version import __version__
from ..files import write_json
from ..processes import end_with_parent


def file_state(path: str | os.PathLike) -> list[Any]:
    """What tells that a file is still the same without reading it: name, size and time of change."""
    path = Path(path)
    if path.is_dir():
        return [path.name, [file_state(item) for item in sorted(path.rglob("*")) if item.is_file()]]
    state = path.stat()
    return [path.name, state.st_size, state.st_mtime_ns]


@dataclass
class Stage:
    """A stage that is done.

    Attributes:
        name: Of the stage.
        fingerprint: Tells name, inputs and settings; stages that build on this one take it as an input.
        seconds: How long the work took when it was done.
        result: What the work returned.
        reused: Whether it was done in an earlier run.
    """

    name: str
    fingerprint: str
    seconds: float = 0.0
    result: dict[str, Any] = field(default_factory=dict)
    reused: bool = False


@dataclass
class Job:
    """One of many stages of a kind, such as the work on one file.

    Attributes:
        name: Of the stage.
        inputs: Everything the work depends on, as JSON.
        output: File that the work makes.
        work: A function that another process can import.
        arguments: Of the function.
        weight: Share of the progress bar.
    """

    name: str
    inputs: Any
    output: Path
    work: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]
    weight: int = 1

    def __str__(self) -> str:
        return self.name


# How long work took, and what it returned.
Timed = tuple[float, dict[str, Any]]


class Engine:
    """Where work is done: here, or in processes of this machine. Others do it elsewhere."""

    def once(self, work: Callable[[], Any]) -> Any:
        """The result of work that is done as a whole."""
        return work()

    def each(self, jobs: Sequence[Job], num_proc: int) -> Iterator[tuple[int, Timed]]:
        """The place of each job in the list with its seconds and its result, in any order."""
        with _workers(min(num_proc, len(jobs))) as spread:
            yield from enumerate(spread(do_job, jobs))


class Stages:
    """Remembers in a folder which stages are done.

    Args:
        folder: For the records, one small JSON file a stage.
        engine: Where they are done.
    """

    def __init__(self, folder: Path, engine: Engine | None = None):
        self.folder = folder
        self.engine = engine or Engine()

    def find(self, name: str, inputs: Any, outputs: Sequence[Path]) -> Stage:
        """The record of a stage; `reused` tells whether it is done."""
        text = json.dumps([__version__, name, inputs], sort_keys=True, default=str)
        fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
        try:
            record = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return Stage(name, fingerprint)
        if record.get("fingerprint") != fingerprint or not all(path.exists() for path in outputs):
            return Stage(name, fingerprint)
        return Stage(name, fingerprint, record["seconds"], record["result"], reused=True)

    def finish(self, stage: Stage, seconds: float, result: dict[str, Any]) -> Stage:
        """Records that a stage is done."""
        stage.seconds, stage.result = seconds, result
        record = {"fingerprint": stage.fingerprint, "seconds": seconds, "result": result}
        write_json(self.folder / f"{stage.name}.json", record)
        return stage

    def run(
        self, name: str, inputs: Any, outputs: Sequence[Path], work: Callable[[], dict[str, Any] | None]
    ) -> Stage:
        """Does a stage, unless it is done.

        Args:
            name: Of the stage, and of its record.
            inputs: Everything the work depends on, as JSON.
            outputs: What must be there for the stage to be done.
            work: Makes the outputs, each under its name only when it is whole.
        """
        stage = self.find(name, inputs, outputs)
        if stage.reused:
            return stage
        start = time.perf_counter()
        result = self.engine.once(work) or {}
        return self.finish(stage, round(time.perf_counter() - start, 3), result)

    def run_all(self, jobs: Sequence[Job], num_proc: int, bar: tqdm) -> list[Stage]:
        """Does stages of a kind, in several processes if asked; those that are done stay as they are."""
        stages = [self.find(job.name, job.inputs, [job.output]) for job in jobs]
        bar.update(sum(job.weight for job, stage in zip(jobs, stages, strict=True) if stage.reused))
        waiting = [(job, stage) for job, stage in zip(jobs, stages, strict=True) if not stage.reused]
        for place, (seconds, result) in self.engine.each([job for job, _ in waiting], num_proc):
            job, stage = waiting[place]
            self.finish(stage, seconds, result)
            bar.update(job.weight)
        return stages


def do_job(job: Job) -> Timed:
    """Does a job, in whatever process this is called."""
    start = time.perf_counter()
    result = job.work(*job.arguments)
    return round(time.perf_counter() - start, 3), result


@contextmanager
def _workers(number: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map` over processes; over this one alone if there is to be one."""
    if number < 2:
        yield map
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(number, mp_context=context, initializer=end_with_parent) as pool:
        yield pool.map
