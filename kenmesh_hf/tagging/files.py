"""Articles of files to tags in a file or a search string, in order, resumable."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..errors import InputError
from ..modeling.pipeline_kenmesh import batches
from ..reading import Article, ReadReport, count_records, read_articles
from .articles import TagOptions, tag_articles
from .exports import WRITERS, Tagged, csv_rows
from .resumable import ResumableFile, StandardOutput
from .searches import search_string
from .terminal import tag_lines

FORMATS = ("jsonl", "csv", "ris", "nbib", "table")
SUFFIXES = {".csv": "csv", ".ris": "ris", ".nbib": "nbib", ".txt": "table"}


def format_of(out: str | Path, given: str | None = None) -> str:
    """The output format: the one given, or the one that the name says."""
    suffix = Path(out).suffix.lower()
    if suffix in (".gz", ".bz2", ".xz"):
        raise InputError(f"{out} would not be compressed; choose a name without {suffix}, compress it later.")
    found = given or SUFFIXES.get(suffix, "jsonl")
    if found not in FORMATS:
        raise InputError(f"Unknown output format {found!r}. Use one of: {', '.join(FORMATS)}.")
    return found


def render(window: Sequence[Tagged], format: str, first_line: str | None = None) -> str:
    """Text of some articles; that of a CSV file goes on with the columns which its first line names."""
    if format == "table":
        return "".join("\n".join(tag_lines(*tagged)) + "\n\n" for tagged in window)
    rows = csv_rows(window, first_line) if format == "csv" else WRITERS[format](window)
    return "".join(rows)


def write_tags(
    articles: Iterable[Article],
    out: str | Path,
    options: TagOptions,
    *,
    format: str | None = None,
    job: dict[str, Any] | None = None,
    resume: bool = False,
    total: int | None = None,
    progress: bool = True,
) -> int:
    """Tags articles and writes the tags as they come.

    Args:
        articles: What to tag; when resuming the same ones again, from the first.
        out: Output file, or "-" for standard output.
        options: Model and wanted tags.
        format: One of `FORMATS`; by default what the name of `out` says.
        job: Says what the output is made of, so that other work is not resumed by mistake.
        resume: Go on after an interruption.
        total: Number of articles, where known, for the progress bar.
        progress: Show a progress bar.

    Returns:
        The number of articles in the output.
    """
    format = format_of(out, format)
    settings = {"min_candidates": options.min_candidates, "format": format}
    job = {"model": options.model, "choice": options.choice} | settings | (job or {})
    target = StandardOutput() if str(out) == "-" else ResumableFile(out, job, resume)
    results = tag_articles(islice(articles, target.done, None), options)
    first_line = target.first_line
    with tqdm(unit=" articles", initial=target.done, total=total, disable=not progress) as bar:
        for window in batches(results, options.window):
            text = render(window, format, first_line)
            first_line = first_line or text.partition("\n")[0]
            target.write(text, len(window))
            bar.update(len(window))
    if not target.done:
        target.write(render([], format), 0)
    target.close()
    return target.done


def read_inputs(
    inputs: Sequence[str | Path], report: ReadReport, format: str | None = None, strict: bool = False
) -> Iterator[Article]:
    """Every readable article of the inputs as it stands, one input after the other.

    Args:
        inputs: Files, folders, or "-" for standard input.
        report: Filled with what was read and skipped.
        format: Format of the inputs; by default found from their content.
        strict: Stop at the first record that cannot be read.
    """
    # Called for all of them at once, so that a missing file is told before hours of work on the others.
    readers = [
        read_articles(path, format=format, strict=strict, report=report, every_version=True)
        for path in inputs
    ]
    return chain.from_iterable(readers)


def tag_files(
    inputs: Sequence[str | Path],
    out: str | Path,
    options: TagOptions,
    *,
    format: str | None = None,
    input_format: str | None = None,
    resume: bool = False,
    strict: bool = False,
    progress: bool = True,
) -> tuple[int, ReadReport]:
    """Tags every readable article of files, in order: `write_tags` for `read_inputs`.

    Returns:
        The number of articles in the output, and what was read and skipped.
    """
    report = ReadReport()
    articles = read_inputs(inputs, report, input_format, strict)
    done = write_tags(
        articles,
        out,
        options,
        format=format,
        job={"inputs": [str(path) for path in inputs]},
        resume=resume,
        total=count_records(inputs, input_format) if progress else None,
        progress=progress,
    )
    return done, report


def search_for(articles: Iterable[Article], options: TagOptions, syntax: str, progress: bool = True) -> str:
    """One search string from the tags of all articles."""
    results = tqdm(tag_articles(articles, options), unit=" articles", disable=not progress)
    return search_string((tags for _, tags in results), syntax)
