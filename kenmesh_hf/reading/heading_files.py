"""Headings of citations from other files, joined by PMID: which are major topics, and their qualifiers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

from .articles import read_articles
from .headings import Heading
from .records import Article

Headings = Mapping[str, tuple[Heading, ...]]


def read_heading_files(paths: Iterable[str | PathLike[str]]) -> dict[str, tuple[Heading, ...]]:
    """Headings by PMID, from article files in any format, such as JSONL of `pmid` and `mesh`.

    A file that is damaged is refused: what it lacks would count as unknown in silence.
    """
    files = [Path(path) for path in paths]
    found = read_articles(files, strict=True) if files else ()
    return {article.pmid: article.headings for article in found if article.pmid and article.headings}


def join_headings(article: Article, known: Headings) -> Article:
    """The article, whose headings now tell what is known of them elsewhere; its descriptors stay."""
    others = known.get(article.pmid or "")
    if not others:
        return article
    by_key = {key: heading for heading in others for key in _keys(heading)}
    headings = []
    for heading in article.headings:
        other = next((by_key[key] for key in _keys(heading) if key in by_key), None)
        headings.append(
            heading if other is None else replace(heading, major=other.major, qualifiers=other.qualifiers)
        )
    return replace(article, headings=tuple(headings))


def _keys(heading: Heading) -> list[str]:
    """What tells a descriptor: its UI, and its name."""
    return [key for key in (heading.ui, (heading.name or "").lower()) if key]
