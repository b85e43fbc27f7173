"""`kenmesh tag --engine ray`: files to files of tags, each whole or not there, with a manifest of all."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from .._version import __version__
from ..errors import InputError
from ..modeling.checksums_kenmesh import sha256_of
from ..options import RayOptions
from ..reading import ReadReport, read_articles
from ..tagging import WRITERS, TagOptions, tag_with
from .cluster import connected
from .crew import Crew
from .manifest import RECORDS_FOLDER, Manifest, Piece, Record, write_record
from .parcel import Parcel
from .places import absolute, fetched, find_inputs, is_remote, reached, sweep, unseen, whole
from .tag_tables import write_parquet

FORMATS = ("jsonl", "parquet")


@dataclass(frozen=True)
class FileJob:
    """What is done with every file.

    Attributes:
        out: Folder of the outputs.
        format: One of `FORMATS`.
        settings: Model and options, for the records.
        input_format: Format of the inputs; by default found from their content.
        strict: Stop at the first record that cannot be read.
    """

    out: str
    format: str
    settings: Record
    input_format: str | None = None
    strict: bool = False


class FileTagger:
    """Tags one file after the other with a model that is loaded once; what a worker does."""

    def __init__(self, parcel: Parcel, job: FileJob):
        if not is_remote(job.out) and not Path(job.out).is_dir():
            raise unseen(job.out)
        self.job, self.options = job, parcel.options
        self.tagger = parcel.load()

    def __call__(self, piece: Piece) -> Record:
        """Tags a file and writes its output, then its record, which it gives."""
        job, path = self.job, piece.input.path
        if not is_remote(path) and not os.path.exists(path):
            raise unseen(path)
        report = ReadReport()
        with fetched(path) as local:
            digest = sha256_of(local) if os.access(local, os.R_OK) else None
            with whole(f"{job.out}/{piece.output}") as target:
                self._write(local, report, target)
        record = {
            "input": path,
            "size": piece.input.size,
            "state": piece.input.state,
            "sha256": digest,
            "output": piece.output,
            "articles": report.read,
            "skipped": dict(report.skipped),
            "notes": dict(report.notes),
            "examples": {
                reason: [place.replace(str(local), path) for place in places]
                for reason, places in report.examples.items()
            },
            **job.settings,
            "version": __version__,
        }
        write_record(job.out, record)
        return record

    def _write(self, local: Path, report: ReadReport, target: Path) -> None:
        articles = read_articles(
            local, format=self.job.input_format, strict=self.job.strict, report=report, every_version=True
        )
        results = tag_with(self.tagger, articles, self.options)
        if self.job.format == "parquet":
            write_parquet(results, target)
            return
        with open(target, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(WRITERS["jsonl"](results))


def tag_files_on_ray(
    inputs: Sequence[str | Path],
    out: str | Path,
    options: TagOptions,
    *,
    ray_options: RayOptions | None = None,
    format: str | None = None,
    input_format: str | None = None,
    resume: bool = False,
    strict: bool = False,
    progress: bool = True,
) -> tuple[int, ReadReport]:
    """Tags files on a Ray cluster, a file of tags for each.

    Args:
        inputs: Files and folders, on a disk that all nodes share or at s3://, gs://, hf://.
        out: Folder of the outputs, on such a disk or at such an address.
        options: Model and wanted tags.
        ray_options: Where the work is spread to.
        format: One of `FORMATS`: JSON Lines by default.
        input_format: Format of the inputs; by default found from their content.
        resume: Go on with what is in `out`; files that are finished and have not changed are left alone.
        strict: Stop at the first record that cannot be read.
        progress: Show a bar.

    Returns:
        The number of articles in the outputs of these inputs, and what was read and skipped.
    """
    ray_options, format, out = ray_options or RayOptions(), format or "jsonl", absolute(out)
    ray_options.check()
    if format not in FORMATS:
        raise InputError(f"Files of tags on Ray are {' or '.join(FORMATS)}, not {format}.")
    found = find_inputs(inputs)
    parcel = Parcel.of(options)
    settings = {"model": {"name": options.model, "sha256": parcel.key}, "options": _settings(options, format)}
    manifest = Manifest(out, settings, resume)
    files = manifest.without_own(found)
    pieces = manifest.plan(files, f".{format}")
    folders = [out, f"{out}/{RECORDS_FOLDER}"]
    _make_folders(folders)
    job = FileJob(out, format, settings, input_format, strict)
    if pieces:
        _spread(pieces, parcel, job, ray_options, manifest, progress)
    manifest.write()
    for folder in folders:
        sweep(folder)
    total = ReadReport()
    for file in files:
        record = manifest.records[file.path]
        total.absorb(record | {"read": record["articles"]})
    return total.read, total


def _settings(options: TagOptions, format: str) -> Record:
    return {**options.choice, "min_candidates": options.min_candidates, "format": format}


def _make_folders(folders: Sequence[str]) -> None:
    """Makes local folders, which tell workers that they see the same disk; what is left of a kill goes."""
    for folder in folders:
        if not is_remote(folder):
            with reached(folder):
                Path(folder).mkdir(parents=True, exist_ok=True)
        sweep(folder)


def _spread(
    pieces: Sequence[Piece],
    parcel: Parcel,
    job: FileJob,
    ray_options: RayOptions,
    manifest: Manifest,
    progress: bool,
) -> None:
    size = sum(piece.input.size for piece in pieces)
    # The bar comes when there is a Ray: an address where none is shall be told in a line of its own.
    with (
        connected(ray_options),
        tqdm(total=size, desc="Tagging", unit="B", unit_scale=True, disable=not progress) as bar,
    ):
        crew = Crew(partial(FileTagger, parcel.send(), job), ray_options)
        for piece, record in crew.work(pieces):
            manifest.add(record)
            bar.update(piece.input.size)
