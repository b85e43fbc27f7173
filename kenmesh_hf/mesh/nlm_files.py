"""NLM's MeSH files, plain or compressed, cut into records; what is wrong with one is told in a sentence."""

import gzip
import io
import re
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError

HEAD = 4096
Stream = io.BufferedReader | gzip.GzipFile
Fields = dict[str, list[str]]

_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_DTD_YEAR = re.compile(rb"recordset_(\d{4})\d{4}\.dtd")
_FIRST_TAG = re.compile(rb"<([A-Za-z]\w*)")


class Kind(NamedTuple):
    """A kind of MeSH records: its element in XML, its letter in ASCII, and the names of NLM's two files."""

    element: str
    letter: str
    xml_file: str
    ascii_file: str


DESCRIPTORS = Kind("DescriptorRecord", "D", "descYYYY.xml", "dYYYY.bin")
QUALIFIERS = Kind("QualifierRecord", "Q", "qualYYYY.xml", "qYYYY.bin")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what reading can raise into a sentence that names the file."""
    try:
        yield
    except ET.ParseError as error:
        line, column = error.position
        fault = error.msg.partition(":")[0]
        raise InputError(
            f"{path}, line {line}, column {column + 1}: broken XML ({fault}). Download the file again."
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged or cut short ({error}). Download it again.") from error
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason}). Is it the right file?") from error
    except (OSError, ValueError) as error:
        raise InputError(str(error)) from error


def open_file(path: Path) -> Stream:
    """The bytes of a plain or compressed file."""
    with open(path, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else open(path, "rb")


def numbered_lines(stream: Stream, path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file."""
    for number, line in enumerate(stream, 1):
        try:
            yield number, line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number}: not UTF-8 text ({error.reason}).") from error


def year_of(path: Path, head: bytes) -> int | None:
    """The year of NLM's dated DTD, or the last one in the file's name."""
    stated = _DTD_YEAR.search(head)
    if stated:
        return int(stated[1])
    named = _YEAR.findall(path.name)
    return int(named[-1]) if named else None


def form_of(head: bytes, path: Path, kind: Kind) -> str | None:
    """Tell by the first bytes whether a file is "xml" or "ascii" of NLM's; None if it is neither.

    Raises:
        InputError: It is XML of other records, or an archive.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<"):
        root = _FIRST_TAG.search(start)
        tag, expected = root[1].decode() if root else "none", f"{kind.element}Set"
        if tag != expected:
            raise InputError(f"{path}: root element {tag}, expected {expected}. Give NLM's {kind.xml_file}.")
        return "xml"
    if start.startswith(b"PK\x03\x04"):
        raise InputError(f"{path} is a zip archive. Unpack it and give the file inside.")
    return "ascii" if start.startswith(b"*NEWRECORD") else None


def xml_records(stream: Stream, kind: Kind) -> Iterator[tuple[str, ET.Element]]:
    """Places and elements of the records of an XML file, one in memory at a time."""
    number = 0
    for _, element in ET.iterparse(stream):
        if element.tag == kind.element:
            number += 1
            yield f"record {number}", element
            element.clear()


def ascii_records(stream: Stream, path: Path, kind: Kind) -> Iterator[tuple[str, Fields]]:
    """Places and fields of the records of an ASCII file, which are lines of `FIELD = value`."""
    fields: Fields = {}
    begin = 0
    for number, line in numbered_lines(stream, path):
        if line.startswith("*NEWRECORD"):
            if begin:
                yield _checked(fields, path, begin, kind)
            fields, begin = {}, number
            continue
        field, _, value = line.partition("=")
        fields.setdefault(field.strip(), []).append(clean(value))
    yield _checked(fields, path, begin, kind)


def _checked(fields: Fields, path: Path, line: int, kind: Kind) -> tuple[str, Fields]:
    letter = fields.get("RECTYPE", [kind.letter])[0]
    if letter != kind.letter:
        raise InputError(
            f"{path}, line {line}: a record of type {letter}, expected {kind.letter}. "
            f"Give NLM's {kind.ascii_file}."
        )
    return f"the record at line {line}", fields


def texts(element: ET.Element, route: str) -> tuple[str, ...]:
    """The text of each element found."""
    return tuple(clean(found.text) for found in element.iterfind(route))


def clean(text: str | None) -> str:
    """One line without outer blanks: notes in NLM's files are broken over several."""
    return " ".join((text or "").split())
