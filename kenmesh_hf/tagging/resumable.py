"""Where tags are written: standard output, or a file that can be gone on with after a kill."""

import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from ..errors import InputError, MismatchError


class StandardOutput:
    """Standard output in the manner of `ResumableFile`; nothing is ever there before."""

    done = 0
    first_line: str | None = None

    def write(self, text: str, articles: int) -> None:
        """Adds the text of so many articles."""
        sys.stdout.write(text)
        sys.stdout.flush()
        self.done += articles

    def close(self) -> None:
        """Standard output stays open for others."""


class ResumableFile:
    """An output file that remembers how many articles are safely in it.

    Beside the file stands `NAME.progress` with that number and the file's length by then. After a kill,
    what came later is cut off, and the number tells how many articles to pass over. Nothing on disk changes
    before the first write, so a failing start destroys no earlier output.

    Args:
        path: The output file.
        job: What is being done; work begun for another job is not gone on with.
        resume: Go on with what is there instead of starting anew.
    """

    def __init__(self, path: str | Path, job: dict[str, Any], resume: bool = False):
        self.path = Path(path)
        self.progress = self.path.with_name(self.path.name + ".progress")
        self.job: dict[str, Any] = json.loads(json.dumps(job))
        self.done = 0
        self._bytes = 0
        self._file: IO[bytes] | None = None
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise InputError(
                f"Cannot write {self.path}: it is a folder, or stands in one that does not exist."
            )
        if resume:
            self._read_progress()

    def _read_progress(self) -> None:
        if not self.progress.exists():
            if self.path.exists():
                raise InputError(
                    f"{self.path} is complete, or was not written by `kenmesh tag`: there is nothing to "
                    "resume. Leave out --resume to write it anew."
                )
            return
        try:
            known = json.loads(self.progress.read_text(encoding="utf-8"))
            done, size, job = known["articles"], known["bytes"], known["job"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.progress} is damaged; delete it and start anew.") from error
        if changed := [name for name in self.job if self.job[name] != job.get(name)]:
            name = changed[0]
            raise MismatchError(
                f"{self.path} was begun with another {name}: {job.get(name)!r}, now {self.job[name]!r}. "
                "Resume it with the same inputs and options, or leave out --resume to write it anew."
            )
        if (self.path.stat().st_size if self.path.exists() else 0) < size:
            raise InputError(f"{self.path} is shorter than {self.progress} says; delete both and start anew.")
        self.done, self._bytes = done, size

    @property
    def first_line(self) -> str | None:
        """What an earlier part of the work wrote first, such as a table's header; None if there is none."""
        if not self._bytes:
            return None
        with open(self.path, encoding="utf-8", newline="") as file:
            return file.readline()

    def write(self, text: str, articles: int) -> None:
        """Adds the text of so many articles, and only then counts them as done."""
        if self._file is None:
            self._file = self._open()
        self._file.write(text.encode("utf-8"))
        self._file.flush()
        self.done += articles
        self._bytes = self._file.tell()
        self._note()

    def _open(self) -> IO[bytes]:
        try:
            # First the note: it makes clear that whatever stands in the file is not the complete output.
            self._note()
            file = open(self.path, "r+b" if self._bytes else "wb")
        except OSError as error:
            raise InputError(
                f"Cannot write {self.path}: {error.strerror}. Check the folder and its permissions."
            ) from error
        file.truncate(self._bytes)
        file.seek(self._bytes)
        return file

    def _note(self) -> None:
        part = self.progress.with_name(self.progress.name + ".part")
        known = {"articles": self.done, "bytes": self._bytes, "job": self.job}
        part.write_text(json.dumps(known), encoding="utf-8")
        os.replace(part, self.progress)

    def close(self) -> None:
        """The work is complete: the note of the progress goes."""
        if self._file is not None:
            self._file.close()
        self.progress.unlink(missing_ok=True)
