"""A model in several processes that are called like one; its index is mapped, so that they share it."""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from ..errors import InputError
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..processes import deaf_to_interrupts, end_with_parent
from ..sharing import load

logger = logging.getLogger(__name__)

# How often articles are given to fresh processes when those that had them ended.
ATTEMPTS = 3
_tagger: MeSHIndexingPipeline | Exception | None = None


class TaggerProcesses:
    """Tags in processes, as many calls at once as there are. One that ends is replaced, its work done again.

    Args:
        model: Folder or Hub name; the bundled checkpoint if None.
        number: Of processes.
        **loading: Options of `kenmesh_hf.load`.
    """

    def __init__(self, model: Any, number: int, **loading: Any):
        if number < 1:
            raise InputError(f"--workers is {number}; it must be at least 1.")
        # The page's look-ups need its vocabulary here; what is wrong with the model is told here, too.
        self.processor = load(model, **loading).processor
        self.number = number
        self._start = model, loading, max(1, torch.get_num_threads() // number)
        self._changing = threading.Lock()
        self._closed = False
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self.number, mp_context=context, initializer=_begin, initargs=self._start)
        try:
            with deaf_to_interrupts():
                loaded = [pool.submit(_check_loaded) for _ in range(self.number)]
            for ready in loaded:
                ready.result()
        except BaseException:
            # Nobody who stops the server while they start waits until they have loaded a model.
            for process in list((pool._processes or {}).values()):
                process.kill()
            raise
        return pool

    def __call__(self, articles: Sequence[dict[str, Any]], **options: Any) -> list[list[dict[str, Any]]]:
        """The tags of each article; options as of the pipeline."""
        for attempt in range(ATTEMPTS):
            pool = self._pool
            try:
                return pool.submit(_tag, articles, options).result()
            except BrokenProcessPool:
                if attempt == ATTEMPTS - 1 or self._closed:
                    raise
                self._replace(pool)
        raise AssertionError("an attempt returns or raises")

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        """Fresh processes; the first of several callers whose pool broke makes them for all."""
        with self._changing:
            if self._pool is broken and not self._closed:
                logger.warning("A process that tags ended; it is started again.")
                self._pool = self._new_pool()

    def close(self) -> None:
        """Ends the processes."""
        with self._changing:
            self._closed = True
            self._pool.shutdown(cancel_futures=True)


def _begin(model: Any, loading: dict[str, Any], threads: int) -> None:
    global _tagger
    end_with_parent()
    # Also where they cannot be started deaf to it: the server ends these when its last answers are given.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    torch.set_num_threads(threads)
    # As in the server itself: a bar from each process would only stand in its log.
    transformers_logging.disable_progress_bar()
    try:
        _tagger = load(model, **loading)
    except Exception as error:
        # Raised here, it would end the process without a word.
        _tagger = error


def _check_loaded() -> None:
    if isinstance(_tagger, Exception):
        raise _tagger


def _tag(articles: Sequence[dict[str, Any]], options: dict[str, Any]) -> list[list[dict[str, Any]]]:
    assert isinstance(_tagger, MeSHIndexingPipeline)
    return _tagger(list(articles), **options)
