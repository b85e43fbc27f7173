"""A model on its way to other machines: taken from a disk they share, or sent through Ray's object store."""

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from filelock import FileLock

from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..sharing import find_model
from ..tagging import TagOptions
from .cluster import is_own_machine

# Bytes of an object in the store; a worker writes one to its disk before it asks for the next.
PART = 64 << 20
# Of a smaller file the content tells whether it is the same; checksums.json vouches for the larger ones.
SMALL = 1 << 20


def identity(folder: Path) -> str:
    """The same for folders that hold the same model."""
    digest = hashlib.sha256()
    for path in _files(folder):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        if size <= SMALL:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


@dataclass
class Parcel:
    """A model that workers on any node can load.

    Attributes:
        options: What tags are wanted; their `model` is what the user called it.
        folder: Where it is on the machine that sends it.
        key: Its `identity`.
        parts: References to the pieces of each file in the object store; empty where all see one disk.
    """

    options: TagOptions
    folder: str
    key: str
    parts: dict[str, list[Any]]

    @classmethod
    def of(cls, options: TagOptions) -> "Parcel":
        """Finds a model, from the Hub if need be: all workers then have the same version of it."""
        loading = dict(options.loading)
        folder = find_model(options.model, loading).absolute()
        return cls(replace(options, loading=loading), str(folder), identity(folder), {})

    def send(self) -> "Parcel":
        """Puts the files where every node can get them, unless Ray runs on this machine alone."""
        if not is_own_machine():
            self.parts = {path.name: _put(path) for path in _files(Path(self.folder))}
        return self

    def load(self) -> MeSHIndexingPipeline:
        """The model, on the node where this is called."""
        return replace(self.options, model=str(self.place())).load()

    def place(self) -> Path:
        """A folder with the model on this node: the one of the sender, or one copy for all workers here."""
        folder = Path(self.folder)
        if folder.is_dir() and (not self.parts or identity(folder) == self.key):
            return folder
        copies = Path(tempfile.gettempdir()) / f"kenmesh-models-{os.getuid()}"
        copies.mkdir(mode=0o700, exist_ok=True)
        copy = copies / self.key[:32]
        with FileLock(f"{copy}.lock"):
            if not copy.is_dir() or identity(copy) != self.key:
                self._write(copy)
        return copy

    def _write(self, copy: Path) -> None:
        unfinished = copy.with_name(f"{copy.name}.unfinished")
        for old in (copy, unfinished):
            shutil.rmtree(old, ignore_errors=True)
        unfinished.mkdir()
        for name, parts in self.parts.items():
            with open(unfinished / name, "wb") as file:
                for part in parts:
                    file.write(ray.get(part))
        unfinished.replace(copy)


def _put(path: Path) -> list[Any]:
    with open(path, "rb") as file:
        return [ray.put(part) for part in iter(lambda: file.read(PART), b"")]
