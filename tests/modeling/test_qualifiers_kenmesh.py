"""The built-in qualifiers, their look-up, and which of them a descriptor may have."""

import gzip

import pytest

from kenmesh_hf.modeling.qualifiers_kenmesh import (
    BUILT_IN,
    QUALIFIERS_FILE,
    MeshQualifier,
    MeshQualifiers,
    built_in_qualifier,
)

DRUG_THERAPY = MeshQualifier("Q000188", "drug therapy", "DT")
BLOOD = MeshQualifier("Q000097", "blood", "BL")


def test_there_are_76_each_with_its_own_ui_name_and_abbreviation():
    assert len(MeshQualifiers()) == len(BUILT_IN) == 76
    assert DRUG_THERAPY in BUILT_IN and BLOOD in BUILT_IN


@pytest.mark.parametrize("text", ["Q000188", "DT", "drug therapy", "Drugtherapy", " drug  therapy "])
def test_a_qualifier_is_found_by_ui_abbreviation_or_name(text):
    assert MeshQualifiers().find(text) == DRUG_THERAPY


def test_ampersands_are_the_word_and():
    assert built_in_qualifier("prevention and control") == built_in_qualifier("prevention & control")
    assert built_in_qualifier("preventioncontrol") is None


@pytest.mark.parametrize("text", ["", "D003967", "Q999999", "contraindications", "dt", "DT"])
def test_what_is_no_name_is_not_taken_for_one(text):
    assert built_in_qualifier(text) is None


def test_a_descriptors_own_list_goes_before_that_of_its_places():
    table = MeshQualifiers(allowed={"D003967": ["DT"], "D006801": [], "C23": ["BL", "DT"], "C": ["PA"]})
    assert table.allowed("D003967", ["C23.888"]) == (DRUG_THERAPY,)
    assert table.allowed("D006801", ["C23.888"]) == ()
    assert table.allowed("D000001", ["C23.888"]) == (BLOOD, DRUG_THERAPY)
    assert [item.abbreviation for item in table.allowed("D000001", ["C23.888", "C04"])] == ["BL", "DT", "PA"]
    assert table.allowed("D000001", ["D12.776"]) == table.allowed("D000001") == ()


def test_what_is_saved_reads_back_as_the_same_bytes(tmp_path):
    new = MeshQualifier("Q999999", "new & odd aspect", "ZZ")
    table = MeshQualifiers([DRUG_THERAPY, new], {"D003967": ["ZZ", "DT"], "D006801": [], "C04": ["ZZ"]}, 2031)
    [path] = table.save_pretrained(tmp_path / "model")
    found = MeshQualifiers.from_pretrained(tmp_path / "model")
    assert found == table and found.year == 2031
    assert found.allowed("D006801", ["C04"]) == () and found.allowed("D1", ["C04.588"]) == (new,)
    [again] = found.save_pretrained(tmp_path / "again")
    assert open(path, "rb").read() == open(again, "rb").read()


@pytest.mark.parametrize(
    ("qualifiers", "allowed", "message"),
    [
        ([("Q1", "blood", "BL")], {}, "needs a UI"),
        ([("Q000097", "", "BL")], {}, "needs a UI"),
        ([("Q000097", "blood", "bl")], {}, "needs a UI"),
        ([BLOOD, ("Q000001", "Blood", "XX")], {}, "shares its UI, name or abbreviation"),
        ([BLOOD], {"D000001": ["DT"]}, "'D000001' has the qualifier 'DT', which is not known"),
        ([BLOOD], {"blood": ["BL"]}, "'blood' has a list of qualifiers; owners are descriptors or branches"),
    ],
)
def test_what_does_not_fit_is_refused(qualifiers, allowed, message):
    with pytest.raises(ValueError, match=message):
        MeshQualifiers([MeshQualifier(*row) for row in qualifiers], allowed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no table of MeSH qualifiers"),
        ("#mesh\t2024\n", "is no table of MeSH qualifiers"),
        ("#qualifiers\t\nQ000097\n", "line 2: 1 columns where 2 or 3 are expected"),
        ("#qualifiers\t\nQ000097\tblood\tBL\nC04\tDT\n", "'DT', which is not known"),
    ],
)
def test_damaged_tables_are_refused_with_their_name(tmp_path, text, message):
    (tmp_path / QUALIFIERS_FILE).write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=f"{QUALIFIERS_FILE}.*{message}"):
        MeshQualifiers.from_pretrained(tmp_path)


def test_a_cut_or_missing_file_is_named(tmp_path):
    with pytest.raises(OSError, match=f"{QUALIFIERS_FILE} does not exist"):
        MeshQualifiers.from_pretrained(tmp_path)
    (tmp_path / QUALIFIERS_FILE).write_bytes(gzip.compress(b"#qualifiers\t\n" * 99)[:-20])
    with pytest.raises(OSError, match="damaged or cut short"):
        MeshQualifiers.from_pretrained(tmp_path)
