"""Files of the package, and files that are written whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import InputError

BUNDLED_CHECKPOINT = Path(__file__).parent / "checkpoint"


def check_new(folder: Path, purpose: str) -> None:
    """Refuses a folder that has something in it, so that nothing is overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is already there; give a new folder for {purpose}.")


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """A name to write a file or folder under; the real name comes when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.unfinished")
    _remove(temporary)
    yield temporary
    if path.is_dir():
        _remove(path)
    os.replace(temporary, path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON for people and programs, whole or not at all."""
    with unfinished(path) as temporary:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        temporary.write_text(text, encoding="utf-8", newline="\n")
