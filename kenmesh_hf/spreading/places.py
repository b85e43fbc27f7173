"""Files that lie anywhere fsspec reaches: on a disk, or at s3://, gs://, hf:// and the like."""

import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec

from ..errors import DependencyError, InputError, KenMeSHError
from ..reading import is_citation_file, list_files

UNFINISHED = ".unfinished"
# There a file is seen only when it is whole; elsewhere it is sent under another name first.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "hf", "abfs", "az", "oci", "memory"}
# What file systems call that which changes with a file's content, the surest first.
MARKS = ("ETag", "etag", "blob_id", "sha256", "mtime", "LastModified", "updated", "created")


@dataclass(frozen=True)
class InputFile:
    """A file to work on.

    Attributes:
        path: Absolute, or with the protocol of its file system.
        size: Bytes.
        state: Changes when the file does, without reading it.
    """

    path: str
    size: int
    state: str


def is_remote(path: str) -> bool:
    """Whether a path names its file system, as in s3://bucket/file."""
    return "://" in path and not path.startswith("file://")


def absolute(path: str | Path) -> str:
    """A path that means the same in every process; one with a protocol is left as it is."""
    text = str(path)
    return text.rstrip("/") if is_remote(text) else str(Path(text.removeprefix("file://")).absolute())


@contextmanager
def reached(path: str) -> Iterator[Any]:
    """The file system of a path; its troubles are sentences that name the path."""
    try:
        yield fsspec.core.url_to_fs(path)[0]
    except ImportError as error:
        raise DependencyError(f"{path} cannot be reached: {error}.") from error
    except KenMeSHError:
        raise
    except OSError as error:
        # What a local system says is already plain; a remote one may give only a code.
        reason = error.strerror or str(error) or type(error).__name__
        raise InputError(f"{path} cannot be used: {reason}. Check the path and who may use it.") from error
    except Exception as error:
        raise InputError(
            f"{path} cannot be reached: {type(error).__name__}: {error}. Check address and credentials."
        ) from error


def find_inputs(paths: Iterable[str | Path]) -> list[InputFile]:
    """All files behind paths: files, folders, and for remote ones patterns, in their order.

    Raises:
        InputError: There is no such file, or standard input was asked for.
    """
    found: dict[str, InputFile] = {}
    for path in map(str, paths):
        if path == "-":
            raise InputError("Standard input cannot be spread over workers; give files.")
        files = _remote_files(path) if is_remote(path) else [absolute(file) for file in _local_files(path)]
        found |= {file: _input_file(file) for file in files if file not in found}
    return list(found.values())


def _local_files(path: str) -> list[str | Path]:
    local = Path(path.removeprefix("file://"))
    if not local.exists():
        raise InputError(f"{path} does not exist. Check the path.")
    return list_files([local], newest_first=False)


def _remote_files(path: str) -> list[str]:
    with reached(path) as system:
        bare = system._strip_protocol(path)
        if "*" in bare or "?" in bare:
            files = system.glob(bare)
        elif system.isdir(bare):
            files = [file for file in system.find(bare) if is_citation_file(file)]
        else:
            files = [bare] if system.exists(bare) else []
        if not files:
            raise InputError(f"{path} does not exist, or has no files. Check the path.")
        protocol = path.split("://")[0]
        return [f"{protocol}://{file.lstrip('/')}" for file in sorted(files)]


def _input_file(path: str) -> InputFile:
    with reached(path) as system:
        known = system.info(system._strip_protocol(path))
    mark = next((known[name] for name in MARKS if known.get(name)), "")
    return InputFile(path, int(known.get("size") or 0), str(mark))


def unseen(path: str) -> KenMeSHError:
    """What is said of a local path that is not there on some node."""
    return KenMeSHError(
        f"{path} is not to be seen on the node {socket.gethostname()}: give a folder that all nodes share, "
        "or an address such as s3://bucket/folder."
    )


@contextmanager
def fetched(path: str) -> Iterator[Path]:
    """A file on this machine's disk; a remote one is copied there for as long as the block runs."""
    if not is_remote(path):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="kenmesh-") as folder:
        copy = Path(folder) / Path(path).name
        with reached(path) as system:
            system.get_file(system._strip_protocol(path), str(copy))
        yield copy


@contextmanager
def whole(target: str) -> Iterator[Path]:
    """A local name to write under; the target appears, whole, when the block ends without error.

    Names are never shared: a worker that was given up may still write while another does its work again.
    """
    if not is_remote(target):
        place = Path(target)
        with reached(target):
            place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_name(f".{uuid4().hex}{UNFINISHED}")
        try:
            yield unfinished
            unfinished.replace(place)
        finally:
            unfinished.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="kenmesh-") as folder:
        copy = Path(folder) / Path(target).name
        yield copy
        with reached(target) as system:
            _send(system, copy, system._strip_protocol(target))


def _send(system: Any, copy: Path, path: str) -> None:
    protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
    if protocols & OBJECT_STORES:
        system.put_file(str(copy), path)
        return
    system.makedirs(path.rpartition("/")[0], exist_ok=True)
    unfinished = f"{path}.{uuid4().hex}{UNFINISHED}"
    system.put_file(str(copy), unfinished)
    system.mv(unfinished, path)


def read_texts(folder: str, ending: str) -> dict[str, str]:
    """Texts of the files of a folder by name; none where there is no such folder."""
    with reached(folder) as system:
        bare = system._strip_protocol(folder)
        system.invalidate_cache()
        if not system.isdir(bare):
            return {}
        names = [file for file in system.ls(bare, detail=False) if file.endswith(ending)]
        return {name.rpartition("/")[2]: system.cat_file(name).decode() for name in sorted(names)}


def sweep(folder: str) -> None:
    """Removes what killed workers left unfinished in a local folder; elsewhere they leave nothing seen."""
    if not is_remote(folder):
        for path in Path(folder).glob(f".*{UNFINISHED}"):
            path.unlink(missing_ok=True)
