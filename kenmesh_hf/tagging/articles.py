"""Tagging many articles: a stream in, a stream out, in order, resumable, on one or several processes."""

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from .. import BUNDLED_CHECKPOINT, load
from ..errors import InputError, KenMeSHError
from ..indexing.candidates import journal_of
from ..modeling.pipeline_kenmesh import SORTED_BATCHES, MeSHIndexingPipeline, batches
from ..reading.articles import read_articles
from ..reading.record_counts import count_records
from ..reading.records import Article, ReadReport
from .exports import WRITERS, Tagged, search_string
from .resumable import ResumableFile, StandardOutput
from .terminal import tag_lines

FORMATS = ("jsonl", "csv", "ris", "table")
SUFFIXES = {".csv": "csv", ".ris": "ris", ".txt": "table"}
_worker: MeSHIndexingPipeline | Exception | None = None


@dataclass
class TagOptions:
    """What tags are wanted, and how to compute them.

    Attributes:
        model: Folder or Hub name.
        choice: Options of the pipeline: top_k, threshold, preset, include, exclude, check_tags, evidence.
        loading: Further options for loading the model: revision, token, device.
        batch_size: Articles the network reads at once.
        num_proc: Processes that share the work.
        min_candidates: Least labels that are scored for an article; the most frequent ones fill up.
    """

    model: str = str(BUNDLED_CHECKPOINT)
    choice: dict[str, Any] = field(default_factory=dict)
    loading: dict[str, Any] = field(default_factory=dict)
    batch_size: int = 32
    num_proc: int = 1
    min_candidates: int = 0

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("num_proc", 1), ("min_candidates", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least {least}.")

    def load(self) -> MeSHIndexingPipeline:
        """The model, set up to score as many candidates as wanted."""
        tagger = load(self.model, **self.loading)
        candidates = tagger.processor.candidates
        if candidates is not None and self.min_candidates:
            candidates.options.min_candidates = self.min_candidates
        return tagger

    @property
    def window(self) -> int:
        """Articles that are tagged, and then written, together."""
        return self.batch_size * SORTED_BATCHES


def fields_of(article: Article) -> dict[str, Any]:
    """What the model reads of an article."""
    return {
        "title": article.title,
        "abstract": article.abstract,
        "journal": journal_of(article),
        "pmid": article.pmid,
    }


def tag_articles(articles: Iterable[Article], options: TagOptions) -> Iterator[Tagged]:
    """Tags of each article, in order."""
    if options.num_proc > 1:
        yield from _tag_in_processes(articles, options)
        return
    tagger = options.load()
    for window in batches(articles, options.window):
        yield from zip(window, _tag(tagger, window, options), strict=True)


def _tag(tagger: MeSHIndexingPipeline, window: Sequence[Article], options: TagOptions) -> list[list[dict]]:
    rows = [fields_of(article) for article in window]
    return tagger(rows, batch_size=options.batch_size, **options.choice)


def _start_worker(options: TagOptions) -> None:
    global _worker
    torch.set_num_threads(max(1, torch.get_num_threads() // options.num_proc))
    try:
        _worker = options.load()
    except Exception as error:
        # Raised here, it would end the process without a word; the first piece of work tells it.
        _worker = error


def _work(window: list[Article], options: TagOptions) -> list[list[dict]]:
    if not isinstance(_worker, MeSHIndexingPipeline):
        raise _worker or RuntimeError("The process was not started.")
    return _tag(_worker, window, options)


def _tag_in_processes(articles: Iterable[Article], options: TagOptions) -> Iterator[Tagged]:
    """Windows go out to the processes and come back in order; only a few are under way at a time."""
    pool = ProcessPoolExecutor(
        options.num_proc,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(options,),
    )
    waiting: deque[tuple[list[Article], Future]] = deque()
    try:
        for window in batches(articles, options.window):
            waiting.append((window, pool.submit(_work, window, options)))
            if len(waiting) > 2 * options.num_proc:
                done, tags = waiting.popleft()
                yield from zip(done, tags.result(), strict=True)
        for done, tags in waiting:
            yield from zip(done, tags.result(), strict=True)
    except BrokenProcessPool as error:
        raise KenMeSHError(
            "A process was ended from outside, perhaps for want of memory; use fewer with --num-proc."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def format_of(out: str | Path, given: str | None = None) -> str:
    """The output format: the one given, or the one that the name says."""
    suffix = Path(out).suffix.lower()
    if suffix in (".gz", ".bz2", ".xz"):
        raise InputError(f"{out} would not be compressed; choose a name without {suffix}, compress it later.")
    found = given or SUFFIXES.get(suffix, "jsonl")
    if found not in FORMATS:
        raise InputError(f"Unknown output format {found!r}. Use one of: {', '.join(FORMATS)}.")
    return found


def render(window: Sequence[Tagged], format: str, first: bool) -> str:
    """Text of some articles; the header of a CSV file stands only before the first."""
    if format == "table":
        return "".join("\n".join(tag_lines(*tagged)) + "\n\n" for tagged in window)
    rows = WRITERS[format](window)
    if format == "csv" and not first:
        next(rows)
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
    with tqdm(unit=" articles", initial=target.done, total=total, disable=not progress) as bar:
        for window in batches(results, options.window):
            target.write(render(window, format, first=target.done == 0), len(window))
            bar.update(len(window))
    if not target.done:
        target.write(render([], format, first=True), 0)
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
