"""Tagging many articles: a stream in, a stream out, in order, resumable, on one or several processes."""

import json
import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import BUNDLED_CHECKPOINT, load
from .articles import read_articles
from .errors import InputError
from .exports import WRITERS, Tagged, search_string
from .modeling.pipeline_kenmesh import SORTED_BATCHES, MeSHIndexingPipeline, batches
from .records import Article, ReadReport
from .terminal import tag_lines

_worker: MeSHIndexingPipeline | None = None


@dataclass
class TagOptions:
    """What tags are wanted, and how to compute them.

    Attributes:
        model: Folder or Hub name.
        choice: Options of the pipeline: top_k, threshold, preset, include, exclude, check_tags, evidence.
        loading: Further options for loading the model: revision, token, device.
        batch_size: Articles the network reads at once.
        num_proc: Processes that share the work.
    """

    model: str = str(BUNDLED_CHECKPOINT)
    choice: dict[str, Any] = field(default_factory=dict)
    loading: dict[str, Any] = field(default_factory=dict)
    batch_size: int = 32
    num_proc: int = 1


def fields_of(article: Article) -> dict[str, str | None]:
    """What the model reads of an article."""
    journal = article.journal or article.journal_abbreviation or article.nlm_id
    return {"title": article.title, "abstract": article.abstract, "journal": journal, "pmid": article.pmid}


def tag_articles(articles: Iterable[Article], options: TagOptions) -> Iterator[Tagged]:
    """Tags of each article, in order."""
    if options.num_proc > 1:
        yield from _tag_in_processes(articles, options)
        return
    tagger = load(options.model, **options.loading)
    for window in batches(articles, options.batch_size * SORTED_BATCHES):
        yield from zip(window, _tag(tagger, window, options), strict=True)


def _tag(tagger: MeSHIndexingPipeline, window: Sequence[Article], options: TagOptions) -> list[list[dict]]:
    rows = [fields_of(article) for article in window]
    return tagger(rows, batch_size=options.batch_size, **options.choice)


def _start_worker(options: TagOptions):
    global _worker
    import torch

    torch.set_num_threads(1)
    _worker = load(options.model, **options.loading)


def _work(window: list[Article], options: TagOptions) -> list[list[dict]]:
    assert _worker is not None
    return _tag(_worker, window, options)


def _tag_in_processes(articles: Iterable[Article], options: TagOptions) -> Iterator[Tagged]:
    """Windows go out to the processes and come back in order; only a few are under way at a time."""
    pool = ProcessPoolExecutor(
        options.num_proc,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(options,),
    )
    with pool:
        waiting: deque[tuple[list[Article], Future]] = deque()
        windows = batches(articles, options.batch_size * SORTED_BATCHES)
        for window in windows:
            waiting.append((window, pool.submit(_work, window, options)))
            if len(waiting) > 2 * options.num_proc:
                done, tags = waiting.popleft()
                yield from zip(done, tags.result(), strict=True)
        for done, tags in waiting:
            yield from zip(done, tags.result(), strict=True)


class ResumableFile:
    """An output file that remembers how many articles are safely in it.

    Beside the file stands `NAME.progress` with that number and the file's length by then. After a kill,
    what came later is cut off, and the number tells how many articles to pass over.

    Args:
        path: The output file.
        resume: Go on with what is there instead of starting anew.
    """

    def __init__(self, path: Path, resume: bool):
        self.path = path
        self.progress = path.with_name(path.name + ".progress")
        self.done = 0
        known = self._read_progress() if resume else None
        if known is None and resume and path.exists():
            raise InputError(
                f"{path} is complete, or was not written by `kenmesh tag`; there is nothing to resume. "
                "Leave out --resume to write it anew."
            )
        self.file = open(path, "r+b" if known else "wb")
        if known:
            self.done = known["articles"]
            self.file.truncate(known["bytes"])
            self.file.seek(known["bytes"])
        self._note()

    def _read_progress(self) -> dict[str, int] | None:
        try:
            known = json.loads(self.progress.read_text(encoding="utf-8"))
            size = self.path.stat().st_size
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{self.progress} is damaged; delete it and start anew.") from error
        if size < known["bytes"]:
            raise InputError(f"{self.path} is shorter than {self.progress} says; delete both and start anew.")
        return known

    def write(self, text: str, articles: int):
        """Adds the text of so many articles, and only then counts them as done."""
        self.file.write(text.encode("utf-8"))
        self.file.flush()
        self.done += articles
        self._note()

    def _note(self):
        part = self.progress.with_name(self.progress.name + ".part")
        part.write_text(json.dumps({"articles": self.done, "bytes": self.file.tell()}), encoding="utf-8")
        os.replace(part, self.progress)

    def close(self):
        """The work is complete: the note of the progress goes."""
        self.file.close()
        self.progress.unlink()


FORMATS = ("jsonl", "csv", "ris")


def print_tags(results: Iterable[Tagged], format: str | None, search: str | None):
    """Writes tags to the terminal: a table for people by default, or one search string for all of them."""
    if search:
        print(search_string((tags for _, tags in results), search))
        return
    for number, (article, tags) in enumerate(results):
        if format in FORMATS:
            sys.stdout.write(render([(article, tags)], format, first=number == 0))
        else:
            print("\n".join(tag_lines(article, tags)), end="\n\n")


def format_of(path: Path, given: str | None) -> str:
    """The output format: the one given, or the one that the name says."""
    found = given or {".csv": "csv", ".ris": "ris"}.get(path.suffix.lower(), "jsonl")
    if found not in FORMATS:
        raise InputError(f"Unknown output format {found!r}. Use one of: {', '.join(FORMATS)}.")
    return found


def render(window: Sequence[Tagged], format: str, first: bool) -> str:
    """Text of some articles; a table's header stands only before the first."""
    rows = WRITERS[format](window)
    if format == "csv" and not first:
        next(iter(rows))
    return "".join(rows)


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
    """Tags every readable article of the inputs, in order.

    Args:
        inputs: Files, folders, or "-" for standard input.
        out: Output file, or "-" for standard output.
        options: Model and wanted tags.
        format: One of `FORMATS`; by default what the name of `out` says.
        input_format: Format of the inputs; by default found from their content.
        resume: Go on after an interruption.
        strict: Stop at the first record that cannot be read.
        progress: Show a progress bar.

    Returns:
        The number of articles in the output, and what was read and skipped.
    """
    path = Path(out)
    format = format_of(path, format)
    report = ReadReport()
    articles = read_articles(inputs, format=input_format, strict=strict, report=report, every_version=True)
    if str(out) == "-":
        bar = tqdm(unit=" articles", disable=not progress)
        for window in batches(tag_articles(articles, options), options.batch_size * SORTED_BATCHES):
            sys.stdout.write(render(window, format, first=bar.n == 0))
            bar.update(len(window))
        sys.stdout.flush()
        return report.read, report
    target = ResumableFile(path, resume)
    remaining = islice(articles, target.done, None)
    with tqdm(unit=" articles", initial=target.done, disable=not progress) as bar:
        for window in batches(tag_articles(remaining, options), options.batch_size * SORTED_BATCHES):
            target.write(render(window, format, first=target.done == 0), len(window))
            bar.update(len(window))
    if not target.done:
        target.write(render([], format, first=True), 0)
    target.close()
    return target.done, report
