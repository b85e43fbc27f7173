"""Citations in rows and objects: JSON Lines, JSON, CSV and TSV."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from .bioc import bioc_articles, json_objects, json_opening
from .europe_pmc import europe_pmc_article, europe_pmc_results, is_europe_pmc
from .headings import heading_text, read_headings
from .records import EXTRA_KEYS, Article
from .sources import Source, lines

COLUMNS = ("pmid", "title", "abstract", "journal", "year", "mesh", *EXTRA_KEYS)
# Headers as they come from PubMed's own CSV export, reference managers and spreadsheets.
ALIASES = {
    "pubmed id": "pmid",
    "pubmedid": "pmid",
    "article title": "title",
    "abstract note": "abstract",
    "journal/book": "journal",
    "journal title": "journal",
    "publication title": "journal",
    "publication year": "year",
    "mesh terms": "mesh",
    "mesh headings": "mesh",
    "headings": "mesh",
}


def read_jsonl(source: Source) -> Iterator[Article]:
    """Read one JSON object a line, in the form of `Article.to_dict`, of BioC or of Europe PMC."""
    for number, line in lines(source):
        if not line.strip():
            continue
        where = f"{source.name}, line {number:,}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            source.report.skip("broken JSON", f"{where} ({error})")
            continue
        yield from read_json_object(row, source, where)


def read_json(source: Source) -> Iterator[Article]:
    """Read a JSON file that is not one object a line: a list of articles, a single one, a collection."""
    for where, row in json_objects(source, json_opening(source.head().decode(errors="replace"))):
        yield from read_json_object(row, source, where)


def read_json_object(row: Any, source: Source, where: str) -> Iterator[Article]:
    """Read one article in our form, or what an object of BioC or Europe PMC holds."""
    try:
        if not isinstance(row, dict):
            raise ValueError(f"an object is expected, not {type(row).__name__}")
        if (results := europe_pmc_results(row)) is not None:
            for number, result in enumerate(results, 1):
                yield from read_json_object(result, source, f"{where}, result {number:,}")
        elif "passages" in row or "documents" in row:
            yield from bioc_articles(row)
        else:
            article = europe_pmc_article(row) if is_europe_pmc(row) else Article.from_dict(row)
            if not (article.title or article.abstract or article.pmid):
                raise ValueError("neither title nor abstract")
            yield article
    except ValueError as error:
        source.report.skip("not an article", f"{where} ({error})")


def jsonl_rows(articles: Iterable[Article]) -> Iterator[str]:
    """Give the lines of a JSON Lines file."""
    for article in articles:
        yield json.dumps(article.to_dict(), ensure_ascii=False) + "\n"


def header_columns(line: str) -> tuple[str, list[str]]:
    """Find the delimiter and the columns in the first line of a table; unknown columns keep their names."""
    delimiter = max("\t,;", key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    plain = [" ".join(name.replace("_", " ").lower().split()) for name in names]
    return delimiter, [ALIASES.get(name, name.replace(" ", "_")) for name in plain]


def read_table(source: Source) -> Iterator[Article]:
    """Read CSV or TSV whose first line names the columns; a title or abstract column is needed."""
    numbered = lines(source)
    _, header = next(numbered, (0, ""))
    if header.lower().startswith("sep="):
        _, header = next(numbered, (0, ""))
    delimiter, columns = header_columns(header)
    if not {"title", "abstract"} & set(columns):
        source.report.skip("no title or abstract column", f"{source.name}, line 1")
        return
    rows = csv.reader((line for _, line in numbered), delimiter=delimiter, strict=True)
    while True:
        where = f"{source.name}, after line {rows.line_num + 1:,}"
        try:
            values = next(rows)
            if any(values):
                yield _row_article(columns, values)
        except StopIteration:
            return
        except csv.Error as error:
            source.report.skip("broken row", f"{where} ({error})")
        except ValueError as error:
            source.report.skip("not an article", f"{where} ({error})")


def _row_article(columns: list[str], values: list[str]) -> Article:
    if len(values) > len(columns):
        raise ValueError(f"{len(values)} fields, but {len(columns)} columns")
    row: dict[str, Any] = dict(zip(columns, values, strict=False))
    headings = read_headings((row.pop("mesh", None) or "").split("|"))
    article = replace(Article.from_dict(row), headings=headings)
    if not article.title and not article.abstract:
        raise ValueError("neither title nor abstract")
    return article


def csv_rows(articles: Iterable[Article], delimiter: str = ",") -> Iterator[str]:
    """Give the lines of a table; the headings are one cell: "D006801 Humans|D015032 Zinc/*blood"."""
    line = io.StringIO()
    writer = csv.writer(line, delimiter=delimiter, lineterminator="\r\n" if delimiter == "," else "\n")
    writer.writerow(COLUMNS)
    for article in articles:
        row = article.to_dict()
        row["mesh"] = "|".join(heading_text(heading, uis=True) for heading in article.headings)
        writer.writerow([row.get(column) for column in COLUMNS])
        yield line.getvalue()
        line.seek(0)
        line.truncate()
    yield line.getvalue()


def tsv_rows(articles: Iterable[Article]) -> Iterator[str]:
    """Give the lines of a table with tabs."""
    return csv_rows(articles, "\t")
