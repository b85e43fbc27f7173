"""MeSH from NLM's files: descriptor XML, ASCII descriptors and trees, tables."""

import re
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from .nlm_files import (
    DESCRIPTORS,
    HEAD,
    Stream,
    ascii_records,
    clean,
    explained,
    form_of,
    numbered_lines,
    open_file,
    texts,
    xml_records,
    year_of,
)

_UI = re.compile(r"D\d{6,9}")
_TREE_NUMBER = re.compile(r"[A-Z]\d+(\.\d+)*")
_TREE_LINE = re.compile(r"[^\t]+;[A-Z]\d+(\.\d+)*")


class _Record(NamedTuple):
    """One descriptor as a file gives it, and where."""

    ui: str
    name: str
    entry_terms: tuple[str, ...]
    tree_numbers: tuple[str, ...]
    scope_note: str
    where: str
    qualifiers: tuple[str, ...] = ()


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
    with explained(path):
        if path.is_dir():
            vocabulary = MeshVocabulary.from_pretrained(path)
        else:
            with open_file(path) as stream:
                head = stream.peek(HEAD)[:HEAD]
                found_year = year_of(path, head)
                vocabulary = _reader_for(head, path)(stream, path, found_year)
    if trees is not None:
        vocabulary = _with_trees(vocabulary, Path(trees))
    vocabulary.year = year or vocabulary.year
    return vocabulary


_Reader = Callable[[Stream, Path, int | None], MeshVocabulary]


def _reader_for(head: bytes, path: Path) -> _Reader:
    """Choose by the first bytes; what is no list of descriptors is told apart by name."""
    form = form_of(head, path, DESCRIPTORS)
    if form == "xml":
        return lambda stream, path, year: _from_records(_read_xml(stream), path, year)
    if form == "ascii":
        return lambda stream, path, year: _from_records(_read_ascii(stream, path), path, year)
    if _TREE_LINE.fullmatch(head.lstrip().partition(b"\n")[0].decode("utf-8", "replace").rstrip()):
        raise InputError(f"{path} holds trees without UIs. Give dYYYY.bin, and this file as the trees.")
    return _read_table


def _read_table(stream: Stream, path: Path, year: int | None) -> MeshVocabulary:
    table = MeshVocabulary.from_table(stream.read().decode("utf-8-sig"), str(path), year)
    columns = zip(table.uis, table.names, table.entry_terms, table.tree_numbers, strict=True)
    records = (
        _Record(*row, table.scope_notes.get(row[0], ""), f"descriptor number {number}")
        for number, row in enumerate(columns, 1)
    )
    return _from_records(records, path, table.year)


def _read_xml(stream: Stream) -> Iterator[_Record]:
    """Descriptors of `descYYYY.xml`."""
    for where, element in xml_records(stream, DESCRIPTORS):
        note = element.find("ConceptList/Concept[@PreferredConceptYN='Y']/ScopeNote")
        yield _Record(
            ui=clean(element.findtext("DescriptorUI")),
            name=clean(element.findtext("DescriptorName/String")),
            entry_terms=texts(element, "ConceptList/Concept/TermList/Term/String"),
            tree_numbers=texts(element, "TreeNumberList/TreeNumber"),
            scope_note="" if note is None else clean(note.text),
            where=where,
            qualifiers=texts(element, "AllowableQualifiersList/AllowableQualifier/Abbreviation"),
        )


def _read_ascii(stream: Stream, path: Path) -> Iterator[_Record]:
    """Descriptors of `dYYYY.bin`."""
    for where, fields in ascii_records(stream, path, DESCRIPTORS):
        # An entry carries semantic types, source and date behind bars; the term comes first.
        entries = [*fields.get("PRINT ENTRY", ()), *fields.get("ENTRY", ())]
        yield _Record(
            ui=fields.get("UI", [""])[0],
            name=fields.get("MH", [""])[0],
            entry_terms=tuple(entry.partition("|")[0].strip() for entry in entries),
            tree_numbers=tuple(fields.get("MN", ())),
            scope_note=fields.get("MS", [""])[0],
            where=where,
            qualifiers=tuple(fields.get("AQ", [""])[0].split()),
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
        allowed_qualifiers=_allowed_qualifiers(ordered),
    )


def _allowed_qualifiers(records: list[_Record]) -> dict[str, tuple[str, ...]]:
    """Qualifiers by descriptor; one without any may have none, if the file tells of them at all."""
    told = any(record.qualifiers for record in records)
    return {record.ui: record.qualifiers for record in records} if told else {}


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
    with explained(path), open_file(path) as stream:
        for number, line in numbered_lines(stream, path):
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
        _Record(
            ui,
            name,
            terms,
            tuple(places[ui]),
            vocabulary.scope_notes.get(ui, ""),
            name,
            vocabulary.allowed_qualifiers.get(ui, ()),
        )
        for ui, name, terms in columns
    )
    return _from_records(records, path, vocabulary.year)


def uis_of_terms(vocabulary: MeshVocabulary) -> dict[str, str]:
    """Descriptor of each name and entry term in lower case; a name goes before an entry term."""
    terms = zip(vocabulary.uis, vocabulary.entry_terms, strict=True)
    found = {term.lower(): ui for ui, others in terms for term in others}
    return found | {name.lower(): ui for ui, name in zip(vocabulary.uis, vocabulary.names, strict=True)}
