"""BioC, the form in which PMC gives its open-access articles: XML and JSON, one document a file or many."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring

from .europe_pmc import OPENING as RESULTS
from .pubmed_fields import iso_date
from .records import Article
from .sources import LARGEST_RECORD, Source, decode
from .xml_records import xml_records

OPENING, CLOSING = b"<document>", b"</document>"
DOCUMENTS = re.compile(r'"documents"\s*:\s*\[')
ARRAY = re.compile(r"\[")
SEPARATORS = re.compile(r"[\s,]*")
Passage = tuple[dict[str, Any], str]


def read_bioc_xml(source: Source) -> Iterator[Article]:
    """Read the documents of a BioC collection one at a time."""
    for record in xml_records(source, OPENING, CLOSING):
        where = record.where(source)
        if not record.data:
            if record.gap.strip() and b"</collection>" not in record.gap:
                source.report.skip("document cut off", where)
            continue
        try:
            document = fromstring(decode(record.data, source, f"record {record.number:,}").encode())
        except ParseError as error:
            source.report.skip("broken XML", f"{where} ({error})")
            continue
        passages = [(_infons(item), item.findtext("text") or "") for item in document.iterfind("passage")]
        yield _article(document.findtext("id") or "", _infons(document), passages)


def bioc_articles(item: dict[str, Any]) -> Iterator[Article]:
    """Read a BioC document, or every document of a collection, from its JSON form.

    Raises:
        ValueError: The object has not the shape of BioC.
    """
    try:
        for document in item["documents"] if "documents" in item else [item]:
            passages = [(part.get("infons") or {}, part.get("text") or "") for part in document["passages"]]
            yield _article(str(document.get("id") or ""), document.get("infons") or {}, passages)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a BioC document: {error!r}") from error


def json_opening(head: str) -> re.Pattern[str] | None:
    """Tell after what the objects of a JSON file begin; None if they simply follow one another."""
    for opening in (DOCUMENTS, RESULTS):
        if opening.search(head):
            return opening
    return ARRAY if head.lstrip().startswith("[") else None


def json_objects(source: Source, opening: re.Pattern[str] | None) -> Iterator[tuple[str, Any]]:
    """Give the objects of a JSON file one at a time with their places, never holding the whole file.

    What follows broken JSON is lost: nothing tells where the next object begins.
    """
    text = _JsonText(source)
    while text.enter(opening):
        while (found := text.next_value()) is not None:
            yield found
        if opening is None or text.broken:
            return


class _JsonText:
    """A window on JSON text that grows only as far as one value needs."""

    def __init__(self, source: Source):
        self.broken = False
        self._in_list = False
        self._source = source
        self._blocks = source.blocks()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._window, self._position, self._before, self._number = "", 0, 0, 0

    def enter(self, opening: re.Pattern[str] | None) -> bool:
        """Move behind the next opening; False if there is none."""
        self._in_list = opening is not None
        if opening is None:
            return True
        while not (found := opening.search(self._window, self._position)):
            # The opening may lie across two blocks.
            self._position = max(self._position, len(self._window) - 64)
            if not self._grow(1):
                return False
        self._position = found.end()
        return True

    def next_value(self) -> tuple[str, Any] | None:
        """Read the next value of the array; None at its end, at the end of the text, or if it is broken."""
        wanted = 1
        while True:
            start = SEPARATORS.match(self._window, self._position).end()  # type: ignore[union-attr]
            where = f"{self._source.name}, object {self._number + 1:,} at character {self._before + start:,}"
            if self._window[start : start + 1] == "]":
                self._position = start + 1
                return None
            try:
                value, self._position = json.JSONDecoder().raw_decode(self._window, start)
                self._number += 1
                return where, value
            except (ValueError, RecursionError) as error:
                if len(self._window) - start < LARGEST_RECORD and self._grow(wanted):
                    # Doubling the window keeps the repeated attempts at a large value cheap.
                    wanted = len(self._window) - start
                    continue
                # A list must end with its bracket; objects that simply follow one another may end anywhere.
                self.broken = self._in_list or bool(self._window[self._position :].strip())
                if self.broken:
                    self._source.report.skip("broken JSON", f"{where} ({error})")
                return None

    def _grow(self, wanted: int) -> bool:
        """Read at least so many characters more, dropping what was used; False at the end."""
        parts = [self._window[self._position :]]
        self._before += self._position
        self._position = 0
        size = 0
        for block in self._blocks:
            parts.append(self._decoder.decode(block))
            size += len(parts[-1])
            if size >= wanted:
                break
        self._window = "".join(parts)
        return size > 0


def _infons(element: Element) -> dict[str, Any]:
    return {item.get("key", ""): (item.text or "").strip() for item in element.iterfind("infon")}


def _article(identifier: str, infons: dict[str, Any], passages: list[Passage]) -> Article:
    """Take title and abstract from the passages; PMC keeps what it knows of the article at the first."""
    known = {key: str(value) for part, _ in [*reversed(passages), ({}, "")] for key, value in part.items()}
    known |= {key: str(value) for key, value in infons.items()}
    pmcid = known.get("article-id_pmc") or (identifier if identifier.upper().startswith("PMC") else "")
    # A bare number names the document in PMC if PMC's number is known otherwise, else in PubMed.
    pmid = known.get("article-id_pmid") or known.get("pmid") or ("" if pmcid else identifier)
    date = iso_date(known.get("year", ""))
    return Article(
        title=next((_clean(text) for part, text in passages if _section(part) == "TITLE"), ""),
        abstract=_abstract(passages),
        pmid=pmid if pmid.isdecimal() else None,
        journal=known.get("journal-title") or known.get("journal", "").split(";")[0].strip() or None,
        year=int(date[:4]) if date else None,
        pmcid=f"PMC{pmcid.upper().removeprefix('PMC')}" if pmcid else None,
        date=date,
    )


def _section(infons: dict[str, Any]) -> str:
    section, kind = str(infons.get("section_type", "")).upper(), str(infons.get("type", "")).lower()
    if section in ("TITLE", "ABSTRACT"):
        return section
    return {"title": "TITLE", "front": "TITLE", "abstract": "ABSTRACT"}.get(kind, "") if not section else ""


def _abstract(passages: list[Passage]) -> str:
    """Join the abstract's paragraphs; a heading before a paragraph becomes its label."""
    parts, label = [], ""
    for infons, text in passages:
        if _section(infons) != "ABSTRACT" or not text.strip():
            continue
        if "title" in str(infons.get("type", "")).lower():
            label = "" if _clean(text).lower() == "abstract" else _clean(text).rstrip(":.").upper() + ": "
        else:
            parts.append(label + _clean(text))
            label = ""
    return " ".join(parts)


def _clean(text: str) -> str:
    return " ".join(text.split())
