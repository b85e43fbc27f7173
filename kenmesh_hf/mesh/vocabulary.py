"""MeSH from NLM's files: descriptor XML, ASCII descriptors and trees, tables."""

import gzip
import io
import re
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from ..modeling.vocabulary_kenmesh import MeshVocabulary

_UI = re.compile(r"D\d{6,9}")
_TREE_NUMBER = re.compile(r"[A-Z]\d+(\.\d+)*")
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_DTD_YEAR = re.compile(rb"recordset_(\d{4})\d{4}\.dtd")
_FIRST_TAG = re.compile(rb"<([A-Za-z]\w*)")
_TREE_LINE = re.compile(r"[^\t]+;[A-Z]\d+(\.\d+)*")
_HEAD = 4096


class _Record(NamedTuple):
    """One descriptor as a file gives it, and where."""

    ui: str
    name: str
    entry_terms: tuple[str, ...]
    tree_numbers: tuple[str, ...]
    scope_note: str
    where: str


def read_vocabulary(
    path: str | PathLike[str], trees: str | PathLike[str] | None = None, year: int | None = None
) -> MeshVocabulary:
    """Read a MeSH year; the format is found from the content, and `.gz` is unpacked on the way.

    Labels follow the order of the UIs, so that the same descriptors get the same labels from any format.

    Args:
        path: `descYYYY.xml`, `dYYYY.bin`, a table (ui, name, entry_terms, tree_numbers) or a model's folder.
        trees: `mtreesYYYY.bin`, whose places replace those of `path`.
        year: MeSH year; otherwise the one in the file or its name.

    Raises:
        InputError: if the file is not complete and consistent; a vocabulary is never read in part.
    """
    path = Path(path)
    with _explained(path):
        if path.is_dir():
            vocabulary = MeshVocabulary.from_pretrained(path)
        else:
            with _open(path) as stream:
                head = stream.peek(_HEAD)[:_HEAD]
                found_year = _year_of(path, head)
                vocabulary = _reader_for(head, path)(stream, path, found_year)
    if trees is not None:
        vocabulary = _with_trees(vocabulary, Path(trees))
    vocabulary.year = year or vocabulary.year
    return vocabulary


@contextmanager
def _explained(path: Path) -> Iterator[None]:
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


_Stream = io.BufferedReader | gzip.GzipFile


def _open(path: Path) -> _Stream:
    """The bytes of a plain or compressed file."""
    with open(path, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else open(path, "rb")


def _lines(stream: _Stream, path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file."""
    for number, line in enumerate(stream, 1):
        try:
            yield number, line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number}: not UTF-8 text ({error.reason}).") from error


def _year_of(path: Path, head: bytes) -> int | None:
    """The year of NLM's dated DTD, or the last one in the file's name."""
    stated = _DTD_YEAR.search(head)
    if stated:
        return int(stated[1])
    named = _YEAR.findall(path.name)
    return int(named[-1]) if named else None


_Reader = Callable[[_Stream, Path, int | None], MeshVocabulary]


def _reader_for(head: bytes, path: Path) -> _Reader:
    """Choose by the first bytes; what is no list of descriptors is told apart by name."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<"):
        root = _FIRST_TAG.search(start)
        tag = root[1].decode() if root else "none"
        if tag != "DescriptorRecordSet":
            raise InputError(
                f"{path}: root element {tag}, expected DescriptorRecordSet. Give NLM's descYYYY.xml."
            )
        return lambda stream, path, year: _from_records(_read_xml(stream, path), path, year)
    if start.startswith(b"*NEWRECORD"):
        return lambda stream, path, year: _from_records(_read_ascii(stream, path), path, year)
    if start.startswith(b"PK\x03\x04"):
        raise InputError(f"{path} is a zip archive. Unpack it and give the file inside.")
    if _TREE_LINE.fullmatch(start.partition(b"\n")[0].decode("utf-8", "replace").rstrip()):
        raise InputError(f"{path} holds trees without UIs. Give dYYYY.bin, and this file as the trees.")
    return _read_table


def _read_table(stream: _Stream, path: Path, year: int | None) -> MeshVocabulary:
    table = MeshVocabulary.from_table(stream.read().decode("utf-8-sig"), str(path), year)
    columns = zip(table.uis, table.names, table.entry_terms, table.tree_numbers, strict=True)
    records = (
        _Record(*row, table.scope_notes.get(row[0], ""), f"descriptor number {number}")
        for number, row in enumerate(columns, 1)
    )
    return _from_records(records, path, table.year)


def _read_xml(stream: _Stream, path: Path) -> Iterator[_Record]:
    """Descriptors of `descYYYY.xml`, one in memory at a time."""
    number = 0
    for _, element in ET.iterparse(stream):
        if element.tag != "DescriptorRecord":
            continue
        number += 1
        note = element.find("ConceptList/Concept[@PreferredConceptYN='Y']/ScopeNote")
        yield _Record(
            ui=_clean(element.findtext("DescriptorUI")),
            name=_clean(element.findtext("DescriptorName/String")),
            entry_terms=_texts(element, "ConceptList/Concept/TermList/Term/String"),
            tree_numbers=_texts(element, "TreeNumberList/TreeNumber"),
            scope_note="" if note is None else _clean(note.text),
            where=f"record {number}",
        )
        element.clear()


def _texts(element: ET.Element, route: str) -> tuple[str, ...]:
    return tuple(_clean(found.text) for found in element.iterfind(route))


def _clean(text: str | None) -> str:
    """One line without outer blanks: notes in NLM's files are broken over several."""
    return " ".join((text or "").split())


def _read_ascii(stream: _Stream, path: Path) -> Iterator[_Record]:
    """Descriptors of `dYYYY.bin`: records of `FIELD = value` lines."""
    fields: dict[str, list[str]] = {}
    begin = 0
    for number, line in _lines(stream, path):
        if line.startswith("*NEWRECORD"):
            if begin:
                yield _ascii_record(fields, path, begin)
            fields, begin = {}, number
            continue
        field, _, value = line.partition("=")
        fields.setdefault(field.strip(), []).append(_clean(value))
    yield _ascii_record(fields, path, begin)


def _ascii_record(fields: dict[str, list[str]], path: Path, line: int) -> _Record:
    kind = fields.get("RECTYPE", ["D"])[0]
    if kind != "D":
        raise InputError(f"{path}, line {line}: a record of type {kind}, expected D. Give NLM's dYYYY.bin.")
    # An entry carries semantic types, source and date behind bars; the term comes first.
    entries = [*fields.get("PRINT ENTRY", ()), *fields.get("ENTRY", ())]
    return _Record(
        ui=fields.get("UI", [""])[0],
        name=fields.get("MH", [""])[0],
        entry_terms=tuple(entry.partition("|")[0].strip() for entry in entries),
        tree_numbers=tuple(fields.get("MN", ())),
        scope_note=fields.get("MS", [""])[0],
        where=f"the record at line {line}",
    )


def _from_records(records: Iterable[_Record], path: Path, year: int | None) -> MeshVocabulary:
    """Check the descriptors of a file against each other and number them."""
    by_ui: dict[str, _Record] = {}
    owners: dict[str, str] = {}
    for record in records:
        if not _UI.fullmatch(record.ui) or not record.name:
            raise InputError(f"{path}: {record.where} has no UI or no name. Is the file complete?")
        if record.ui in by_ui:
            first = by_ui[record.ui].where
            raise InputError(f"{path}: descriptor {record.ui} is in {first} and again in {record.where}.")
        by_ui[record.ui] = record
        for number in record.tree_numbers:
            _claim(number, record, owners, path)
    if not by_ui:
        raise InputError(f"{path} holds no descriptor. Is it the right file?")
    ordered = sorted(by_ui.values())
    return MeshVocabulary(
        uis=[record.ui for record in ordered],
        names=[record.name for record in ordered],
        entry_terms=[_distinct(record) for record in ordered],
        tree_numbers=[tuple(sorted(record.tree_numbers)) for record in ordered],
        year=year,
        scope_notes={record.ui: record.scope_note for record in ordered if record.scope_note},
    )


def _claim(number: str, record: _Record, owners: dict[str, str], path: Path) -> None:
    """Give a place to a descriptor; a place holds one descriptor."""
    if not _TREE_NUMBER.fullmatch(number):
        raise InputError(
            f"{path}: {record.where} ({record.ui}) has the tree number {number!r}; expected C04.588."
        )
    if number in owners:
        raise InputError(f"{path}: {owners[number]} and {record.ui} both have the tree number {number}.")
    owners[number] = record.ui


def _distinct(record: _Record) -> tuple[str, ...]:
    """Entry terms, each once and without the name."""
    terms = dict.fromkeys(term for term in record.entry_terms if term)
    terms.pop(record.name, None)
    return tuple(terms)


def _with_trees(vocabulary: MeshVocabulary, path: Path) -> MeshVocabulary:
    """The vocabulary with the places of `mtreesYYYY.bin`, which knows descriptors by name."""
    uis = dict(zip(vocabulary.names, vocabulary.uis, strict=True))
    places: dict[str, list[str]] = {ui: [] for ui in vocabulary.uis}
    with _explained(path), _open(path) as stream:
        for number, line in _lines(stream, path):
            name, _, place = line.strip().rpartition(";")
            if line.strip() and name not in uis:
                raise InputError(
                    f"{path}, line {number}: no descriptor is named {name!r}. Lines read 'Name;Tree number'; "
                    "trees and descriptors must be of the same year."
                )
            if line.strip():
                places[uis[name]].append(place)
    columns = zip(vocabulary.uis, vocabulary.names, vocabulary.entry_terms, strict=True)
    records = (
        _Record(ui, name, terms, tuple(places[ui]), vocabulary.scope_notes.get(ui, ""), name)
        for ui, name, terms in columns
    )
    return _from_records(records, path, vocabulary.year)


def uis_of_terms(vocabulary: MeshVocabulary) -> dict[str, str]:
    """Descriptor of each name and entry term in lower case; a name goes before an entry term."""
    terms = zip(vocabulary.uis, vocabulary.entry_terms, strict=True)
    found = {term.lower(): ui for ui, others in terms for term in others}
    return found | {name.lower(): ui for ui, name in zip(vocabulary.uis, vocabulary.names, strict=True)}
