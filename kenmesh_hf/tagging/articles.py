"""Tagging many articles: a stream in, a stream out, in order, on one or several processes."""

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import InputError, KenMeSHError
from ..files import BUNDLED_CHECKPOINT
from ..modeling.pipeline_kenmesh import SORTED_BATCHES, MeSHIndexingPipeline, batches
from ..processes import end_with_parent
from ..reading import Article
from ..sharing import load
from .exports import Tagged

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


def tag_articles(articles: Iterable[Article], options: TagOptions) -> Iterator[Tagged]:
    """Tags of each article, in order."""
    if options.num_proc > 1:
        yield from _tag_in_processes(articles, options)
        return
    yield from tag_with(options.load(), articles, options)


def tag_with(
    tagger: MeSHIndexingPipeline, articles: Iterable[Article], options: TagOptions
) -> Iterator[Tagged]:
    """Tags of each article, in order, by a model that is loaded already."""
    for window in batches(articles, options.window):
        yield from zip(window, _tag(tagger, window, options), strict=True)


def _tag(tagger: MeSHIndexingPipeline, window: Sequence[Article], options: TagOptions) -> list[list[dict]]:
    rows = [article.as_input() for article in window]
    return tagger(rows, batch_size=options.batch_size, **options.choice)


def _start_worker(options: TagOptions) -> None:
    global _worker
    end_with_parent()
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
