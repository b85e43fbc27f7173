"""A desk on disk: one SQLite file, many readers, and writers that take turns."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from ..errors import InputError, KenMeSHError
from .schema import connect, prepare


class NotOnDesk(KenMeSHError):
    """What was asked for is not there, or no more."""


class DeskFailed(KenMeSHError):
    """The file cannot be read or written now; nothing of what was to be written is there."""


# What to do, by SQLite's codes.
_ADVICE = {
    sqlite3.SQLITE_FULL: "Make room on its disk, then do it again",
    sqlite3.SQLITE_READONLY: "Copy it to where you may write",
    sqlite3.SQLITE_BUSY: "Another program is writing to it; do it again when that has ended",
    sqlite3.SQLITE_IOERR: "Look whether its disk is full or gone, then do it again",
}


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Says what SQLite cannot do, and what to do then."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        advice = _ADVICE.get(code, "If this stays, go on with a backup")
        raise DeskFailed(f"The desk {path} cannot be used: {error}. {advice}.") from error


class Desk:
    """Connections to a desk's file, which is made if it is not there.

    Args:
        path: The SQLite file.
        new: Whether it may be made.

    Raises:
        InputError: It is no desk, or not there and may not be made.
        MismatchError: It is of a later version.
    """

    def __init__(self, path: str | PathLike[str], new: bool = True):
        self.path = Path(path)
        if not new and not self.path.is_file():
            raise InputError(f"There is no desk {self.path}. Make one: kenmesh serve --desk {self.path}")
        prepare(self.path)
        self._idle: list[sqlite3.Connection] = []
        self._turn = threading.Lock()
        self._closed = False
        self._writer = connect(self.path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the desk to the end of the block.

        Raises:
            DeskFailed: The file cannot be read.
        """
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = connect(self.path)
        try:
            with _told(self.path):
                connection.execute("BEGIN")
                yield connection
        finally:
            connection.rollback()
            self._idle.append(connection)
            if self._closed:
                self._close_idle()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are on disk when the block ends, or not at all if it fails.

        Raises:
            DeskFailed: The file cannot be written.
        """
        with self._turn, _told(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                # A full disk is often noticed only here; what is left open would stop all that comes later.
                self._writer.commit()
            except BaseException:
                self._writer.rollback()
                raise

    def back_up(self, target: str | PathLike[str]) -> None:
        """A copy by SQLite's own means: whole, whatever is being written meanwhile."""
        target = Path(target)
        if target.exists():
            raise InputError(f"{target} is already there; give a new name for the backup.")
        try:
            with self._turn, closing(connect(target)) as copy:
                self._writer.backup(copy)
        except sqlite3.Error as error:
            raise InputError(f"{target} cannot be written: {error}.") from error

    def close(self) -> None:
        """Ends all connections; what was written stays.

        One that another thread is using is ended when it is done: SQLite may crash otherwise.
        """
        self._closed = True
        with self._turn:
            self._writer.close()
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:  # another thread was faster
                return


def tick(connection: sqlite3.Connection) -> int:
    """Moves the desk's clock on; what changes now bears its new time, so that others can ask for it."""
    return connection.execute("UPDATE clock SET now = now + 1 RETURNING now").fetchone()[0]


def moment() -> str:
    """The time of day as it is kept."""
    return datetime.now(UTC).isoformat(timespec="seconds")
