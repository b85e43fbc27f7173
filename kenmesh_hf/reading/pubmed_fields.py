"""The fields of one PubMed record, cut out of its bytes.

The record must be well-formed and free of comments and CDATA, with attributes in double quotes; then
searching for tags is safe, and several times faster than building a tree.
"""

import re
from functools import lru_cache
from html import unescape

from .headings import Heading, Qualifier, make_qualifier
from .records import Article

MONTHS = {name: n for n, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
NO_TITLE = ("[Not Available].", "[Not Available]")
PLAIN_LABELS = ("", "UNLABELLED", "UNLABELED")

ATTRIBUTES = rb'((?:\s+[\w:.-]+\s*=\s*"[^"]*")*)\s*'
PMID = re.compile(rb"<PMID" + ATTRIBUTES + rb">\s*(\d+)\s*<")
ABSTRACT_TEXT = re.compile(rb"<AbstractText" + ATTRIBUTES + rb">")
LABEL = re.compile(rb'\bLabel="([^"]*)"')
VERSION = re.compile(rb'\bVersion="(\d+)"')
METHOD = re.compile(rb'\bIndexingMethod="(\w+)"')
PMCID = re.compile(rb'<ArticleId IdType="pmc">\s*([^<\s]+)\s*<')
HEADING = re.compile(rb'\bUI="(\w+)"[^>]*>([^<]*)')
QUALIFIER = b"<QualifierName "
MAJOR = b'MajorTopicYN="Y"'
DATE = re.compile(r"\b((?:1[5-9]|20)\d\d)\b(?:\s+([A-Za-z]{3}|\d{1,2})[a-z]*\b(?:\s+(\d{1,2})\b)?)?")
MARKUP = re.compile(r"<[^>]*>")


def article_of(data: bytes) -> Article | None:
    """Read a record in the order in which NLM's DTD lays it out; None when it has no PMID."""
    pmid = PMID.search(data)
    if not pmid:
        return None
    journal_at = data.find(b"<Journal>", pmid.end())
    journal_end = max(data.find(b"</Journal>", journal_at), pmid.end())
    article_end = max(data.find(b"</Article>", journal_end), journal_end)
    method = METHOD.search(data, 0, pmid.start())
    published = _date(_between(data, b"<PubDate>", b"</PubDate>", journal_at, journal_end))
    journal, abbreviation = _journal(_between(data, b"<Title>", b"</Journal>", journal_at))
    nlm_id = _between(data, b"<NlmUniqueID>", b"</NlmUniqueID>", article_end)
    return Article(
        title=_title(data, journal_end, article_end),
        abstract=_abstract(_between(data, b"<Abstract>", b"</Abstract>", journal_end, article_end)),
        pmid=pmid[2].decode(),
        journal=journal,
        year=int(published[:4]) if published else None,
        headings=_headings(_between(data, b"<MeshHeadingList>", b"</MeshHeadingList>", article_end)),
        journal_abbreviation=abbreviation,
        nlm_id=nlm_id.decode().strip() or None,
        pmcid=_pmcid(data, article_end),
        date=published,
        indexing_method=method[1].decode() if method else None,
        date_completed=_date(_between(data, b"<DateCompleted>", b"</DateCompleted>", pmid.end(), journal_at)),
        date_revised=_date(_between(data, b"<DateRevised>", b"</DateRevised>", pmid.end(), journal_at)),
        version=version_of(pmid[1]),
    )


def version_of(attributes: bytes) -> int:
    """Read the version number among the attributes of a PMID."""
    found = VERSION.search(attributes)
    return int(found[1]) if found else 1


def plain_text(raw: bytes) -> str:
    """Turn mixed content into text: no inline markup, no entities, single spaces."""
    text = raw.decode()
    if "<" in text:
        text = MARKUP.sub("", text)
    if "&" in text:
        text = unescape(text)
    return " ".join(text.split())


def iso_date(text: str) -> str | None:
    """Read "1979 Jun 15", "1979 06", "1979 Jan-Feb", "1979 Spring" as an ISO date, as far as it is known."""
    found = DATE.search(text)
    if not found:
        return None
    year, month, day = found.groups()
    number = MONTHS.get((month or "").lower()) or (int(month) if month and month.isdigit() else 0)
    if not 1 <= number <= 12:
        return year
    return f"{year}-{number:02}-{int(day):02}" if day and 1 <= int(day) <= 31 else f"{year}-{number:02}"


def _between(data: bytes, opening: bytes, closing: bytes, start: int, stop: int | None = None) -> bytes:
    at = data.find(opening, start, stop)
    return data[at + len(opening) : data.find(closing, at)] if at >= 0 else b""


def _title(data: bytes, start: int, stop: int) -> str:
    """Read the title; the original one where NLM has no English one."""
    title = plain_text(_element(data, b"<ArticleTitle", b"</ArticleTitle>", start, stop))
    if title and title not in NO_TITLE:
        return title
    return plain_text(_element(data, b"<VernacularTitle", b"</VernacularTitle>", start, stop))


def _element(data: bytes, opening: bytes, closing: bytes, start: int, stop: int) -> bytes:
    """Give the content of an element that may have attributes or be empty."""
    content = _between(data, opening, closing, start, stop)
    tag, _, text = content.partition(b">")
    return b"" if tag.endswith(b"/") else text


def _abstract(raw: bytes) -> str:
    sections = []
    for part in ABSTRACT_TEXT.finditer(raw):
        text = plain_text(raw[part.end() : raw.find(b"</AbstractText>", part.end())])
        label = LABEL.search(part[1])
        name = plain_text(label[1]).rstrip(":") if label else ""
        if text:
            sections.append(text if name.upper() in PLAIN_LABELS else f"{name}: {text}")
    return " ".join(sections)


def _headings(raw: bytes) -> tuple[Heading, ...]:
    parts = raw.split(b"<DescriptorName ")[1:]
    return tuple([_qualified(part) if QUALIFIER in part else _descriptor(part) for part in parts])


def _qualified(raw: bytes) -> Heading:
    """Read a heading with qualifiers."""
    first, *rest = raw.split(QUALIFIER)
    plain = _descriptor(first)
    return Heading(plain.ui, plain.name, plain.major, tuple(map(_qualifier, rest)))


# The same descriptors, dates and journals come again and again: the caches save both time and memory.
@lru_cache(maxsize=1 << 16)
def _descriptor(raw: bytes) -> Heading:
    return Heading(*_named(raw))


@lru_cache(maxsize=1 << 12)
def _qualifier(raw: bytes) -> Qualifier:
    return make_qualifier(*_named(raw))


def _named(raw: bytes) -> tuple[str, str | None, bool]:
    """Read UI, name, and whether it is a major topic, from what follows an element's name."""
    found, major = HEADING.search(raw), MAJOR in raw
    return (found[1].decode(), plain_text(found[2]) or None, major) if found else ("", None, major)


@lru_cache(maxsize=1 << 14)
def _date(raw: bytes) -> str | None:
    return iso_date(MARKUP.sub(" ", raw.decode())) if raw else None


@lru_cache(maxsize=1 << 14)
def _journal(raw: bytes) -> tuple[str | None, str | None]:
    title, _, rest = raw.partition(b"</Title>")
    abbreviation = _between(rest, b"<ISOAbbreviation>", b"</ISOAbbreviation>", 0)
    return plain_text(title) or None, plain_text(abbreviation) or None


def _pmcid(data: bytes, article_end: int) -> str | None:
    """Find the article's own PMCID; those in its reference list belong to other articles."""
    at = data.find(b"<PubmedData>", article_end)
    if at < 0:
        return None
    references = data.find(b"<ReferenceList", at)
    found = PMCID.search(data, at, references if references >= 0 else len(data))
    return found[1].decode() if found else None
