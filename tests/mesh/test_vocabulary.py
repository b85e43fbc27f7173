"""Readers of NLM's MeSH files, their complaints, and the comparison of two years."""

import gzip

import pytest
from places import DATA

from kenmesh_hf.errors import InputError
from kenmesh_hf.mesh import diff_vocabularies, read_vocabulary
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary

DESC, ASCII, TREES = DATA / "desc2031.xml", DATA / "d2031.bin", DATA / "mtrees2031.bin"


def contents(vocabulary: MeshVocabulary) -> list[tuple]:
    columns = vocabulary.uis, vocabulary.names, map(set, vocabulary.entry_terms), vocabulary.tree_numbers
    return list(zip(*columns, strict=True))


EXPECTED = [
    ("D008297", "Male", {"Males"}, ()),
    ("D900001", "Invented Diseases", set(), ("C90",)),
    ("D900003", "Glass Fever", {"Shard Fever", "Fever, Glass"}, ("C90.100", "F05.700")),
]


@pytest.mark.parametrize("path", [DESC, ASCII], ids=["xml", "ascii"])
def test_xml_and_ascii_give_the_same_vocabulary(path):
    vocabulary = read_vocabulary(path)
    assert contents(vocabulary) == EXPECTED
    assert vocabulary.scope_notes == {"D900003": "Heat & brittleness, in no known patient."}
    assert vocabulary.year == 2031
    assert vocabulary.edges().tolist() == [[1], [2]]


@pytest.mark.parametrize("path", [DESC, ASCII], ids=["xml", "ascii"])
def test_compressed_files_are_read_whatever_their_name(path, tmp_path):
    packed = tmp_path / "download"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert contents(read_vocabulary(packed)) == EXPECTED


def test_a_table_and_a_saved_model_are_read(tmp_path):
    read_vocabulary(DESC).save_pretrained(tmp_path)
    assert contents(read_vocabulary(tmp_path)) == EXPECTED
    assert read_vocabulary(tmp_path).year == 2031
    table = tmp_path / "mesh2029.tsv"
    table.write_text(
        "D900003\tGlass Fever\tFever, Glass|Shard Fever\tF05.700|C90.100\nD008297\tMale\tMales\t\n"
    )
    vocabulary = read_vocabulary(table)
    assert contents(vocabulary) == [EXPECTED[0], EXPECTED[2]]
    assert vocabulary.year == 2029


def test_the_year_comes_from_the_argument_the_file_or_its_name(tmp_path):
    copy = tmp_path / "d-of-some-year.bin"
    copy.write_bytes(ASCII.read_bytes())
    assert read_vocabulary(copy).year is None
    assert read_vocabulary(copy, year=2030).year == 2030
    misnamed = tmp_path / "desc1999.xml"
    misnamed.write_bytes(DESC.read_bytes())
    assert read_vocabulary(misnamed).year == 2031


def test_trees_replace_the_places_of_the_descriptor_file(tmp_path):
    assert contents(read_vocabulary(ASCII, trees=TREES)) == EXPECTED
    other = tmp_path / "mtrees.bin"
    other.write_text("Invented Diseases;C90\n\nGlass Fever;C90.555\n")
    vocabulary = read_vocabulary(ASCII, trees=other)
    assert list(vocabulary.tree_numbers) == [(), ("C90",), ("C90.555",)]
    assert vocabulary.year == 2031 and vocabulary.scope_notes


def test_trees_of_another_year_are_refused(tmp_path):
    other = tmp_path / "mtrees.bin"
    other.write_text("Invented Diseases;C90\nUnheard Of;C90.100\n")
    with pytest.raises(InputError, match="mtrees.bin, line 2: no descriptor is named 'Unheard Of'"):
        read_vocabulary(ASCII, trees=other)


BAD_FILES = {
    "empty": (b"", "holds no descriptor"),
    "citations": (
        b"<?xml version='1.0'?><PubmedArticleSet/>",
        "root element PubmedArticleSet, expected Desc",
    ),
    "qualifiers": (b"*NEWRECORD\nRECTYPE = Q\nSH = blood\nUI = Q000097\n", "line 1: a record of type Q"),
    "trees alone": (TREES.read_bytes(), "holds trees without UIs"),
    "zip": (b"PK\x03\x04rest", "is a zip archive"),
    "broken xml": (DESC.read_bytes().replace(b"</TermList>", b"", 1), "line 52, column 6: broken XML"),
    "xml cut short": (DESC.read_bytes()[:2500], "line 83, column 4: broken XML"),
    "gzip cut short": (gzip.compress(DESC.read_bytes())[:-30], "is damaged or cut short"),
    "ascii cut short": (ASCII.read_bytes()[:-20], "the record at line 28 has no UI"),
    "no descriptors": (b"<DescriptorRecordSet></DescriptorRecordSet>", "holds no descriptor"),
    "no name": (b"*NEWRECORD\nRECTYPE = D\nUI = D900001\n", "line 1 has no UI or no name"),
    "same descriptor": (
        ASCII.read_bytes().replace(b"D900001", b"D900003"),
        "D900003 is in the record at line 1 and again in the record at line 21",
    ),
    "same descriptor in xml": (
        DESC.read_bytes().replace(b"<DescriptorUI>D008297", b"<DescriptorUI>D900003"),
        "D900003 is in record 1 and again in record 3",
    ),
    "same place": (
        ASCII.read_bytes().replace(b"C90\n", b"C90.100\n"),
        "D900003 and D900001 both have .* C90.100",
    ),
    "odd place": (
        ASCII.read_bytes().replace(b"C90\n", b"top\n"),
        r"line 21 \(D900001\) has the tree number 'top'",
    ),
    "binary": (b"\x00\xff\xfe\x80 binary", "is not UTF-8 text"),
    "odd bytes": (ASCII.read_bytes().replace(b"Shard", b"Sch\xe4rd"), "line 5: not UTF-8 text"),
    "missing column": (b"ui\tname\tentry_terms\nD900001\tFever\t\n", "no column tree_numbers in line 1"),
    "other text": (b"Dear reader,\nthis is a letter.\n", "no column ui, name"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused_with_a_sentence(case, tmp_path):
    content, message = BAD_FILES[case]
    path = tmp_path / "mesh-file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_vocabulary(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="desc2031.xml does not exist"):
        read_vocabulary(tmp_path / "desc2031.xml")


def test_an_entity_bomb_is_refused(tmp_path):
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 50}">' for n in range(1, 9))
    path = tmp_path / "desc2031.xml"
    path.write_text(
        f'<?xml version="1.0"?><!DOCTYPE DescriptorRecordSet [<!ENTITY e0 "boom">{levels}]>'
        "<DescriptorRecordSet><DescriptorRecord><DescriptorUI>&e8;</DescriptorUI></DescriptorRecord>"
        "</DescriptorRecordSet>"
    )
    with pytest.raises(InputError, match="broken XML"):
        read_vocabulary(path)


OLD = [
    ("D000001", "Alpha", (), ("C01",)),
    ("D000002", "Beta", ("Betas",), ("C01.100",)),
    ("D000003", "Merged Away", (), ("C01.200",)),
    ("D000004", "Took New UI", (), ("C01.300",)),
    ("D000005", "Gone", (), ("C01.400",)),
]
NEW = [
    ("D000001", "Alpha", ("merged away", "Took New UI"), ("C01",)),
    ("D000002", "Beta Renamed", ("Beta",), ("C01.500", "C02")),
    ("D000009", "Took new UI", (), ("C01.300",)),
]


def test_the_difference_of_two_years():
    old, new = (MeshVocabulary(*zip(*rows, strict=True)) for rows in (OLD, NEW))
    diff = diff_vocabularies(old, new)
    assert diff.added == ("D000009",)
    assert diff.removed == ("D000003", "D000004", "D000005")
    assert diff.renamed == {"D000002": ("Beta", "Beta Renamed")}
    assert diff.moved == {"D000002": (("C01.100",), ("C01.500", "C02"))}
    assert diff.replaced == {"D000003": "D000001", "D000004": "D000009"}


def test_a_year_does_not_differ_from_itself():
    diff = diff_vocabularies(read_vocabulary(DESC), read_vocabulary(ASCII))
    assert not any([diff.added, diff.removed, diff.renamed, diff.moved, diff.replaced])
