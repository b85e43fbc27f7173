"""How many records files hold, counted without parsing: a progress bar needs it to tell the time left."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import InputError
from .articles import format_of
from .pubmed_xml import TAGS
from .records import ReadReport
from .sources import Source, open_sources
from .xml_records import root_of

# Bytes on disk; to unpack more than this takes longer than a bar is worth.
LARGEST = 300_000_000
MARKS = {"jsonl": b"\n", "medline": b"PMID-", "ris": b"ER  -"}


def count_records(paths: Iterable[str | Path], format: str | None = None) -> int | None:
    """About the number of articles in files and folders; None where only parsing could tell.

    Args:
        paths: As for `read_articles`.
        format: Format of all of them; by default found from their content.
    """
    paths = list(paths)
    if any(str(path) == "-" for path in paths) or sum(_sizes(paths)) > LARGEST:
        return None
    total = 0
    for source in open_sources(paths, ReadReport()):
        mark = _mark_of(source, format)
        if mark is None:
            return None
        total += _count(source, mark)
    return total


def _sizes(paths: Iterable[str | Path]) -> Iterator[int]:
    for path in map(Path, paths):
        files = path.rglob("*") if path.is_dir() else [path]
        yield from (file.stat().st_size for file in files if file.is_file())


def _mark_of(source: Source, format: str | None) -> bytes | None:
    """What stands once in every record; impossible text for a file that holds none."""
    head = source.head()
    try:
        kind = format or format_of(head, source.name)
    except InputError:
        return b"\0"
    if kind == "pubmed":
        return TAGS.get(root_of(head) or "", TAGS["PubmedArticleSet"])[0]
    return MARKS.get(kind)


def _count(source: Source, mark: bytes) -> int:
    total, rest = 0, b""
    for block in source.blocks(quiet=True):
        block = rest + block
        total += block.count(mark)
        rest = block[len(block) - len(mark) + 1 :] if len(mark) > 1 else b""
    return total
