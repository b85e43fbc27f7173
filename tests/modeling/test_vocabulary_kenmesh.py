"""MeshVocabulary: labels, hierarchy, and its saved form."""

import gzip

import numpy as np
import pytest

from kenmesh_hf.modeling.vocabulary_kenmesh import CATEGORIES, CHECK_TAGS, VOCABULARY_FILE, MeshVocabulary

# A small invented hierarchy. "Fever" sits in two places, "Male" in none; C02.300 has no descriptor of its
# own, so "Lost Child" hangs from C02; "Twice Below" is below "Fever" in both places; "Own Parent" is
# below itself.
ROWS = [
    ("D000001", "Disorders", ("Disorder",), ("C01",)),
    ("D000002", "Fever", ("Fevers", "Pyrexia, High"), ("C01.100", "C02.200")),
    ("D000003", "Other Disorders", (), ("C02",)),
    ("D000004", "Lost Child", (), ("C02.300.400",)),
    ("D000005", "Twice Below", (), ("C01.100.500", "C02.200.500")),
    ("D000006", "Own Parent", (), ("C01.700", "C01.700.700")),
    ("D000007", "Near Namesake", (), ("C010",)),
    ("D006801", "Humans", ("Human",), ("B01.050",)),
    ("D008297", "Male", ("Males",), ()),
]


def make_vocabulary(rows=ROWS, **options) -> MeshVocabulary:
    return MeshVocabulary(*zip(*rows, strict=True), **{"year": 2024, **options})


@pytest.fixture
def vocabulary() -> MeshVocabulary:
    return make_vocabulary()


def test_labels_are_positions(vocabulary):
    assert len(vocabulary) == 9
    assert vocabulary.label_of("D000003") == vocabulary.get("D000003") == 2
    assert vocabulary.get("D999999") is None
    assert "D008297" in vocabulary and "D999999" not in vocabulary
    with pytest.raises(KeyError, match="D999999 is not a descriptor of MeSH 2024"):
        vocabulary.label_of("D999999")


def test_terms_and_places_come_back_as_tuples(vocabulary):
    assert vocabulary.entry_terms[1] == ("Fevers", "Pyrexia, High")
    assert vocabulary.entry_terms[2] == vocabulary.tree_numbers[8] == ()
    assert vocabulary.tree_numbers[1:3] == [("C01.100", "C02.200"), ("C02",)]
    assert list(vocabulary.tree_numbers) == [row[3] for row in ROWS] == vocabulary.tree_numbers
    assert vocabulary.entry_terms != vocabulary.tree_numbers


def test_edges_pass_over_missing_levels_and_hold_no_duplicates_or_loops(vocabulary):
    edges = vocabulary.edges()
    assert edges.dtype == np.int64
    assert list(zip(*edges.tolist(), strict=True)) == [(0, 1), (0, 5), (1, 4), (2, 1), (2, 3)]


def test_edges_of_a_flat_vocabulary_are_empty():
    assert make_vocabulary(ROWS[-1:]).edges().shape == (2, 0)


@pytest.mark.parametrize(
    ("branch", "labels"),
    [
        ("C", [0, 1, 2, 3, 4, 5, 6]),
        ("C01", [0, 1, 4, 5]),
        ("C02.300", [3]),
        ("D000002", [1, 4]),
        ("D008297", [8]),
    ],
)
def test_labels_in_a_branch(vocabulary, branch, labels):
    assert vocabulary.labels_in(branch).tolist() == labels


@pytest.mark.parametrize("branch", ["", "E", "C0", "C01.10", "D999999", "Fever"])
def test_an_unknown_branch_is_named(vocabulary, branch):
    with pytest.raises(ValueError, match=f"{branch}.*MeSH 2024"):
        vocabulary.labels_in(branch)


def test_ancestors_follow_the_labels_own_places(vocabulary):
    assert vocabulary.ancestors(4).tolist() == [0, 1, 2]
    assert vocabulary.ancestors(3).tolist() == [2]
    assert vocabulary.ancestors(5).tolist() == [0]
    assert vocabulary.ancestors(8).tolist() == []


def test_categories_and_depth(vocabulary):
    assert vocabulary.categories(1) == ("C",) and vocabulary.categories(8) == ()
    assert [vocabulary.depth(label) for label in (0, 1, 3, 5, 8)] == [1, 2, 3, 2, 0]
    assert len(CATEGORIES) == 16


def test_check_tags_are_those_the_year_has(vocabulary):
    assert vocabulary.check_tags.tolist() == [7, 8]
    assert len(set(CHECK_TAGS)) == len(CHECK_TAGS)
    assert make_vocabulary(ROWS[:2]).check_tags.shape == (0,)


def test_saving_and_loading_give_the_same_vocabulary(vocabulary, tmp_path):
    vocabulary.save_pretrained(tmp_path / "model")
    loaded = MeshVocabulary.from_pretrained(tmp_path / "model")
    assert loaded.year == 2024
    assert loaded.uis == vocabulary.uis and loaded.names == vocabulary.names
    assert loaded.entry_terms == vocabulary.entry_terms and loaded.tree_numbers == vocabulary.tree_numbers
    assert np.array_equal(loaded.edges(), vocabulary.edges())


def test_saved_bytes_depend_on_the_contents_only(vocabulary, tmp_path):
    vocabulary.save_pretrained(tmp_path / "one")
    MeshVocabulary.from_pretrained(tmp_path / "one").save_pretrained(tmp_path / "two")
    assert (tmp_path / "one" / VOCABULARY_FILE).read_bytes() == (
        tmp_path / "two" / VOCABULARY_FILE
    ).read_bytes()


def test_scope_notes_are_saved_when_asked(tmp_path):
    vocabulary = make_vocabulary(scope_notes={"D000002": "Raised temperature."})
    vocabulary.save_pretrained(tmp_path)
    assert MeshVocabulary.from_pretrained(tmp_path).scope_notes == {}
    vocabulary.save_pretrained(tmp_path, scope_notes=True)
    assert MeshVocabulary.from_pretrained(tmp_path).scope_notes == {"D000002": "Raised temperature."}


def test_tables_without_headers_and_with_further_columns_are_read():
    plain = MeshVocabulary.from_table(
        "D000001\tFever\tHeat|Pyrexia\tC01|C02\nD000002\tRash\t\t\n", "plain.tsv", 2030
    )
    assert (plain.year, plain.names, plain.entry_terms[0]) == (2030, ["Fever", "Rash"], ("Heat", "Pyrexia"))
    wide = MeshVocabulary.from_table("D000001\tFever\t\tC01\t77\nD000002\tRash\t\t\t\n", "wide.tsv")
    assert (wide.year, wide.names, wide.tree_numbers) == (None, ["Fever", "Rash"], [("C01",), ()])
    named = MeshVocabulary.from_table(
        "name\tui\ttree_numbers\tentry_terms\r\nFever\tD000001\tC01\tHeat\r\n", "n.tsv"
    )
    assert (named.uis, named.tree_numbers[0], named.entry_terms[0]) == (["D000001"], ("C01",), ("Heat",))


def test_an_unknown_year_stays_unknown(tmp_path):
    make_vocabulary(year=None).save_pretrained(tmp_path)
    assert MeshVocabulary.from_pretrained(tmp_path).year is None


def test_a_descriptor_given_twice_is_refused():
    with pytest.raises(ValueError, match="D000001 occurs more than once: as number 1 and number 3"):
        make_vocabulary([ROWS[0], ROWS[1], ROWS[0]])


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="lengths"):
        MeshVocabulary(["D000001"], ["Disorders"], [()], [])


def test_texts_that_would_break_the_table_are_refused(tmp_path):
    with pytest.raises(ValueError, match="separator"):
        make_vocabulary([("D000001", "Disorders", ("a|b",), ())])
    with pytest.raises(ValueError, match="tab or a line break"):
        make_vocabulary([("D000001", "Dis\torders", (), ())]).save_pretrained(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(OSError, match=f"{VOCABULARY_FILE} does not exist"):
        MeshVocabulary.from_pretrained(tmp_path)


def test_a_file_cut_short_is_named(vocabulary, tmp_path):
    path = tmp_path / VOCABULARY_FILE
    vocabulary.save_pretrained(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(OSError, match=f"{VOCABULARY_FILE} is damaged or cut short"):
        MeshVocabulary.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no descriptor"),
        ("ui\tname\tentry_terms\ttree_numbers\n", "holds no descriptor"),
        ("ui\tname\ttree_numbers\nD000001\tFever\tC01\n", "no column entry_terms in line 1"),
        ("#mesh\t2024\nui\tname\tentry_terms\ttree_numbers\nD000001\tFever\n", "line 3: 2 columns where 4"),
        ("D000001\tFever\t\tC01\nC000002\tDrug\t\t\n", "line 2: 'C000002' is not a descriptor UI"),
        ("D000001\tFever\t\tC01\nD000001\tHeat\t\t\n", "D000001 occurs more than once"),
    ],
)
def test_a_broken_table_is_refused_with_its_place(tmp_path, text, message):
    (tmp_path / VOCABULARY_FILE).write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=message) as caught:
        MeshVocabulary.from_pretrained(tmp_path)
    assert VOCABULARY_FILE in str(caught.value)
