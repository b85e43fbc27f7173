"""`kenmesh prepare --engine ray`: files are read and rows made all over a cluster, the rest on one node."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ray

from ..errors import InputError
from ..options import PrepareOptions, RayPrepareOptions
from ..preparing import Engine, Job, do_job, prepare
from .cluster import connected
from .crew import LOSSES, Crew, loss, result_of
from .places import find_inputs, is_remote, reached, unseen, whole

FETCHED_FOLDER = "fetched"
# Options that name files.
PATHS = ("mesh", "mesh_trees", "pubmed", "pmc", "articles", "validation", "test", "word_vectors", "text")


class RayEngine(Engine):
    """Does the stages of `prepare` on the Ray that is connected.

    Args:
        out: Folder of the dataset, which all nodes must see.
        options: How many workers, and what is asked of the node that builds what is built once.
    """

    def __init__(self, out: str, options: RayPrepareOptions):
        self.options = options
        # Relative paths mean the same there as here.
        self.start = partial(_start, os.getcwd(), out)

    def once(self, work: Callable[[], Any]) -> Any:
        """The result of work on one node that has what was asked for."""
        asked: dict[str, Any] = {"num_cpus": self.options.build_cpus}
        if self.options.build_memory:
            asked["memory"] = int(self.options.build_memory * 1e9)
        remote: Any = ray.remote(**asked)(_once)
        try:
            return result_of(remote.remote(self.start, work), "what is built once")
        except LOSSES as error:
            raise loss("What is built once", error) from error

    def each(self, jobs: Sequence[Job], num_proc: int) -> Iterator[tuple[int, Any]]:
        """Jobs on all nodes; `num_proc` is for a single machine."""
        places = {job.name: place for place, job in enumerate(jobs)}
        for job, done in Crew(self.start, self.options).work(jobs):
            yield places[job.name], done


def _start(folder: str, out: str) -> Callable[[Job], Any]:
    """What a worker does first: makes sure that it sees the files, and gives the function that does a job."""
    if not Path(folder).is_dir():
        raise unseen(folder)
    os.chdir(folder)
    if not Path(out).is_dir():
        raise unseen(out)
    return do_job


def _once(start: Callable[[], Any], work: Callable[[], Any]) -> Any:
    start()
    return work()


def prepare_on_ray(
    options: PrepareOptions, ray_options: RayPrepareOptions | None = None, progress: bool = True
) -> dict[str, Any]:
    """`prepare` on a Ray cluster; it makes the same files.

    Args:
        options: What to prepare. The folder is on a disk that all nodes share; so are the inputs, or they lie
            at s3://, gs://, hf:// and are fetched into the folder first.
        ray_options: Where the work is spread to.
        progress: Show bars.

    Returns:
        The report.
    """
    ray_options = ray_options or RayPrepareOptions()
    ray_options.check()
    if is_remote(options.out):
        raise InputError(
            f"A dataset is prepared in a folder that all nodes share, not at {options.out}; copy it there "
            "when it is done, or send it to the Hub with `kenmesh push-dataset`."
        )
    local, wanted = _localize(options)
    if not wanted:
        local.check()
    with connected(ray_options):
        _check_room(ray_options)
        _fetch_all(wanted, ray_options)
        local.check()
        Path(options.out).mkdir(parents=True, exist_ok=True)
        return prepare(local, progress, RayEngine(options.out, ray_options))


def _check_room(options: RayPrepareOptions) -> None:
    """Refuses to wait for a node that the cluster does not have."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cores, memory = options.build_cpus, options.build_memory or 0
    if not any(node.get("CPU", 0) >= cores and node.get("memory", 0) >= memory * 1e9 for node in nodes):
        raise InputError(
            f"No node of this Ray has {cores} cores and {memory:g} GB of memory, "
            "as --build-cpus and --build-memory ask for."
        )


def _localize(options: PrepareOptions) -> tuple[PrepareOptions, dict[str, str]]:
    """The options with a local name for each remote file, and which file goes where."""
    wanted: dict[str, str] = {}
    folder = f"{options.out}/{FETCHED_FOLDER}"

    def local(path: str) -> list[str]:
        if not is_remote(path):
            return [path]
        found = {file.path: f"{folder}/{Path(file.path).name}" for file in find_inputs([path])}
        for source, target in found.items():
            if wanted.setdefault(target, source) != source:
                raise InputError(f"{source} and {wanted[target]} have the same name; rename one of them.")
        return list(found.values())

    changes: dict[str, Any] = {}
    for name in PATHS:
        value = getattr(options, name)
        if isinstance(value, list):
            changes[name] = [file for path in value for file in local(path)]
        elif value:
            [changes[name]] = local(value)
    return replace(options, **changes), wanted


def _fetch_all(wanted: dict[str, str], options: RayPrepareOptions) -> None:
    """Copies remote files into the folder; what is there already stays."""
    missing = [
        (source, str(Path(target).absolute()))
        for target, source in wanted.items()
        if not Path(target).exists()
    ]
    for _ in Crew(lambda: _fetch, options).work(missing):
        pass


def _fetch(wanted: tuple[str, str]) -> None:
    source, target = wanted
    with whole(target) as path, reached(source) as system:
        system.get_file(system._strip_protocol(source), str(path))
