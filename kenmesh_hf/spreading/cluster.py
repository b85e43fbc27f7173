"""A Ray to work on: one of this machine's own, started and stopped again, or a cluster that is there."""

import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InputError, KenMeSHError, need
from ..options import RayOptions

need("ray", "ray", "The engine ray")

import ray  # noqa: E402

# Bytes that a Ray of our own may share between processes: reports of files are all that passes through it.
OBJECT_STORE = 256 << 20
# Seconds in which a cluster must answer at all.
ANSWER = 15


@contextmanager
def connected(options: RayOptions) -> Iterator[None]:
    """A Ray to work on. One that this process has already is taken as it is, and stays."""
    if ray.is_initialized():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    _start(options)
    # Ray would abort this process with a dump; who had a handler before keeps it.
    _on_sigterm(_exit if before == signal.SIG_DFL else before)
    try:
        yield
    finally:
        ray.shutdown()
        _on_sigterm(before)


def _on_sigterm(handler: Any) -> None:
    """Sets what SIGTERM does, where that can be done: in the main thread, and if Python set it before."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _exit(number: int, frame: Any) -> None:
    """Ends this process as Ctrl+C does: what is under way ends first, workers too."""
    raise SystemExit(128 + number)


def _start(options: RayOptions) -> None:
    # Nobody is told that Ray runs here.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if options.address:
            _check_answers(options.address)
            with warnings.catch_warnings(action="ignore"):
                ray.init(address=options.address, **quiet)
            return
        ray.init(
            address="local",
            num_cpus=max(_cores(), options.workers or 0),
            include_dashboard=False,
            object_store_memory=OBJECT_STORE,
            # Nothing of it can be reached from other machines.
            _node_ip_address="127.0.0.1",
            # Ray's workers would step back behind all other programs of a machine that was asked to do this.
            _system_config={"worker_niceness": 0},
            **quiet,
        )
    except Exception as error:
        # Ray raises bare ones, too, as where a busy machine is too slow to start its processes: those go.
        ray.shutdown()
        where = f"to the Ray cluster at {options.address}" if options.address else "to a Ray of its own"
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise KenMeSHError(f"kenmesh cannot connect {where}: {reason}") from error


def _check_answers(address: str) -> None:
    """Refuses an address at which nobody listens; Ray would try it for minutes, with a log of its own.

    Raises:
        OSError: Nobody does.
    """
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if separator and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_workers(options: RayOptions) -> int:
    """As many workers as were asked for, or as the Ray that is connected has room for.

    Raises:
        InputError: It has no GPU, though workers shall have some.
    """
    there = ray.cluster_resources()
    if options.gpus_per_worker and not there.get("GPU"):
        raise InputError("--gpus-per-worker asks for GPUs, but this Ray has none; leave it out.")
    if options.workers:
        return options.workers
    room = there.get("CPU", 1)
    if options.gpus_per_worker:
        room = min(room, there["GPU"] / options.gpus_per_worker)
    return max(1, int(room))


def is_own_machine() -> bool:
    """Whether Ray runs on this machine alone, so that every worker sees the same disk."""
    return not ray.util.client.ray.is_connected() and len(ray.nodes()) == 1
