"""Cut a stream of XML into the records that repeat in it, each to be parsed alone.

A damaged record then costs only itself, memory stays that of one record, and no parser ever sees the document
type, so no entity it declares can expand.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers.expat import ExpatError, ParserCreate

from .sources import LARGEST_RECORD, Source

ROOT = re.compile(rb"<([A-Za-z_][\w.:-]*)")
NOT_ROOT = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", re.DOTALL)


def root_of(head: bytes) -> str | None:
    """Name the root element of XML given its beginning; None when there is none."""
    position = 0
    while part := NOT_ROOT.match(head, position):
        position = part.end()
    root = ROOT.match(head, position)
    return root[1].decode() if root else None


@dataclass(slots=True)
class XmlRecord:
    """One element of the stream.

    Attributes:
        number: Its place among the records, from 1.
        offset: Bytes before it (decompressed, as UTF-8).
        gap: What stood between the record before and this one.
        data: The element from "<" to ">"; empty once, at the end of the stream, to carry the last gap.
    """

    number: int
    offset: int
    gap: bytes
    data: bytes

    def where(self, source: Source) -> str:
        """Name the file and the position."""
        return f"{source.name}, record {self.number:,} at byte {self.offset:,}"


def xml_records(source: Source, opening: bytes, closing: bytes, quiet: bool = False) -> Iterator[XmlRecord]:
    """Give every element between the two tags in constant memory, and at last the gap after them."""
    buffer, base, number, search = b"", 0, 0, 0
    for block in source.blocks(quiet):
        buffer += block
        position = 0
        while (end := buffer.find(closing, search)) >= 0:
            search = end + len(closing)
            start = buffer.find(opening, position, end)
            if start >= 0:
                number += 1
                yield XmlRecord(number, base + start, buffer[position:start], buffer[start:search])
                position = search
        base += position
        buffer = buffer[position:]
        if len(buffer) > LARGEST_RECORD:
            where = f"{source.name}, record {number + 1:,} at byte {base:,}"
            source.report.skip(f"no end of the record within {LARGEST_RECORD:,} bytes", where)
            base, buffer = base + len(buffer) - len(closing), buffer[-len(closing) :]
        search = max(0, len(buffer) - len(closing))
    yield XmlRecord(number + 1, base, buffer, b"")


def well_formed(data: bytes) -> bool:
    """Check a record with expat; tell whether it has only elements, attributes and text.

    Returns:
        False if comments, CDATA sections or processing instructions occur: then searching is not safe.

    Raises:
        ExpatError: The record is not well-formed XML.
    """
    special: list[object] = []
    parser = ParserCreate()
    parser.CommentHandler = special.append
    parser.StartCdataSectionHandler = lambda: special.append(None)
    parser.ProcessingInstructionHandler = lambda target, data: special.append(target)
    parser.Parse(data, True)
    return not special


__all__ = ["ExpatError", "XmlRecord", "root_of", "well_formed", "xml_records"]
