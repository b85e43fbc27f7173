"""What became of each input file: a record beside the outputs, and all of them as one manifest."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..errors import InputError, MismatchError
from .places import InputFile, read_texts, whole

MANIFEST_FILE = "manifest.jsonl"
RECORDS_FOLDER = ".manifest"
Record = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """One input file and the name of its output."""

    input: InputFile
    output: str

    def __str__(self) -> str:
        return self.input.path


class Manifest:
    """The records of an output folder.

    A worker writes a record when its output is whole, so what is finished is known whoever is killed. The
    manifest for people and programs is made of them at the end.

    Args:
        out: Folder, on a disk or elsewhere.
        settings: What decides about the content of outputs; all of a folder are made with the same.
        resume: Go on with what is there; without it the folder must have no records.

    Raises:
        InputError: There are records, and nobody said to go on.
        MismatchError: They were made with other settings.
    """

    def __init__(self, out: str, settings: Record, resume: bool):
        self.out, self.settings = out, json.loads(json.dumps(settings))
        found = read_texts(f"{out}/{RECORDS_FOLDER}", ".json")
        if found and not resume:
            raise InputError(
                f"{out} holds the tags of an earlier job; go on with --resume or choose another."
            )
        self.records: dict[str, Record] = {}
        for name, text in found.items():
            try:
                record = json.loads(text)
                self.records[record["input"]] = record
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{out}/{RECORDS_FOLDER}/{name} is damaged; delete it, and its file is done again."
                ) from error
        self._check()

    def _check(self) -> None:
        for record in self.records.values():
            for name, value in self.settings.items():
                if record.get(name) != value and not _same_model(name, record.get(name), value):
                    raise MismatchError(
                        f"{self.out} was begun with other {name}: {record.get(name)!r}, now {value!r}. "
                        "Resume it with the same model and options, or choose another folder."
                    )

    def is_done(self, file: InputFile) -> bool:
        """Whether a file is finished, and has not changed since."""
        record = self.records.get(file.path)
        return record is not None and (record["size"], record["state"]) == (file.size, file.state)

    def without_own(self, files: Sequence[InputFile]) -> list[InputFile]:
        """The files less those that the job itself wrote: its folder may lie within its inputs.

        Raises:
            InputError: One of them stands where the manifest will.
        """
        place, records = f"{self.out}/{MANIFEST_FILE}", f"{self.out}/{RECORDS_FOLDER}/"
        if not self.records and any(file.path == place for file in files):
            raise InputError(f"{place} would be overwritten by the manifest; choose another folder for tags.")
        own = {place, *(f"{self.out}/{record['output']}" for record in self.records.values())}
        return [file for file in files if file.path not in own and not file.path.startswith(records)]

    def plan(self, inputs: Sequence[InputFile], ending: str) -> list[Piece]:
        """What is still to be done; files of one name in several folders get names of their own.

        None has the name of the manifest, or of an input that lies in the same folder. The largest come
        first, so that no worker begins one when the others are about to end.
        """
        planned = {file.path: record["output"] for file in inputs if (record := self.records.get(file.path))}
        taken = Counter(record["output"] for record in self.records.values())
        taken.update([MANIFEST_FILE, *(file.path.removeprefix(f"{self.out}/") for file in inputs)])
        for file in inputs:
            if file.path not in planned:
                stem, number = _stem(file.path), 1
                while taken[name := f"{stem}{f'-{number}' if number > 1 else ''}{ending}"]:
                    number += 1
                taken[name] += 1
                planned[file.path] = name
        pieces = [Piece(file, planned[file.path]) for file in inputs if not self.is_done(file)]
        return sorted(pieces, key=lambda piece: -piece.input.size)

    def add(self, record: Record) -> None:
        """Takes up a record that a worker has written."""
        self.records[record["input"]] = record

    def write(self) -> None:
        """Writes the manifest, a line for each input."""
        with whole(f"{self.out}/{MANIFEST_FILE}") as path:
            ordered = sorted(self.records.values(), key=lambda record: record["output"])
            path.write_text("".join(map(_line, ordered)), encoding="utf-8")


def write_record(out: str, record: Record) -> None:
    """Notes that the output of an input is whole."""
    with whole(f"{out}/{RECORDS_FOLDER}/{record['output']}.json") as path:
        path.write_text(_line(record), encoding="utf-8")


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _same_model(name: str, before: Any, now: Any) -> bool:
    """A model may have moved; what it holds counts."""
    return name == "model" and isinstance(before, dict) and before.get("sha256") == now["sha256"]


def _stem(path: str) -> str:
    """A file's name without what tells its format and compression."""
    name = PurePosixPath(path.replace("\\", "/")).name
    for packed in (".gz", ".bz2", ".xz"):
        name = name.removesuffix(packed)
    return PurePosixPath(name).stem or name
