"""How often a journal gives each label, whichever name it goes by."""

import numpy as np
import pytest

from kenmesh_hf.modeling.journals_kenmesh import JournalTable, journal_key, journal_names

JOURNALS = (
    ["0372617", "The Annals of Velora", "Ann. Velora"],
    "Annals of Velora",
    ["ann velora"],
    ["9918", "Mirata & Sopeti Letters (Kanuro)"],
    None,
    "",
)
LABELS = [np.array(labels) for labels in ([1, 3], [1], [2, 3], [3], [0], [0])]


@pytest.fixture(scope="module")
def table() -> JournalTable:
    return JournalTable.build(JOURNALS, LABELS)


def counts(table: JournalTable, journal) -> tuple[dict[int, int], int]:
    labels, numbers, size = table.counts_of(journal)
    return dict(zip(labels.tolist(), numbers.tolist(), strict=True)), size


@pytest.mark.parametrize(
    "journal",
    [
        "Annals of Velora",
        "THE ANNALS OF VELORA.",
        "annals  of velora : official organ",
        "Ann Velora",
        "0372617",
        ["unknown", "0372617"],
        ("Ann. Velora", None),
    ],
)
def test_a_journal_is_known_by_any_of_its_names(table, journal):
    assert counts(table, journal) == ({1: 2, 2: 1, 3: 2}, 3)


@pytest.mark.parametrize(
    "journal",
    ["Mirata and Sopeti letters", "mirata sopeti letters", "Mirata & Sopeti Letters [Paris]", "9918"],
)
def test_ampersand_and_place_do_not_matter(table, journal):
    assert counts(table, journal) == ({3: 1}, 1)


@pytest.mark.parametrize(
    "journal", [None, "", "  ", [], [None, ""], "Annals", "Annals of Mirata", "--", "372617"]
)
def test_an_unknown_journal_tells_nothing(table, journal):
    assert table.find(journal) == -1
    assert counts(table, journal) == ({}, 0)


def test_articles_without_a_journal_are_not_counted(table):
    assert len(table) == 2
    assert table.sizes.tolist() == [3, 1]
    assert 0 not in table.labels


def test_a_journal_is_called_by_its_longest_name(table):
    assert table.names == ["The Annals of Velora", "Mirata & Sopeti Letters (Kanuro)"]


def test_no_articles_make_an_empty_table():
    table = JournalTable.build([], [])
    assert len(table) == 0
    assert table.names == []
    assert counts(table, "Annals of Velora") == ({}, 0)


def test_a_title_that_is_all_aside_still_has_a_key():
    assert journal_key("(Velora)") != journal_key("(Mirata)")
    assert journal_names(["Velora", "", None, "."]) == ["Velora"]
