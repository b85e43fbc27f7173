"""What the web routes share: one model's queue, its look-ups, and limits on what may be asked."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException

from .._version import __version__
from ..mesh import NameIndex, VocabularyLookup
from ..modeling.vocabulary_kenmesh import CATEGORIES
from ..reading import Article, ReadReport, decompress, read_articles
from . import api_schema as schema
from .tagger_processes import TaggerProcesses
from .work_queue import ClientQueueFull, QueueFull, WorkQueue

OPTION_NAMES = ("top_k", "threshold", "preset", "include", "exclude", "check_tags", "qualifiers", "evidence")
FIELDS = ("title", "abstract", "journal", "pmid")


@dataclass(frozen=True)
class Limits:
    """What one request and all of them together may ask for.

    Attributes:
        body_bytes: Largest request.
        file_bytes: Largest file to read articles from, and the largest it may be once decompressed.
        file_articles: Most articles given from a file.
        collection_articles: Most articles of a file that is opened on a desk.
        articles: Most articles of a request.
        title_characters: Longest title or journal name.
        abstract_characters: Longest abstract.
        batch: Articles the network reads at once.
        queue: Most articles that wait, of all clients.
        client_queue: Most articles of one client that wait.
        seconds: Longest that a request may take, its upload and its wait in the queue each.
    """

    body_bytes: int = 2_000_000
    file_bytes: int = 32_000_000
    file_articles: int = 1000
    collection_articles: int = 20_000
    articles: int = 100
    title_characters: int = 2_000
    abstract_characters: int = 20_000
    batch: int = 16
    queue: int = 512
    client_queue: int = 256
    seconds: float = 60.0


class Service:
    """What the routes share: the model's queue, look-ups and limits.

    Args:
        tagger: A `MeSHIndexingPipeline`, `TaggerProcesses`, or what is called alike and has a `processor`.
        limits: What may be asked for.
    """

    def __init__(self, tagger: Any, limits: Limits):
        self.tagger, self.limits = tagger, limits
        self.processor = tagger.processor
        self.vocabulary = self.processor.vocabulary
        self.lookup = VocabularyLookup(self.vocabulary)
        self.journal_table: Any = getattr(self.processor.candidates, "journals", None)
        self.journal_names: list[str] = list(getattr(self.journal_table, "names", ()))
        self.journal_index = NameIndex(self.journal_names)
        self.queue: WorkQueue | None = None
        self.reading = asyncio.Semaphore(1)

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Runs the tagging threads as long as the server, and ends the processes of its model after them."""
        limits, processes = self.limits, self.tagger if isinstance(self.tagger, TaggerProcesses) else None
        self.queue = WorkQueue(
            self.tagger,
            batch_size=limits.batch,
            size=limits.queue,
            client_size=limits.client_queue,
            threads=processes.number if processes else 1,
        )
        try:
            yield
        finally:
            await asyncio.to_thread(self.queue.close)
            if processes:
                await asyncio.to_thread(processes.close)

    async def tag(
        self, client: str, articles: list[schema.ArticleFields], options: schema.TagOptions
    ) -> list[list[dict[str, Any]]]:
        """Checks, queues and awaits; every problem becomes the HTTP error it is."""
        self._check_articles(articles)
        choice = self._checked_options(options)
        if self.queue is None or not self.queue.alive:
            raise HTTPException(503, "The model is not running. Start the server again.")
        rows = [{name: getattr(article, name) or "" for name in FIELDS} for article in articles]
        try:
            job = self.queue.submit(client, rows, choice)
            tags = await asyncio.wait_for(asyncio.wrap_future(job.future), self.limits.seconds)
        except ClientQueueFull:
            raise _busy(429, "You have too many articles waiting. Wait for their tags, then go on.") from None
        except QueueFull:
            raise _busy(503, "The server is busy: its queue is full. Try again in a few seconds.") from None
        except TimeoutError:
            late = f"The tags were not ready after {self.limits.seconds:g} seconds."
            raise _busy(503, f"{late} Try again, or send fewer articles.") from None
        except Exception as error:
            raise HTTPException(500, "The model failed on this text; the server's log says why.") from error
        return [self._with_thresholds(row) for row in tags]

    def _check_articles(self, articles: list[schema.ArticleFields]) -> None:
        most = self.limits.articles
        if not articles:
            raise HTTPException(422, "There is no article: `articles` is empty.")
        if len(articles) > most:
            sentence = f"{len(articles):,} articles are too many for one request; send at most {most:,}."
            raise HTTPException(413, sentence)
        for number, article in enumerate(articles, 1):
            problem = self._problem_of(article)
            if problem:
                status, sentence = problem
                where = f"Article {number}: " if len(articles) > 1 else ""
                raise HTTPException(status, where + sentence)

    def _problem_of(self, article: schema.ArticleFields) -> tuple[int, str] | None:
        if not (article.title.strip() or article.abstract.strip()):
            return 422, "There is no text to tag. Give a title, an abstract or both."
        short = self.limits.title_characters
        longest = {"title": short, "journal": short, "abstract": self.limits.abstract_characters}
        for name, most in longest.items():
            size = len(getattr(article, name) or "")
            if size > most:
                return 413, f"The {name} has {size:,} characters; shorten it to at most {most:,}."
        return None

    def _checked_options(self, options: schema.TagOptions) -> dict[str, Any]:
        choice = {name: getattr(options, name) for name in OPTION_NAMES}
        presets = self.processor.thresholds.presets if self.processor.thresholds is not None else {}
        if options.preset is not None and options.preset not in presets:
            known = ", ".join(sorted(presets)) or "none, so use `threshold`"
            raise HTTPException(422, f"There is no preset {options.preset!r}; this model has {known}.")
        try:
            for branch in [*options.include, *options.exclude]:
                self.vocabulary.labels_in(branch)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        return choice

    def _with_thresholds(self, tags: list[dict[str, Any]]) -> list[dict[str, Any]]:
        thresholds = self.processor.thresholds
        labels = np.array([self.vocabulary.label_of(tag["ui"]) for tag in tags], np.int64)
        own = np.full(len(labels), 0.5) if thresholds is None else thresholds.of(labels)
        return [tag | {"threshold": float(value)} for tag, value in zip(tags, own, strict=True)]

    def info(self) -> dict[str, Any]:
        """What the model and this server are."""
        vocabulary, thresholds = self.vocabulary, self.processor.thresholds
        return {
            "version": __version__,
            "mesh_year": vocabulary.year,
            "descriptors": len(vocabulary),
            "categories": CATEGORIES,
            "check_tags": [vocabulary.uis[label] for label in vocabulary.check_tags],
            "threshold": 0.5 if thresholds is None else thresholds.global_threshold,
            "presets": {} if thresholds is None else thresholds.presets,
            "journals": len(self.journal_names),
            "title_words": self.processor.max_title_tokens,
            "abstract_words": self.processor.max_abstract_tokens,
            "limits": asdict(self.limits),
        }

    def journals(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Journals whose name, or a word of it, begins with the query."""
        names = [self.journal_names[position] for position in self.journal_index.search(query, limit)]
        return [{"name": name, "articles": self.journal_table.counts_of(name)[2]} for name in names]

    def read_file(self, data: bytes, name: str) -> dict[str, Any]:
        """Articles of an uploaded file in any format the readers know."""
        found, more, report = self.read_upload(data, name, self.limits.file_articles)
        return {
            "articles": [_fields_of(article) for article in found],
            "more": more,
            "skipped": dict(report.skipped),
            "examples": report.examples,
        }

    def read_upload(self, data: bytes, name: str, most: int) -> tuple[list[Article], bool, ReadReport]:
        """The first articles of an uploaded file, whether it has more, and what could not be read."""
        report = ReadReport()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "upload"
            self._unpack(data, path, name, report)
            found = list(islice(read_articles(path, report=report), most + 1))
        report.examples = {
            reason: [place.replace(str(path), name) for place in places]
            for reason, places in report.examples.items()
        }
        return found[:most], len(found) > most, report

    def _unpack(self, data: bytes, path: Path, name: str, report: ReadReport) -> None:
        """Writes the file decompressed: a small file may hide a huge one, so its size is watched."""
        packed = path.with_name("packed")
        packed.write_bytes(data)
        size = 0
        with open(packed, "rb") as source, open(path, "wb") as target:
            for block in decompress(source, name, report):
                size += len(block)
                if size > self.limits.file_bytes:
                    raise HTTPException(413, f"{name} is larger than {_megabytes(self.limits.file_bytes)}.")
                if size == len(block) and block[257:262] == b"ustar":
                    raise HTTPException(422, f"{name} is an archive. Unpack it and open one of its files.")
                target.write(block)


def _busy(status: int, sentence: str) -> HTTPException:
    return HTTPException(status, sentence, headers={"Retry-After": "5"})


def _megabytes(size: int) -> str:
    return f"{size / 1e6:g} MB"


def _fields_of(article: Article) -> dict[str, Any]:
    return {name: getattr(article, name) for name in ("title", "abstract", "journal", "pmid", "year")}
