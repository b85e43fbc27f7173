"""Articles in every format: reading with the format found from content, and writing."""

import gzip
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from ..errors import InputError
from .bioc import read_bioc_xml
from .citation_files import medline_rows, read_medline, read_ris, ris_rows
from .desk_files import MAGIC as DESK
from .desk_files import read_desk
from .pubmed_xml import TAGS as PUBMED_ROOTS
from .pubmed_xml import read_pubmed_xml
from .records import Article, PmidSet, ReadReport
from .sources import Source, open_sources
from .tables import csv_rows, header_columns, jsonl_rows, read_json, read_jsonl, read_table, tsv_rows
from .xml_records import root_of

READERS: dict[str, Callable[[Source], Iterator[Article]]] = {
    "bioc": read_bioc_xml,
    "medline": read_medline,
    "ris": read_ris,
    "csv": read_table,
    "tsv": read_table,
    "json": read_json,
    "jsonl": read_jsonl,
    "desk": read_desk,
}
FORMATS = ("pubmed", *READERS)
WRITERS: dict[str, Callable[[Iterable[Article]], Iterator[str]]] = {
    "jsonl": jsonl_rows,
    "csv": csv_rows,
    "tsv": tsv_rows,
    "ris": ris_rows,
    "nbib": medline_rows,
}
SNIFFED = 1 << 16
XML_ROOTS = dict.fromkeys(PUBMED_ROOTS, "pubmed") | {"collection": "bioc", "document": "bioc"}
MEDLINE_START = re.compile(r"^PMID ?- *(\d|$)", re.MULTILINE)
RIS_START = re.compile(r"^TY {1,2}- ?[A-Z]", re.MULTILINE)


def read_articles(
    path: str | Path | Iterable[str | Path],
    *,
    format: str | None = None,
    strict: bool = False,
    report: ReadReport | None = None,
    seen: PmidSet | None = None,
    every_version: bool = False,
) -> Iterator[Article]:
    """Read articles one at a time, in constant memory, from any supported format.

    One article is given for each PMID. In PubMed XML that is the newest version: in one file the one with
    the highest version number (found by a light first pass), in several files the one in the newest (NLM's
    numbered files are read newest first); what a newer file deletes is left out. In other formats the first
    one counts.

    Args:
        path: A file (also .gz, .bz2, .xz or tar), a folder, "-" for standard input, or several of these.
        format: One of `FORMATS`; found from the content if not given.
        strict: Raise InputError at the first thing that cannot be read, instead of counting it in the report.
        report: Filled with what was read and skipped, and why.
        seen: PMIDs to leave out because they were read before; grows as reading goes on.
        every_version: Give every record as it stands, repeated and deleted PMIDs too, in a single pass, and
            all files in the order of the paths, those of a folder by name.

    Raises:
        InputError: A path or the format does not exist, or `strict` is set and something cannot be read.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"Unknown format {format!r}. Use one of: {', '.join(FORMATS)}.")
    paths = [path] if isinstance(path, str | Path) else list(path)
    for item in paths:
        if str(item) != "-" and not Path(item).exists():
            raise InputError(f"{item} does not exist. Check the path; use - for standard input.")
    report = ReadReport() if report is None else report
    report.strict = report.strict or strict
    known = None if every_version else PmidSet() if seen is None else seen
    return _read_all(paths, format, report, known)


def _read_all(
    paths: list[str | Path], format: str | None, report: ReadReport, seen: PmidSet | None
) -> Iterator[Article]:
    for source in open_sources(paths, report, newest_first=seen is not None):
        for article in _read_source(source, format, seen):
            report.read += 1
            yield article


def _read_source(source: Source, format: str | None, seen: PmidSet | None) -> Iterator[Article]:
    try:
        head = source.head()
        if not head.strip():
            _tell_empty(source)
            return
        kind = format or format_of(head, source.name)
        if kind == "bioc" and not head.lstrip().startswith(b"<"):
            kind = "json"
        if kind == "pubmed":
            root = root_of(head) or ""
            yield from read_pubmed_xml(source, root if root in PUBMED_ROOTS else "PubmedArticleSet", seen)
        else:
            yield from _first_of_each(READERS[kind](source), source, seen)
    except InputError as error:
        if source.report.strict:
            raise
        source.report.skip("file not usable", str(error))


def _tell_empty(source: Source) -> None:
    """Report a file without content, as damaged if it is compressed and cannot be unpacked."""
    known = source.report.skipped.total()
    if not any(block.strip() for block in source.raw()) and source.report.skipped.total() == known:
        source.report.skip("empty file", source.name)


def _first_of_each(articles: Iterator[Article], source: Source, seen: PmidSet | None) -> Iterator[Article]:
    for article in articles:
        if seen is not None and article.pmid:
            if article.pmid in seen:
                source.report.skip("duplicate PMID", f"{source.name}: PMID {article.pmid}")
                continue
            seen.add(article.pmid)
        yield article


def format_of(head: bytes, name: str) -> str:
    """Tell the format of a file from its first block (UTF-8).

    Raises:
        InputError: It is none that can be read.
    """
    if head.startswith(DESK):
        return "desk"
    text = head[:SNIFFED].decode(errors="replace").lstrip()
    if text.startswith("<"):
        root = root_of(head)
        if root in XML_ROOTS:
            return XML_ROOTS[root]
        known = ", ".join(XML_ROOTS)
        raise InputError(f"{name}: the root element is {root!r}; a citation file has one of: {known}.")
    if text.startswith(("{", "[")):
        return "jsonl" if any(_is_object(line) for line in text.split("\n")[:5]) else "json"
    if RIS_START.search(text):
        return "ris"
    if MEDLINE_START.search(text):
        return "medline"
    lines = [line for line in text.splitlines() if not line.lower().startswith("sep=")]
    delimiter, columns = header_columns(lines[0] if lines else "")
    if {"title", "abstract"} & set(columns):
        return "tsv" if delimiter == "\t" else "csv"
    raise InputError(f"{name}: the format was not recognised. Name it: one of {', '.join(FORMATS)}.")


def _is_object(line: str) -> bool:
    """Whether a line is one whole JSON object other than a BioC collection."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "documents" not in row


def write_articles(articles: Iterable[Article], path: str | Path, *, format: str | None = None) -> int:
    """Write articles to a file, or to standard output for "-"; a name that ends in .gz is compressed.

    The file appears under its name only once it is whole.

    Args:
        articles: Any number of articles; they are written as they come.
        path: The file, or "-".
        format: One of `WRITERS`; found from the name if not given.

    Returns:
        The number of articles.

    Raises:
        InputError: The format is unknown or the file can't be written.
    """
    counted = _Counted(articles)
    rows = WRITERS[_format_for(path, format)](counted)
    if str(path) == "-":
        sys.stdout.writelines(rows)
        sys.stdout.flush()
        return counted.number
    target = Path(path)
    unfinished = target.with_name(target.name + ".unfinished")
    try:
        with _open_text(unfinished, compressed=target.suffix == ".gz") as file:
            file.writelines(rows)
        os.replace(unfinished, target)
    except OSError as error:
        raise InputError(
            f"Cannot write {target}: {error.strerror}. Check the folder and its permissions."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return counted.number


def _format_for(path: str | Path, format: str | None) -> str:
    name = Path(path).name.removesuffix(".gz")
    kind = format or ("jsonl" if name == "-" else Path(name).suffix.lstrip("."))
    if kind not in WRITERS:
        raise InputError(f"Cannot tell the format of {path}. Name it: one of {', '.join(WRITERS)}.")
    return kind


def _open_text(path: Path, compressed: bool) -> IO[str]:
    if not compressed:
        return open(path, "w", encoding="utf-8", newline="")
    # No time and no name in the header: the same articles give the same bytes.
    # Level 4 takes a third of the time of 9, and a fifteenth more room.
    packed = gzip.GzipFile("", "wb", 4, fileobj=open(path, "wb"), mtime=0)
    return io.TextIOWrapper(packed, encoding="utf-8", newline="")


class _Counted:
    """Articles that are counted as they pass."""

    def __init__(self, articles: Iterable[Article]):
        self.number = 0
        self._articles = articles

    def __iter__(self) -> Iterator[Article]:
        for article in self._articles:
            self.number += 1
            yield article
