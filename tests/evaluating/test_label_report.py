"""Counts by label and the groups, tables and check-tag rows made from them."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest

from kenmesh_hf.errors import MismatchError
from kenmesh_hf.evaluating import LabelSets, ScoredLabels
from kenmesh_hf.evaluating.label_report import (
    LabelCounts,
    check_tag_rows,
    label_rows,
    score_categories,
    score_frequency_groups,
    write_label_rows,
)

VOCABULARY = SimpleNamespace(
    uis=["D006801", "D008297", "D005260", "D015415"],
    names=["Humans", "Male", "Female", "Biomarkers, with a comma"],
    check_tags=np.array([0, 1, 2]),
)


@pytest.fixture
def counts():
    scored = ScoredLabels.from_lists([[0, 1], [0, 3], [0]], [[0.9, 0.8], [0.9, 0.1], [0.3]])
    gold = LabelSets.from_lists([[0, 3], [0, 3, 50], [0]], num_labels=4)
    return LabelCounts.of(scored, gold, scored.scores >= 0.5, num_labels=4)


def test_counts_of_each_label(counts):
    assert counts.gold.tolist() == [3, 0, 0, 2]
    assert counts.predicted.tolist() == [2, 1, 0, 0]
    assert counts.correct.tolist() == [2, 0, 0, 0]
    assert counts.unknown == 1


def test_frequency_groups_put_unknown_labels_among_the_unseen(counts):
    groups = score_frequency_groups(counts, np.array([5000, 99, 100, 0]))
    assert list(groups) == ["0", "1-99", "100-999", "1000-4999", "5000+"]
    assert groups["5000+"]["MiF"] == pytest.approx(2 * 2 / (2 + 3))
    assert groups["0"]["gold"] == 3
    assert groups["0"]["MiR"] == 0
    assert groups["1-99"]["predicted"] == 1
    assert groups["100-999"] == {
        "MiP": 0, "MiR": 0, "MiF": 0, "MaF": 0, "labels": 1, "gold": 0, "predicted": 0,
    }  # fmt: skip
    assert sum(group["gold"] for group in groups.values()) == counts.gold.sum() + counts.unknown


def test_frequency_groups_need_a_count_for_each_label(counts):
    with pytest.raises(MismatchError, match="3 training counts"):
        score_frequency_groups(counts, np.zeros(3))


def test_a_label_counts_in_each_of_its_categories(counts):
    groups = score_categories(counts, [["B", "M", "B"], ["M"], [], []].__getitem__)
    assert list(groups) == ["B", "M"]
    assert groups["B"]["MiR"] == pytest.approx(2 / 3)
    assert groups["M"]["MiP"] == pytest.approx(2 / 3)
    assert groups["M"]["MaF"] == pytest.approx((4 / 5 + 0) / 2)


def test_rows_are_ordered_by_gold_count_and_leave_out_unused_labels(counts):
    rows = label_rows(counts, VOCABULARY, training_counts=[7, 8, 9, 0])
    assert [row["name"] for row in rows] == ["Humans", "Biomarkers, with a comma", "Male"]
    assert rows[0] == {
        "descriptor": "D006801", "name": "Humans", "training": 7, "gold": 3, "predicted": 2, "correct": 2,
        "P": 1.0, "R": pytest.approx(2 / 3), "F": pytest.approx(0.8),
    }  # fmt: skip


def test_check_tag_rows_hold_every_check_tag(counts):
    rows = check_tag_rows(counts, VOCABULARY)
    assert [row["name"] for row in rows] == ["Humans", "Male", "Female"]
    assert rows[2]["F"] == 0
    assert "training" not in rows[0]


def test_csv_can_be_read_back(counts, tmp_path):
    write_label_rows(tmp_path / "labels.csv", label_rows(counts, VOCABULARY))
    with open(tmp_path / "labels.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["name"] == "Biomarkers, with a comma"
    assert rows[0]["F"] == "0.8000"
    assert list(rows[0]) == ["descriptor", "name", "gold", "predicted", "correct", "P", "R", "F"]
    write_label_rows(tmp_path / "none.csv", [])
    assert (tmp_path / "none.csv").read_text(encoding="utf-8").startswith("descriptor,name")


def test_a_vocabulary_of_another_model_is_refused(counts):
    with pytest.raises(MismatchError, match="2 descriptors"):
        label_rows(counts, SimpleNamespace(uis=["D1", "D2"], names=["a", "b"]))
    scored = ScoredLabels.from_lists([[9]], [[0.9]])
    with pytest.raises(MismatchError, match="not below 4"):
        LabelCounts.of(scored, LabelSets.from_lists([[1]], 4), scored.scores > 0, 4)
