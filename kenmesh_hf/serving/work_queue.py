"""One model for many users: a bounded queue that gives every client its turn and tags in batches."""

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger(__name__)

Tags = list[dict[str, Any]]
Tagger = Callable[..., list[Tags]]


class QueueFull(Exception):
    """Nobody's article can be taken now."""


class ClientQueueFull(Exception):
    """This client has too many articles waiting; others are still served."""


@dataclass(eq=False)
class Job:
    """The articles of one request, and where their tags are gathered."""

    articles: Sequence[dict[str, str]]
    options: dict[str, Any]
    future: "Future[list[Tags]]" = field(default_factory=Future)
    tags: dict[int, Tags] = field(default_factory=dict)

    def deliver(self, position: int, tags: Tags) -> None:
        """Keep the tags of one article; the last one ends the job."""
        self.tags[position] = tags
        if len(self.tags) == len(self.articles):
            self._settle(lambda: self.future.set_result([self.tags[i] for i in range(len(self.articles))]))

    def fail(self, error: Exception) -> None:
        """End the job with an error."""
        self._settle(lambda: self.future.set_exception(error))

    def _settle(self, settle: Callable[[], None]) -> None:
        try:
            settle()
        except InvalidStateError:
            # Its client gave up or an earlier article failed: there is nobody left to tell.
            logger.debug("a finished request got one more answer")


class WorkQueue:
    """Runs a tagger in one thread, or in as many as it can be called by at once, for requests from many.

    Clients take turns article by article, so that a long list of one client delays another by a batch at
    most. Articles with the same options share a batch, whoever sent them.

    Args:
        tagger: Called with a list of articles and options; gives the tags of each.
        batch_size: Most articles of a call.
        size: Most articles that may wait.
        client_size: Most articles of one client that may wait.
        threads: Calls of the tagger at once.
    """

    def __init__(
        self,
        tagger: Tagger,
        *,
        batch_size: int = 16,
        size: int = 512,
        client_size: int = 256,
        threads: int = 1,
    ):
        self._tagger = tagger
        self._batch_size, self._size, self._client_size = batch_size, size, client_size
        self._waiting: OrderedDict[str, deque[tuple[Job, int]]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"kenmesh-tagger-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether requests can be answered."""
        return all(thread.is_alive() for thread in self._threads) and not self._closed

    @property
    def waiting(self) -> int:
        """Articles that wait for their turn."""
        with self._changed:
            return self._count()

    def _count(self) -> int:
        return sum(map(len, self._waiting.values()))

    def submit(self, client: str, articles: Sequence[dict[str, str]], options: dict[str, Any]) -> Job:
        """Queue the articles of a request; cancel the job's future to take back those that still wait.

        Raises:
            QueueFull: There is no room for so many articles.
            ClientQueueFull: There is, but not for this client.
        """
        job = Job(articles, options)
        with self._changed:
            self._forget_cancelled()
            if self._closed or self._count() + len(articles) > self._size:
                raise QueueFull
            mine = self._waiting.get(client, deque())
            if len(mine) + len(articles) > self._client_size:
                raise ClientQueueFull
            mine.extend((job, position) for position in range(len(articles)))
            self._waiting[client] = mine
            self._changed.notify_all()
        return job

    def close(self) -> None:
        """Stop after the batch at hand; whoever still waits gets QueueFull."""
        with self._changed:
            self._closed = True
            waiting, self._waiting = self._waiting, OrderedDict()
            self._changed.notify_all()
        for job in {job for mine in waiting.values() for job, _ in mine}:
            job.fail(QueueFull())
        for thread in self._threads:
            thread.join(timeout=10)

    def _forget_cancelled(self) -> None:
        for client, mine in list(self._waiting.items()):
            left = deque(item for item in mine if not item[0].future.done())
            if left:
                self._waiting[client] = left
            else:
                del self._waiting[client]

    def _run(self) -> None:
        while batch := self._next_batch():
            self._tag(batch)

    def _next_batch(self) -> list[tuple[Job, int]]:
        """Articles with equal options, one of each client in turn; empty when the queue is closed."""
        with self._changed:
            while not self._closed:
                self._forget_cancelled()
                if self._waiting:
                    return self._take_turns()
                self._changed.wait()
            return []

    def _take_turns(self) -> list[tuple[Job, int]]:
        batch: list[tuple[Job, int]] = []
        # The client at the front chooses the options, so nobody waits for ever behind unlike requests.
        options = next(iter(self._waiting.values()))[0][0].options
        while len(batch) < self._batch_size:
            fitting = (name for name, mine in self._waiting.items() if mine[0][0].options == options)
            client = next(fitting, None)
            if client is None:
                break
            batch.append(self._waiting[client].popleft())
            self._waiting.move_to_end(client)
            if not self._waiting[client]:
                del self._waiting[client]
        return batch

    def _tag(self, batch: list[tuple[Job, int]]) -> None:
        try:
            articles = [job.articles[position] for job, position in batch]
            tags = self._tagger(articles, **batch[0][0].options)
            for (job, position), found in zip(batch, tags, strict=True):
                job.deliver(position, found)
        except Exception as error:
            if len(batch) > 1:
                # One article that the model fails on must not take its neighbours in the batch along.
                for item in batch:
                    self._tag([item])
                return
            logger.exception("tagging failed")
            batch[0][0].fail(error)
