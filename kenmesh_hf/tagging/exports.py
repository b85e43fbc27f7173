"""Tags in the forms that other tools read: JSON, CSV, RIS with keywords, and search strings."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..modeling.vocabulary_kenmesh import CATEGORIES, CHECK_TAGS
from ..reading import Article, Heading
from ..reading import ris_rows as ris_records

Tag = Mapping[str, Any]
Tagged = tuple[Article, Sequence[Tag]]

CSV_COLUMNS = ("pmid", "title", "journal", "year", "ui", "name", "score", "tree_numbers")
SEARCH_SYNTAXES = ("pubmed", "ovid")
# Ovid takes these for operators and limits unless the heading stands in quotation marks.
OVID_OPERATORS = re.compile(r"\b(and|or|not|adj\d*|use|with|same|frequency)\b|[^\w\s,-]", re.IGNORECASE)


def json_record(article: Article, tags: Sequence[Tag]) -> dict[str, Any]:
    """What is said about one article: its known fields without the abstract, and its tags."""
    fields = {
        "pmid": article.pmid,
        "title": article.title,
        "journal": article.journal,
        "year": article.year,
    }
    return {name: value for name, value in fields.items() if value} | {"tags": list(tags)}


def json_rows(results: Iterable[Tagged]) -> Iterator[str]:
    """One JSON array with an object for each article, indented for reading."""
    before = "["
    for article, tags in results:
        text = json.dumps(json_record(article, tags), ensure_ascii=False, indent=2)
        yield before + "\n" + text
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def jsonl_rows(results: Iterable[Tagged]) -> Iterator[str]:
    """One JSON object a line for each article: its PMID, null where there is none, and its tags."""
    for article, tags in results:
        yield json.dumps({"pmid": article.pmid, "tags": list(tags)}, ensure_ascii=False) + "\n"


def csv_rows(results: Iterable[Tagged]) -> Iterator[str]:
    """A header, then one line for each tag; an article without tags keeps a line with empty cells."""
    yield _csv_line(CSV_COLUMNS)
    for article, tags in results:
        fields = (article.pmid or "", article.title, article.journal or "", article.year or "")
        for tag in tags:
            places = " ".join(tag.get("tree_numbers") or ())
            yield _csv_line((*fields, tag["ui"], tag["name"], f"{tag['score']:.4f}", places))
        if not tags:
            yield _csv_line((*fields, "", "", "", ""))


def _csv_line(cells: Iterable[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def ris_rows(results: Iterable[Tagged]) -> Iterator[str]:
    """One RIS record for each article; its tags join the keywords that reference and screening tools read."""
    for article, tags in results:
        known = {heading.name for heading in article.headings}
        added = (Heading(tag["ui"], tag["name"]) for tag in tags if tag["name"] not in known)
        yield "".join(ris_records([replace(article, headings=(*article.headings, *added))]))


WRITERS: dict[str, Callable[[Iterable[Tagged]], Iterator[str]]] = {
    "json": json_rows,
    "jsonl": jsonl_rows,
    "csv": csv_rows,
    "ris": ris_rows,
}


def search_string(
    tags_of_articles: Iterable[Sequence[Tag]], syntax: str = "pubmed", *, check_tags: bool = False
) -> str:
    """A search for articles like these: OR between headings of a MeSH category, AND between categories.

    Headings that more of the articles share come first; each stands for everything below it in the hierarchy.

    Args:
        tags_of_articles: The tags of each article.
        syntax: One of `SEARCH_SYNTAXES`.
        check_tags: Whether Humans, Male, Adult and their like take part; they would empty many a search.

    Raises:
        InputError: The syntax is unknown, or no tag is left to search for.
    """
    if syntax not in SEARCH_SYNTAXES:
        raise InputError(f"Unknown search syntax {syntax!r}. Use one of: {', '.join(SEARCH_SYNTAXES)}.")
    heading, either, both = {
        "pubmed": (_pubmed_heading, " OR ", "\nAND\n"),
        "ovid": (_ovid_heading, " or ", "\nand\n"),
    }[syntax]
    groups = [[heading(tag["name"]) for tag in group] for group in _concepts(tags_of_articles, check_tags)]
    if not groups:
        raise InputError("There is no tag to search for. Lower the threshold or allow check tags.")
    return both.join(f"({either.join(group)})" for group in groups)


def _concepts(tags_of_articles: Iterable[Sequence[Tag]], check_tags: bool) -> list[list[Tag]]:
    """Different tags by category, in the order of MeSH; within one the most shared first, then the surest."""
    shared: Counter[str] = Counter()
    best: dict[str, Tag] = {}
    for tags in tags_of_articles:
        shared.update({tag["ui"] for tag in tags})
        for tag in tags:
            if tag["ui"] not in best or tag["score"] > best[tag["ui"]]["score"]:
                best[tag["ui"]] = tag
    groups: dict[str, list[Tag]] = {letter: [] for letter in [*CATEGORIES, ""]}
    for tag in sorted(best.values(), key=lambda tag: (-shared[tag["ui"]], -tag["score"], tag["ui"])):
        if check_tags or tag["ui"] not in CHECK_TAGS:
            numbers = tag.get("tree_numbers") or ("",)
            groups[numbers[0][:1]].append(tag)
    return [group for group in groups.values() if group]


def _pubmed_heading(name: str) -> str:
    return '"{}"[MeSH Terms]'.format(name.replace('"', ""))


def _ovid_heading(name: str) -> str:
    name = name.replace('"', "")
    return f'exp "{name}"/' if OVID_OPERATORS.search(name) else f"exp {name}/"
