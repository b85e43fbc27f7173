"""Citations in rows: JSON Lines, CSV and TSV."""

import json
import re
from collections.abc import Iterable, Iterator

from kenmesh_hf.records import Article
from kenmesh_hf.sources import Source, lines

COLUMNS = ("pmid", "title", "abstract", "journal", "year", "mesh")
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
HEADING = re.compile(r"(?:(D\d{6,9})\b)?\s*(\*?)\s*(.*)")


def read_jsonl(source: Source) -> Iterator[Article]:
    """Read one JSON object a line, in the form of `Article.to_dict`."""
    for number, line in lines(source):
        if not line.strip():
            continue
        where = f"{source.name}, line {number:,}"
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("an object is expected on each line")
            yield Article.from_dict(row)
        except json.JSONDecodeError as error:
            source.report.skip("broken JSON", f"{where} ({error.msg})")
        except (ValueError, RecursionError) as error:
            source.report.skip("not an article", f"{where} ({error})")


def jsonl_rows(articles: Iterable[Article]) -> Iterator[str]:
    """Give the lines of a JSON Lines file."""
    for article in articles:
        yield json.dumps(article.to_dict(), ensure_ascii=False) + "\n"
