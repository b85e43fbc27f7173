"""Going from one MeSH year to another: which label becomes which, and what the report says."""

import json

import numpy as np
import pytest

from kenmesh_hf.errors import MismatchError
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.updating.plan import plan_update

OLD = [
    ("D000001", "Alpha", (), ("C01",)),
    ("D000002", "Beta", (), ("C01.100",)),
    ("D000003", "Merged Away", (), ("C01.200",)),
    ("D000004", "Took New UI", (), ("C01.300",)),
    ("D000005", "Gone", (), ("C01.400",)),
    ("D000006", "Male", (), ()),
]
NEW = [
    ("D000000", "Brand New", (), ("C03",)),
    ("D000001", "Alpha", ("Merged Away",), ("C01",)),
    ("D000002", "Beta Renamed", ("Beta",), ("C01.500", "C02")),
    ("D000006", "Male", (), ("C04",)),
    ("D000009", "Took New UI", (), ("C01.300",)),
]


def make_vocabulary(rows, year=None) -> MeshVocabulary:
    return MeshVocabulary(*zip(*rows, strict=True), year=year)


@pytest.fixture
def plan():
    return plan_update(make_vocabulary(OLD, 2030), make_vocabulary(NEW, 2031))


def test_labels_follow_their_descriptor_or_its_successor(plan):
    assert plan.old_to_new.dtype == np.int64
    assert plan.old_to_new.tolist() == [1, 2, 1, 4, -1, 3]


def test_learned_values_come_from_the_same_descriptor_first(plan):
    assert plan.new_to_old.dtype == np.int64
    assert plan.new_to_old.tolist() == [-1, 0, 1, 5, 3]


def test_a_survivor_keeps_its_own_values_wherever_its_predecessor_stood():
    old = make_vocabulary([OLD[2], OLD[0]])
    assert plan_update(old, make_vocabulary(NEW)).new_to_old.tolist() == [-1, 1, -1, -1, -1]


def test_the_plan_lists_what_happened(plan):
    facts = json.loads(json.dumps(plan.to_dict()))
    assert facts["from"] == {"year": 2030, "descriptors": 6}
    assert facts["to"] == {"year": 2031, "descriptors": 5}
    assert facts["kept"] == 3
    assert [entry["ui"] for entry in facts["added"]] == ["D000000", "D000009"]
    assert facts["renamed"] == [{"ui": "D000002", "from": "Beta", "to": "Beta Renamed"}]
    assert facts["moved"] == [
        {"ui": "D000002", "name": "Beta Renamed", "from": ["C01.100"], "to": ["C01.500", "C02"]},
        {"ui": "D000006", "name": "Male", "from": [], "to": ["C04"]},
    ]
    assert [(entry["ui"], entry["by"]) for entry in facts["replaced"]] == [
        ("D000003", "D000001"),
        ("D000004", "D000009"),
    ]
    assert facts["dropped"] == [{"ui": "D000005", "name": "Gone"}]


def test_the_report_reads_well(plan):
    report = plan.report()
    assert report.startswith("MeSH 2030 (6 descriptors) to MeSH 2031 (5 descriptors)\n")
    assert "  kept            3  same UI in both years\n" in report
    assert "Dropped\n  D000005 Gone\n" in report
    assert "  D000003 Merged Away -> D000001 Alpha\n" in report
    assert "  D000002 Beta -> Beta Renamed\n" in report
    assert "  D000006 Male: (no place) -> C04\n" in report


def test_long_lists_are_cut(plan):
    assert "Added\n  D000000 Brand New\n  ... and 1 more\n" in plan.report(limit=1)


def test_a_year_updated_to_itself_changes_nothing():
    vocabulary = make_vocabulary(OLD)
    plan = plan_update(vocabulary, vocabulary)
    assert plan.old_to_new.tolist() == plan.new_to_old.tolist() == list(range(6))
    assert plan.report().count("\n") == 7 and "(year unknown)" in plan.report()


def test_vocabularies_with_nothing_in_common_are_refused():
    with pytest.raises(MismatchError, match="no descriptor in common"):
        plan_update(make_vocabulary(OLD[:2]), make_vocabulary([("D777777", "Else", (), ())]))
