"""`kenmesh learn` at the press of a button: in a process of its own, so that the desk stays quick."""

import asyncio
import sys
from itertools import count
from pathlib import Path
from typing import Any

from ..desk import Desk, list_learning
from ..errors import InputError


class DeskLearning:
    """Lets the model learn from the desk, into a new folder beside the desk's file.

    Args:
        desk: The desk.
        folder: Folder of the model; none where it is only in memory and cannot learn.
    """

    def __init__(self, desk: Desk, folder: str | None):
        self.desk, self.folder = desk, folder
        self.task: asyncio.Task | None = None
        self.process: asyncio.subprocess.Process | None = None
        self.problem: str | None = None

    @property
    def running(self) -> bool:
        """Whether it is learning now."""
        return self.task is not None and not self.task.done()

    def start(self) -> Path:
        """Begins to learn; gives the folder in which the new model will be.

        Raises:
            InputError: It is learning already, or cannot.
        """
        if self.folder is None:
            raise InputError("This server's model is in no folder, so it cannot learn. Use `kenmesh learn`.")
        if self.running:
            raise InputError("The model is learning already. Wait until it has finished.")
        out, self.problem = self._new_folder(), None
        self.task = asyncio.create_task(self._run(out))
        return out

    def _new_folder(self) -> Path:
        beside = self.desk.path.absolute()
        names = (beside.with_name(f"{beside.stem}-model-{number}") for number in count(1))
        return next(path for path in names if not path.exists())

    async def _run(self, out: Path) -> None:
        command = ["-m", "kenmesh_hf", "learn", self.desk.path, "--model", self.folder, "--out", out]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *map(str, command),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await self.process.communicate()
        if self.process.returncode:
            lines = said.decode(errors="replace").strip().splitlines()
            self.problem = (
                lines[-1].removeprefix("kenmesh: error: ") if lines else "Learning ended without a word."
            )

    async def stop(self) -> None:
        """Ends the learning that is under way; nothing of it stays."""
        if self.running and self.process is not None and self.process.returncode is None:
            self.process.terminate()
        if self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)

    def status(self) -> dict[str, Any]:
        """Whether it is learning, what went wrong last, and what was learned before."""
        learned = list_learning(self.desk)
        return {"running": self.running, "problem": self.problem, "learned": learned}
