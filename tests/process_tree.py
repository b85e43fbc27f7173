"""Processes below a process as the system sees them, for tests that end some of them."""

import os
from pathlib import Path

from patience import wait_until

# What Ray calls a worker while it works on an item.
WORKING = "ray::Worker.run"


def title_of(pid: int) -> str:
    """A process's command line; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def descendants(pid: int) -> set[int]:
    """All processes that a process started, and those that they started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def working(pid: int = os.getpid()) -> list[int]:
    """Workers below a process that are at work."""
    return [child for child in sorted(descendants(pid)) if title_of(child).startswith(WORKING)]


def wait_for_worker(pid: int = os.getpid()) -> int:
    """A worker below a process, as soon as one is at work."""
    return wait_until(lambda: working(pid), "a worker at work")[0]
