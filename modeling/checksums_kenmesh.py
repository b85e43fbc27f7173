"""Checksums of a saved model's artefacts: files that were changed, cut short or mixed up are refused."""

import hashlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHECKSUMS_FILE = "checksums.json"
# Settings (config.json and the like) may be edited by hand, and code cannot vouch for itself: not listed.
ARTEFACT_SUFFIXES = (
    ".faiss",
    ".gz",
    ".npy",
    ".npz",
    ".safetensors",
    ".tsv",
    ".txt",
    ".safetensors.index.json",
)
ARTEFACT_NAMES = ("tokenizer.json",)
# The neighbour index is the largest part, and there are candidates without it: a model may be shared so.
INDEX_PREFIX = "neighbours"
HUB_OPTIONS = ("repo_id", "commit_message", "private", "revision", "create_pr", "tags")


def is_artefact(name: str) -> bool:
    """Whether a file of this name gets a checksum."""
    return not name.startswith(".") and (name in ARTEFACT_NAMES or name.endswith(ARTEFACT_SUFFIXES))


def is_index(name: str) -> bool:
    """Whether a file of this name is part of the neighbour index, which may be missing."""
    return name.startswith(INDEX_PREFIX)


def is_weights(name: str) -> bool:
    """Whether a file of this name holds weights of the network."""
    return name.startswith("model") and name.endswith((".safetensors", ".safetensors.index.json"))


def sha256_of(path: str | os.PathLike) -> str:
    """SHA-256 of a file's bytes, as hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_all(folder: Path, names: Iterable[str]) -> dict[str, str]:
    names = sorted(names)
    with ThreadPoolExecutor() as pool:  # hashing releases the lock of the interpreter
        return dict(zip(names, pool.map(lambda name: sha256_of(folder / name), names), strict=True))


def read_checksums(folder: str | os.PathLike) -> dict[str, str]:
    """What `checksums.json` lists; empty for a folder without one."""
    path = Path(folder) / CHECKSUMS_FILE
    if not path.exists():
        return {}
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); save or download the model again.") from error
    if not isinstance(listed, dict) or not all(isinstance(digest, str) for digest in listed.values()):
        raise ValueError(f"{path} must map file names to SHA-256 digests; save or download the model again.")
    if foreign := [name for name in listed if Path(name).name != name]:
        raise ValueError(
            f"{path} lists {foreign[0]!r}, which is not a file of this folder; download the model again."
        )
    return listed


def write_checksums(folder: str | os.PathLike, names: Iterable[str] | None = None) -> dict[str, str]:
    """Writes `checksums.json`; the same files give the same bytes.

    Args:
        folder: Of the saved model.
        names: Files that were just written: their entries are replaced, the others stay. Without it every
            artefact in the folder is listed anew.
    """
    folder = Path(folder)
    kept: dict[str, str] = {}
    if names is None:
        names = [path.name for path in folder.iterdir() if path.is_file() and is_artefact(path.name)]
    else:
        # Shards of a larger network may have been replaced by fewer files.
        kept = {
            name: digest
            for name, digest in read_checksums(folder).items()
            if not is_weights(name) or (folder / name).exists()
        }
    checksums = kept | _sha256_of_all(folder, names)
    text = json.dumps(checksums, indent=2, sort_keys=True) + "\n"
    (folder / CHECKSUMS_FILE).write_text(text, encoding="utf-8", newline="\n")
    return checksums


def check_checksums(folder: str | os.PathLike, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Refuses a folder in which a listed file is missing or is not the one that was saved.

    Only listed files are checked; a folder without `checksums.json` passes.

    Args:
        folder: Of the saved model.
        names: Check these and no others.

    Returns:
        Listed files of the neighbour index that are not there: the model was shared without its index.

    Raises:
        FileNotFoundError: A listed file that every model needs is missing.
        ValueError: A file was changed or cut short, or belongs to another model.
    """
    folder = Path(folder)
    listed = read_checksums(folder)
    if names is not None:
        names = set(names)
        listed = {name: digest for name, digest in listed.items() if name in names}
    missing = [name for name in sorted(listed) if not (folder / name).is_file()]
    if needed := [name for name in missing if not is_index(name)]:
        raise FileNotFoundError(
            f"{', '.join(needed)} is missing in {folder}, though {CHECKSUMS_FILE} lists it; "
            "save or download the model again."
        )
    for name, digest in _sha256_of_all(folder, set(listed) - set(missing)).items():
        if digest != listed[name]:
            raise ValueError(
                f"{name} in {folder} is not the file this model was saved with: it was changed, cut short or "
                "comes from another model. Save or download the model again; after replacing the file on "
                f"purpose, call write_checksums({str(folder)!r})."
            )
    return tuple(missing)


class ChecksummedWeights:
    """Put before `PreTrainedModel`: weights get checksums when saved, and are held to them when loaded."""

    def save_pretrained(
        self,
        save_directory: str | os.PathLike,
        is_main_process: bool = True,
        state_dict: dict | None = None,
        push_to_hub: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        hub_options = {name: kwargs.pop(name) for name in HUB_OPTIONS if name in kwargs}
        super().save_pretrained(save_directory, is_main_process, state_dict, False, *args, **kwargs)  # type: ignore[misc]
        folder = Path(save_directory)
        if is_main_process:
            write_checksums(folder, [path.name for path in folder.iterdir() if is_weights(path.name)])
        if push_to_hub and is_main_process:
            # Only now are the checksums there to go along.
            self.push_to_hub(**({"repo_id": folder.name, "token": kwargs.get("token")} | hub_options))  # type: ignore[attr-defined]

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        if pretrained_model_name_or_path is not None and Path(pretrained_model_name_or_path).is_dir():
            names = filter(is_weights, read_checksums(pretrained_model_name_or_path))
            check_checksums(pretrained_model_name_or_path, names)
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)  # type: ignore[misc]


__all__ = [
    "CHECKSUMS_FILE",
    "ChecksummedWeights",
    "check_checksums",
    "is_artefact",
    "is_index",
    "is_weights",
    "read_checksums",
    "write_checksums",
]
