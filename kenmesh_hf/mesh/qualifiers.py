"""MeSH qualifiers from NLM's files, and which of them a descriptor may have."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from xml.etree.ElementTree import Element

from ..errors import InputError
from ..modeling.qualifiers_kenmesh import MeshQualifier, MeshQualifiers
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from .nlm_files import (
    HEAD,
    QUALIFIERS,
    Fields,
    Stream,
    ascii_records,
    clean,
    explained,
    form_of,
    open_file,
    xml_records,
    year_of,
)


def read_qualifiers(
    path: str | PathLike[str] | None = None, vocabulary: MeshVocabulary | None = None
) -> MeshQualifiers:
    """Read the qualifiers of a MeSH year; the format is found from the content, and `.gz` is unpacked.

    Args:
        path: `qualYYYY.xml`, `qYYYY.bin` or a model's folder; the built-in ones if not given.
        vocabulary: Descriptors of the same year; what their file says about allowed qualifiers joins. One
            that is not among the qualifiers, because it is of another year, is left out.

    Raises:
        InputError: The file is not complete and consistent; it is never read in part.
    """
    found = MeshQualifiers() if path is None else _read(Path(path))
    if vocabulary is None or not vocabulary.allowed_qualifiers:
        return found
    allowed = {
        ui: [text for text in given if found.find(text)]
        for ui, given in vocabulary.allowed_qualifiers.items()
    }
    return MeshQualifiers(found.qualifiers, allowed, found.year or vocabulary.year)


def _read(path: Path) -> MeshQualifiers:
    with explained(path):
        if path.is_dir():
            return MeshQualifiers.from_pretrained(path)
        with open_file(path) as stream:
            head = stream.peek(HEAD)[:HEAD]
            records = list(_records(stream, head, path))
    if not records:
        raise InputError(f"{path} holds no qualifier. Is it the right file?")
    for where, record in records:
        if not all(record):
            raise InputError(f"{path}: {where} has no UI, name or abbreviation. Is the file complete?")
    try:
        return MeshQualifiers((record for _, record in records), year=year_of(path, head))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _records(stream: Stream, head: bytes, path: Path) -> Iterator[tuple[str, MeshQualifier]]:
    form = form_of(head, path, QUALIFIERS)
    if form == "xml":
        for where, element in xml_records(stream, QUALIFIERS):
            yield where, _from_element(element)
    elif form == "ascii":
        for where, fields in ascii_records(stream, path, QUALIFIERS):
            yield where, _from_fields(fields)
    elif head.strip():
        raise InputError(f"{path} is no list of qualifiers. Give NLM's qualYYYY.xml or qYYYY.bin.")


def _from_element(element: Element) -> MeshQualifier:
    """A qualifier's abbreviation stands with the term that gives the record its name."""
    term = "ConceptList/Concept/TermList/Term[@RecordPreferredTermYN='Y']/Abbreviation"
    return MeshQualifier(
        clean(element.findtext("QualifierUI")),
        clean(element.findtext("QualifierName/String")),
        clean(element.findtext(term)),
    )


def _from_fields(fields: Fields) -> MeshQualifier:
    ui, name, abbreviation = (fields.get(field, [""])[0] for field in ("UI", "SH", "QA"))
    return MeshQualifier(ui, name, abbreviation)
