"""Actors that each load what they need once and work through a list; one that is lost is replaced."""

import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)

from .._version import __version__
from ..errors import KenMeSHError, MismatchError
from ..options import RayOptions
from .cluster import count_workers

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Work = Callable[[Any], Any]
# Workers that an item may cost before it is given up.
ATTEMPTS = 3
# Seconds without a single worker after which that is said.
PATIENCE = 60
GOING_ON = "What is finished stays: the same command goes on, `kenmesh tag` with --resume."
MISSING = re.compile(r"No module named '[\w.]+'")
LOSSES = (RayActorError, WorkerCrashedError, OutOfMemoryError, NodeDiedError, ObjectLostError)


class Worker:
    """What runs in an actor.

    Args:
        start: Loads what is needed once and gives the function that works on an item.
        version: Of the package, which must be the same on all nodes.
    """

    def __init__(self, start: Callable[[], Work], version: str):
        self._start, self._version = start, version
        self._work: Work | None = None

    def load(self) -> None:
        """A call of its own and not the constructor, so that its errors come back as they are."""
        if self._version != __version__:
            raise MismatchError(
                f"A node of the cluster has kenmesh_hf {__version__}, this machine {self._version}; "
                "install the same version on all of them."
            )
        self._work = self._start()

    def run(self, item: Any) -> Any:
        assert self._work is not None
        return self._work(item)


class Crew:
    """Workers on a Ray that is connected.

    Ray decides where they run. Items go only to workers that are ready: where the cluster has no room for a
    worker, or no longer has, the others do its work, and it joins when there is.

    Args:
        start: What each worker begins with; see `Worker`.
        options: How many workers, and what each needs.
    """

    def __init__(self, start: Callable[[], Work], options: RayOptions):
        self.size = count_workers(options)
        self._start = start
        self._actor = ray.remote(num_cpus=1, num_gpus=options.gpus_per_worker or 0)(Worker)
        self._busy: dict[Any, tuple[Any, Any]] = {}
        self._losses: Counter[str | None] = Counter()
        self._given_up: list[KenMeSHError] = []
        self._done = 0

    def work(self, items: Iterable[Item]) -> Iterator[tuple[Item, Any]]:
        """Each item with its result, as they become ready.

        Args:
            items: What to work on; as text each is what people call it.

        Raises:
            KenMeSHError: Items cost one worker after the other. The others are done first, unless nothing
                else was ever done.
        """
        waiting = deque(items)
        for _ in range(min(self.size, len(waiting))):
            self._hire()
        try:
            while waiting or any(item is not None for _, item in self._busy.values()):
                done = self._wait()
                actor, item = self._busy.pop(done)
                try:
                    result = result_of(done, item)
                except LOSSES as error:
                    self._replace(actor, item, error, waiting)
                    continue
                if waiting:
                    following = waiting.popleft()
                    self._busy[actor.run.remote(following)] = actor, following
                if item is None:
                    # It started, so whatever ended others as they did is over.
                    self._losses[None] = 0
                else:
                    self._done += 1
                    yield item, result
        finally:
            for actor, _ in self._busy.values():
                ray.kill(actor)
            self._busy.clear()
        if self._given_up:
            raise self._given_up[0]

    def _hire(self) -> None:
        actor: Any = self._actor.remote(self._start, __version__)
        self._busy[actor.load.remote()] = actor, None

    def _wait(self) -> Any:
        """What is ready next; a cluster that has no room at all is told of once."""
        done, _ = ray.wait(list(self._busy), num_returns=1, timeout=PATIENCE)
        if not done:
            if all(item is None for _, item in self._busy.values()):
                logger.warning("No worker has started yet; the cluster may have no room for one.")
            done, _ = ray.wait(list(self._busy), num_returns=1)
        return done[0]

    def _replace(self, actor: Any, item: Any, error: Exception, waiting: deque[Any]) -> None:
        """Another worker for a lost one; its item is done again, unless it costs too many."""
        ray.kill(actor)
        if item is None and (missing := MISSING.search(str(error))):
            raise _missing(missing[0]) from error
        name = None if item is None else str(item)
        self._losses[name] += 1
        if self._losses[name] < ATTEMPTS:
            logger.warning("A worker was lost%s.", f"; {item} is done again" if item is not None else "")
            if item is not None:
                waiting.appendleft(item)
        else:
            self._given_up.append(loss(item, error))
            if item is None or not self._done:
                raise self._given_up[-1] from error
        self._hire()


def result_of(done: Any, item: Any) -> Any:
    """What a worker returned; what it raised is raised as it was there."""
    try:
        return ray.get(done)
    except RayTaskError as error:
        if isinstance(error.cause, MemoryError):
            raise out_of_memory(item) from error
        if isinstance(error.cause, ImportError):
            raise _missing(str(error.cause)) from error
        raise error.cause from error


def _missing(what: str) -> KenMeSHError:
    return KenMeSHError(
        f"A node of the cluster cannot load what a worker needs ({what}); "
        "install the same kenmesh-hf[ray] on all nodes."
    )


def out_of_memory(item: Any) -> KenMeSHError:
    """What to do where a worker had too little memory."""
    where = f" on {item}" if item is not None else " as it started"
    return KenMeSHError(
        f"A worker ran out of memory{where}. Use fewer --workers, or nodes with more memory. {GOING_ON}"
    )


def loss(item: Any, error: Exception) -> KenMeSHError:
    """What is said of an item that cost too many workers."""
    # The first is told of a worker at work, the second of one that has not begun.
    if isinstance(error, OutOfMemoryError) or "running low on memory" in str(error):
        return out_of_memory(item)
    where = "Workers end as they start" if item is None else f"{item} cost {ATTEMPTS} workers in turn"
    return KenMeSHError(
        f"{where}: they crashed or were ended from outside, perhaps for want of memory. "
        f"Ray's logs say more. {GOING_ON}"
    )
