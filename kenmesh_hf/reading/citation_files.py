"""Citations as tagged lines: MEDLINE (PubMed's .nbib) and RIS."""

import re
import textwrap
from collections.abc import Iterable, Iterator

from .headings import heading_text, read_headings
from .pubmed_fields import MONTHS, iso_date
from .records import Article
from .sources import Source, lines

MEDLINE_LINE = re.compile(r"([A-Z][A-Z0-9]{1,3}) *- ?(.*)")
RIS_LINE = re.compile(r"([A-Z][A-Z0-9]) {1,2}- ?(.*)")
PMID = re.compile(r"\d{1,9}")
Fields = dict[str, list[str]]


def read_medline(source: Source) -> Iterator[Article]:
    """Read the MEDLINE format; its headings have names but no UIs."""
    for number, fields in _records(source, MEDLINE_LINE, first="PMID"):
        where = f"{source.name}, line {number:,}"
        pmid, title = _one(fields, "PMID"), _one(fields, "TI", "BTI", "TT")
        # The line of a PMID may be empty, since a record that has none is written so.
        if not PMID.fullmatch(pmid) and (pmid or not title):
            source.report.skip("no PMID", where)
            continue
        date = iso_date(_one(fields, "DP"))
        yield Article(
            title=title,
            abstract=_one(fields, "AB"),
            pmid=pmid or None,
            journal=_one(fields, "JT") or None,
            year=int(date[:4]) if date else None,
            headings=read_headings(fields.get("MH", ()), slashes=True),
            journal_abbreviation=_one(fields, "TA") or None,
            nlm_id=_one(fields, "JID") or None,
            pmcid=_one(fields, "PMC") or None,
            date=date,
            date_completed=_compact_date(_one(fields, "DCOM")),
            date_revised=_compact_date(_one(fields, "LR")),
        )


def read_ris(source: Source) -> Iterator[Article]:
    """Read RIS as reference managers write it; keywords become headings without UIs.

    "Zinc/*therapeutic use" is a heading with a qualifier, as they take it from PubMed; "HIV/AIDS" is a name.
    """
    for number, fields in _records(source, RIS_LINE, first="TY"):
        where = f"{source.name}, line {number:,}"
        title, abstract = _one(fields, "TI", "T1", "CT"), _one(fields, "AB", "N2")
        if "ER" not in fields:
            source.report.skip("record cut off (no ER line)", where)
        elif not title and not abstract:
            source.report.skip("neither title nor abstract", where)
        else:
            date = iso_date(_one(fields, "DA", "PY", "Y1").replace("/", " ").replace("-", " "))
            pmid = _one(fields, "AN")
            yield Article(
                title=title,
                abstract=abstract,
                pmid=pmid if PMID.fullmatch(pmid) else None,
                journal=_one(fields, "JF", "T2", "JO", "JA") or None,
                year=int(date[:4]) if date else None,
                headings=read_headings(fields.get("KW", ())),
                journal_abbreviation=_one(fields, "JA", "J2") or None,
                pmcid=next((v for v in fields.get("C2", ()) if v.startswith("PMC")), None),
                date=date,
            )


def ris_rows(articles: Iterable[Article]) -> Iterator[str]:
    """Give the lines of a RIS file; headings go by name as in MEDLINE, with qualifiers and asterisks."""
    for article in articles:
        yield "TY  - JOUR\r\n"
        yield from _ris_lines("TI", article.title)
        yield from _ris_lines("AB", article.abstract)
        yield from _ris_lines("JF", article.journal)
        yield from _ris_lines("JA", article.journal_abbreviation)
        yield from _ris_lines("PY", article.year)
        yield from _ris_lines("DA", (article.date or "").replace("-", "/"))
        yield from _ris_lines("AN", article.pmid)
        yield from _ris_lines("C2", article.pmcid)
        for heading in article.headings:
            yield from _ris_lines("KW", heading_text(heading))
        yield "ER  - \r\n\r\n"


def medline_rows(articles: Iterable[Article]) -> Iterator[str]:
    """Give the lines of a MEDLINE file (.nbib); headings go by name, with qualifiers and asterisks."""
    for article in articles:
        # A record is known to begin by this line, so one without a PMID has it, too.
        yield f"PMID- {article.pmid or ''}\n"
        yield from _medline_lines("DCOM", (article.date_completed or "").replace("-", ""))
        yield from _medline_lines("LR", (article.date_revised or "").replace("-", ""))
        yield from _medline_lines("DP", _medline_date(article))
        yield from _medline_lines("TI", article.title)
        yield from _medline_lines("AB", article.abstract)
        yield from _medline_lines("TA", article.journal_abbreviation)
        yield from _medline_lines("JT", article.journal)
        yield from _medline_lines("JID", article.nlm_id)
        for heading in article.headings:
            yield from _medline_lines("MH", heading_text(heading))
        yield from _medline_lines("PMC", article.pmcid)
        yield "\n"


def _medline_lines(tag: str, value: str | None) -> Iterator[str]:
    """Give a field in lines of 80 characters, those after the first indented, as PubMed breaks them."""
    text = " ".join((value or "").split())
    for line in textwrap.wrap(text, 74, break_long_words=False, break_on_hyphens=False):
        yield f"{tag:<4}- {line}\n" if tag else f"      {line}\n"
        tag = ""


def _medline_date(article: Article) -> str:
    """The date as MEDLINE writes it: "1979 Jun 5"."""
    year, *rest = (article.date or str(article.year or "")).split("-")
    months, days = rest[:1], rest[1:]
    names = [name.title() for name in MONTHS]
    return " ".join([year, *(names[int(month) - 1] for month in months), *(str(int(day)) for day in days)])


def _ris_lines(tag: str, value: str | int | None) -> Iterator[str]:
    # A line end inside a value would start a line without a tag, or with a false one.
    text = " ".join(str(value or "").split())
    if text:
        yield f"{tag}  - {text}\r\n"


def _records(source: Source, pattern: re.Pattern[str], first: str) -> Iterator[tuple[int, Fields]]:
    """Give each record's fields and first line number; a record begins with the tag `first`."""
    fields: Fields = {}
    values: list[str] = []
    begin = 0
    for number, line in lines(source):
        tagged = pattern.match(line)
        if tagged and tagged[1] == first:
            if fields:
                yield begin, fields
            begin, fields = number, {}
        if tagged and (fields or tagged[1] == first):
            values = fields.setdefault(tagged[1], [])
            values.append(tagged[2].strip())
        elif line.strip() and fields and "ER" not in fields:
            values[-1] = f"{values[-1]} {line.strip()}"
        elif line.strip():
            source.report.skip("line outside a record", f"{source.name}, line {number:,}")
    if fields:
        yield begin, fields


def _one(fields: Fields, *tags: str) -> str:
    """Give the first value of the first tag that has one."""
    return next((value for tag in tags for value in fields.get(tag, ()) if value), "")


def _compact_date(value: str) -> str | None:
    return f"{value[:4]}-{value[4:6]}-{value[6:8]}" if re.fullmatch(r"\d{8}", value) else None
