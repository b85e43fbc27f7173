"""Qualifiers from NLM's files, and what descriptor files say about which are allowed."""

import gzip

import pytest
from places import DATA

from kenmesh_hf.errors import InputError
from kenmesh_hf.mesh import MeshQualifiers, read_qualifiers, read_vocabulary
from kenmesh_hf.modeling.qualifiers_kenmesh import BUILT_IN, MeshQualifier

XML, ASCII = DATA / "qual2031.xml", DATA / "q2031.bin"
DESC, DESC_ASCII, TREES = DATA / "desc2031.xml", DATA / "d2031.bin", DATA / "mtrees2031.bin"
EXPECTED = (MeshQualifier("Q000097", "blood", "BL"), MeshQualifier("Q900001", "glass & shards", "GS"))


@pytest.mark.parametrize("path", [XML, ASCII], ids=["xml", "ascii"])
def test_xml_and_ascii_give_the_same_qualifiers(path, tmp_path):
    packed = tmp_path / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        found = read_qualifiers(file)
        assert found.qualifiers == EXPECTED and found.year == 2031


def test_without_a_file_there_are_those_built_in():
    assert read_qualifiers().qualifiers == BUILT_IN


def abbreviations(table, ui, *numbers):
    return [qualifier.abbreviation for qualifier in table.allowed(ui, numbers)]


@pytest.mark.parametrize(
    ("path", "trees", "expected"),
    [(DESC, None, ["BL"]), (DESC_ASCII, None, ["BL", "CF", "CI"]), (DESC_ASCII, TREES, ["BL", "CF", "CI"])],
)
def test_descriptor_files_say_what_is_allowed(path, trees, expected):
    table = read_qualifiers(vocabulary=read_vocabulary(path, trees))
    assert abbreviations(table, "D900003", "C90.100") == expected and table.year == 2031
    # The file gives these none, so they may have none.
    assert abbreviations(table, "D900001", "C90") == abbreviations(table, "D008297") == []


def test_qualifiers_of_another_year_are_not_allowed():
    assert abbreviations(read_qualifiers(XML, read_vocabulary(DESC_ASCII)), "D900003") == ["BL"]


def test_a_table_of_descriptors_says_nothing_about_qualifiers(tmp_path):
    read_vocabulary(DESC).save_pretrained(tmp_path)
    assert read_qualifiers(vocabulary=read_vocabulary(tmp_path)) == MeshQualifiers()


def test_a_saved_model_is_read(tmp_path):
    table = read_qualifiers(ASCII, read_vocabulary(DESC))
    table.save_pretrained(tmp_path)
    assert read_qualifiers(tmp_path) == table


BAD_FILES = {
    "empty": (b"", "holds no qualifier"),
    "descriptors": (DESC.read_bytes(), "root element DescriptorRecordSet, expected QualifierRecordSet"),
    "ascii descriptors": (DESC_ASCII.read_bytes(), "line 1: a record of type D, expected Q"),
    "zip": (b"PK\x03\x04rest", "is a zip archive"),
    "broken xml": (XML.read_bytes().replace(b"</TermList>", b"", 1), "broken XML"),
    "xml cut short": (XML.read_bytes()[:900], "broken XML"),
    "gzip cut short": (gzip.compress(ASCII.read_bytes())[:-30], "is damaged or cut short"),
    "no abbreviation": (ASCII.read_bytes().replace(b"QA = GS\n", b""), "line 15 has no UI, name or abbr"),
    "odd abbreviation": (ASCII.read_bytes().replace(b"QA = GS", b"QA = G"), "two letters such as DT"),
    "same qualifier": (ASCII.read_bytes().replace(b"Q900001", b"Q000097"), "shares its UI, name or abbr"),
    "other text": (b"Dear reader,\nthis is a letter.\n", "is no list of qualifiers"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused_with_a_sentence(case, tmp_path):
    content, message = BAD_FILES[case]
    path = tmp_path / "mesh-file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_qualifiers(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="qual2031.xml does not exist"):
        read_qualifiers(tmp_path / "qual2031.xml")
