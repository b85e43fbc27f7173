"""Tags in the forms that other tools read: JSON, CSV, RIS with keywords, MEDLINE."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..reading import Article, Heading, heading_text, medline_rows
from ..reading import ris_rows as ris_records

Tag = Mapping[str, Any]
Tagged = tuple[Article, Sequence[Tag]]

CSV_COLUMNS = ("pmid", "title", "journal", "year", "ui", "name", "score", "tree_numbers")
# Where tags say which are major topics and under which aspects: NLM's whole heading, Y or N, its score.
HEADING_COLUMNS = ("heading", "major", "major_score")
# What spreadsheets take for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def tag_heading(tag: Tag) -> Heading:
    """A tag as a heading, with what it says of major topics and qualifiers.

    Raises:
        InputError: It says it in a wrong form.
    """
    try:
        return Heading.from_dict({key: tag.get(key) for key in ("ui", "name", "major", "qualifiers")})
    except ValueError as error:
        raise InputError(f"The tag {tag['ui']} cannot be exported: {error}.") from error


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


def csv_rows(results: Iterable[Tagged], header: str | None = None) -> Iterator[str]:
    """A header, then one line for each tag; an article without tags keeps a line with empty cells.

    Args:
        results: Articles and tags. Columns for major topics and qualifiers are there if a tag tells of them,
            or if there is no tag yet that could.
        header: That of a file to go on with, whose columns are used and which is not written again.
    """
    if header is None:
        results = list(results)
        given = [tag for _, tags in results for tag in tags]
        told = not given or any("major" in tag or "qualifiers" in tag for tag in given)
        header = _csv_line((*CSV_COLUMNS, *(HEADING_COLUMNS if told else ())))
        yield header
    full = HEADING_COLUMNS[0] in header
    for article, tags in results:
        fields = (article.pmid or "", article.title, article.journal or "", article.year or "")
        for tag in tags:
            places = " ".join(tag.get("tree_numbers") or ())
            cells = (*fields, tag["ui"], tag["name"], f"{tag['score']:.4f}", places)
            yield _csv_line((*cells, *_heading_cells(tag)) if full else cells)
        if not tags:
            yield _csv_line((*fields, *[""] * (4 + len(HEADING_COLUMNS) * full)))


def _heading_cells(tag: Tag) -> tuple[str, str, str]:
    """NLM's heading, whether it is major and its score; these two are empty where the tag does not tell."""
    heading, score = tag_heading(tag), tag.get("major_score")
    if not isinstance(score, int | float | None):
        raise InputError(
            f"The tag {tag['ui']} cannot be exported: 'major_score' must be a number, not {score!r}."
        )
    major = "Y" if heading.major else "N" if "major" in tag else ""
    return heading_text(heading), major, "" if score is None else f"{score:.4f}"


def _csv_line(cells: Iterable[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(map(_plain, cells))
    return buffer.getvalue()


def _plain(cell: Any) -> Any:
    """A text that a spreadsheet would run as a formula, behind an apostrophe: titles come from anybody."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def ris_rows(results: Iterable[Tagged]) -> Iterator[str]:
    """One RIS record for each article; its tags join the keywords that reference and screening tools read."""
    for article, tags in results:
        yield "".join(ris_records([_with_tags(article, tags)]))


def nbib_rows(results: Iterable[Tagged]) -> Iterator[str]:
    """One MEDLINE record for each article; its tags join the headings, as PubMed's own files have them."""
    for article, tags in results:
        yield "".join(medline_rows([_with_tags(article, tags)]))


def _with_tags(article: Article, tags: Sequence[Tag]) -> Article:
    """The article with its tags as headings, those apart which it has already."""
    known = {key for heading in article.headings for key in (heading.ui, heading.name)}
    added = (tag_heading(tag) for tag in tags if not known & {tag["ui"], tag["name"]})
    return replace(article, headings=(*article.headings, *added))


WRITERS: dict[str, Callable[[Iterable[Tagged]], Iterator[str]]] = {
    "json": json_rows,
    "jsonl": jsonl_rows,
    "csv": csv_rows,
    "ris": ris_rows,
    "nbib": nbib_rows,
}
