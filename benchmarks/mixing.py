"""Mixes real articles into any number of new ones: corpora of a size that no wheel brings along.

A mixed article has half of the sentences and of the headings of one real article and half of those of
another, both drawn at random and their halves, too; the journal and the year are those of the first. So
words and labels belong together as in PubMed, and hardly two articles of a million are alike. The newest real
articles are never mixed: they are the queries, which share no source with what is indexed.
"""

import gzip
import json
import multiprocessing
import random
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kenmesh_hf.errors import InputError
from kenmesh_hf.files import unfinished, write_json
from kenmesh_hf.reading import Article, Heading, read_articles, write_articles

ARTICLES_PER_FILE = 20_000
# Beyond the numbers that NLM has given out, so that no mixed article is taken for a real one.
FIRST_PMID = 50_000_001
HELD_OUT = 1500
# Raised when the same seed comes to mix other articles: corpora that are there are then written again.
VERSION = 1

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9(\[])")


@dataclass(frozen=True)
class Source:
    """A real article and the parts it is taken apart into."""

    article: Article
    sentences: tuple[str, ...]
    title: tuple[str, ...]

    @classmethod
    def of(cls, article: Article) -> "Source":
        sentences = tuple(SENTENCE_END.split(article.abstract))
        return cls(article, sentences, tuple(article.title.split()))


def half_of(things: Sequence[Any], rng: random.Random) -> list[Any]:
    """A random half, the greater one of an odd number, in the order of before."""
    return [things[i] for i in sorted(rng.sample(range(len(things)), (len(things) + 1) // 2))]


def mix(one: Source, other: Source, pmid: int, rng: random.Random) -> Article:
    """A new article of a half of each; the title begins as that of the one and ends as that of the other."""
    first, last = (len(one.title) + 1) // 2, len(other.title) // 2
    sentences = half_of(one.sentences, rng) + half_of(other.sentences, rng)
    headings = half_of(one.article.headings, rng) + half_of(other.article.headings, rng)
    # A descriptor that both have stands once.
    distinct: dict[str, Heading] = {}
    for heading in headings:
        distinct.setdefault(heading.ui, heading)
    return replace(
        one.article,
        pmid=str(pmid),
        title=" ".join(one.title[:first] + other.title[last:]),
        abstract=" ".join(sentences),
        headings=tuple(distinct.values()),
        pmcid=None,
        version=None,
    )


def mixed_articles(sources: Sequence[Source], number: int, count: int, seed: int) -> Iterator[Article]:
    """The first articles of the file with this number: the same whatever else is mixed."""
    rng = random.Random(f"{seed}/{number}")
    for pmid in range(
        FIRST_PMID + number * ARTICLES_PER_FILE, FIRST_PMID + number * ARTICLES_PER_FILE + count
    ):
        one, other = rng.sample(range(len(sources)), 2)
        yield mix(sources[one], sources[other], pmid, rng)


def write_quickly(articles: Iterable[Article], path: Path) -> None:
    """JSON lines, little compressed: a tenth of the time of the best compression."""
    with unfinished(path) as temporary, gzip.open(temporary, "wt", compresslevel=1, encoding="utf-8") as file:
        for article in articles:
            file.write(json.dumps(article.to_dict(), ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class RealArticles:
    """Files of real articles, apart for what they serve.

    Attributes:
        sources: Articles that are mixed.
        validation: Half of the queries.
        test: The other half.
        made_from: What tells whether they would be the same if divided again.
    """

    sources: Path
    validation: Path
    test: Path
    made_from: dict[str, Any]


def divide_real_articles(file: Path, work: Path, held_out: int = HELD_OUT) -> RealArticles:
    """Keeps the newest articles, by PMID, for queries, and the others to be mixed."""
    made_from = {"file": file.name, "bytes": file.stat().st_size, "held_out": held_out, "version": VERSION}
    parts = RealArticles(
        *(work / f"{name}.jsonl.gz" for name in ("sources", "validation", "test")), made_from=made_from
    )
    kept = work / "real_articles.json"
    if kept.exists() and json.loads(kept.read_text(encoding="utf-8")) == made_from:
        return parts
    articles = [a for a in read_articles(file) if a.pmid and a.abstract and a.descriptors]
    articles.sort(key=lambda article: int(article.pmid or 0))
    if len(articles) < held_out + 2:
        raise InputError(
            f"{file} has {len(articles):,} articles with abstract and headings; {held_out + 2:,} are needed."
        )
    work.mkdir(parents=True, exist_ok=True)
    queries = articles[-held_out:]
    write_articles(articles[:-held_out], parts.sources)
    write_articles(queries[: held_out // 2], parts.validation)
    write_articles(queries[held_out // 2 :], parts.test)
    write_json(kept, made_from)
    return parts


def write_corpus(real: RealArticles, folder: Path, count: int, seed: int = 0, processes: int = 2) -> Path:
    """Mixes so many articles into files of a folder; files that are there whole stay.

    Args:
        real: Where the sources are.
        folder: Gets `articles/` and `corpus.json`, which tells what the articles were made from.
        count: Number of articles.
        seed: Chooses what is mixed with what.
        processes: Files that are written at once.
    """
    made_from = real.made_from | {"count": count, "seed": seed}
    articles, kept = folder / "articles", folder / "corpus.json"
    if not kept.exists() or json.loads(kept.read_text(encoding="utf-8")) != made_from:
        shutil.rmtree(articles, ignore_errors=True)
        write_json(kept, made_from)
    articles.mkdir(exist_ok=True)
    missing = []
    for number, start in enumerate(range(0, count, ARTICLES_PER_FILE)):
        path = articles / f"{number:05d}.jsonl.gz"
        if not path.exists():
            missing.append((number, min(ARTICLES_PER_FILE, count - start), seed, path))
    if missing:
        _write_files(missing, real.sources, processes)
    return articles


def _write_files(files: Sequence[tuple[int, int, int, Path]], sources: Path, processes: int) -> None:
    # Fresh processes: a fork of one that has used torch may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(processes, len(files)), mp_context=context, initializer=_load_sources, initargs=(sources,)
    ) as pool:
        list(pool.map(_write_file, files))


_SOURCES: list[Source] = []


def _load_sources(path: Path) -> None:
    _SOURCES[:] = read_sources(path)


def read_sources(path: Path) -> list[Source]:
    """Real articles, taken apart."""
    return [Source.of(article) for article in read_articles(path)]


def _write_file(file: tuple[int, int, int, Path]) -> None:
    number, count, seed, path = file
    write_quickly(mixed_articles(_SOURCES, number, count, seed), path)
