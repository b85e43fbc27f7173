"""Flat label sets: canonical order, padding, unknown labels, bad input."""

import numpy as np
import pytest

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.evaluating import LabelSets, ScoredLabels, find_hits, to_offsets
from kenmesh_hf.evaluating.label_sets import row_blocks


def rows(sets):
    return [sets.label_ids[a:b].tolist() for a, b in zip(sets.offsets[:-1], sets.offsets[1:], strict=True)]


def test_label_sets_are_sorted_and_without_repeats():
    sets = LabelSets([0, 3, 3, 5], [7, 2, 7, 1, 0])
    assert rows(sets) == [[2, 7], [], [0, 1]]
    assert sets.sizes.tolist() == [2, 0, 2]


def test_labels_outside_the_model_are_counted_as_unknown_once_each():
    sets = LabelSets.from_lists([[0, 5, 5, -1, None, None], [], [4]], num_labels=5)
    assert rows(sets) == [[0], [], [4]]
    assert sets.unknown.tolist() == [4, 0, 0]
    assert sets.total == 6


def test_padding_is_dropped():
    gold = LabelSets.from_padded(np.array([[3, 1, -100], [-100, -100, -100]]), unknown=[1, 2])
    assert rows(gold) == [[1, 3], []]
    assert gold.sizes.tolist() == [3, 2]
    scored = ScoredLabels.from_padded([[3, 1, -1], [2, 4, 0]], [[0.1, 0.2, 9], [0.5, -np.inf, 0.7]])
    assert rows(scored) == [[1, 3], [0, 2]]


def test_scored_rows_are_ranked_and_ties_follow_label_ids():
    scored = ScoredLabels.from_lists([[9, 2, 5], [], [1]], [[0.5, 0.5, 0.9], [], [0.1]])
    assert rows(scored) == [[5, 2, 9], [], [1]]
    assert scored.scores[:3].tolist() == pytest.approx([0.9, 0.5, 0.5])


def test_long_inputs_are_sorted_like_short_ones():
    rng = np.random.default_rng(0)
    labels = [rng.permutation(4000)[: rng.integers(0, 3000)] for _ in range(80)]
    scores = [rng.integers(0, 50, len(row)).astype(np.float32) for row in labels]
    scored = ScoredLabels.from_lists(labels, scores)
    assert len(list(row_blocks(scored.offsets))) > 1
    expected = [row[np.lexsort((row, -score))].tolist() for row, score in zip(labels, scores, strict=True)]
    assert rows(scored) == expected


def test_take_and_chosen():
    scored = ScoredLabels.from_lists([[1, 2], [3], []], [[0.1, 0.9], [0.4], []])
    assert rows(scored.take(np.array([1, 0]))) == [[3], [2, 1]]
    assert rows(scored.chosen(scored.scores >= 0.4)) == [[2], [3], []]
    gold = LabelSets.from_lists([[1], [2, 9], [0]], num_labels=5).take(np.array([1, 2]))
    assert rows(gold) == [[2], [0]]
    assert gold.unknown.tolist() == [1, 0]


def test_blocks_cover_all_rows_once():
    offsets = to_offsets(np.array([5, 0, 100, 1, 1, 0]))
    assert list(row_blocks(offsets, entries=3)) == [(0, 1), (1, 2), (2, 3), (3, 6)]


def test_hits_of_empty_rows():
    scored = ScoredLabels.from_lists([[], [1, 2], [3]], [[], [0.2, 0.1], [1.0]])
    assert find_hits(scored, LabelSets.from_lists([[1], [2], []], 5)).tolist() == [False, True, False]
    assert find_hits(ScoredLabels([0], [], []), LabelSets([0], [])).tolist() == []


@pytest.mark.parametrize(
    ("label_ids", "scores", "message"),
    [
        ([[1, 1]], [[0.1, 0.2]], "scored twice"),
        ([[1]], [[float("nan")]], "finite"),
        ([[1]], [[float("inf")]], "finite"),
        ([[-100]], [[0.1]], "negative"),
        ([[1, 2]], [[0.1]], "differ in number"),
    ],
)
def test_bad_scores_are_refused(label_ids, scores, message):
    with pytest.raises(InputError, match=message):
        ScoredLabels.from_lists(label_ids, scores)


def test_bad_shapes_are_refused():
    with pytest.raises(InputError, match="start at 0"):
        LabelSets([1, 2], [3, 4])
    with pytest.raises(InputError, match="end at 3"):
        LabelSets([0, 3], [3, 4])
    with pytest.raises(InputError, match="unknown"):
        LabelSets([0, 2], [3, 4], unknown=[1, 2])
    with pytest.raises(InputError, match="2 label ids came with 1 scores"):
        ScoredLabels([0, 2], [3, 4], [0.5])
    with pytest.raises(InputError, match="shape"):
        ScoredLabels.from_padded(np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(MismatchError, match="2 articles"):
        find_hits(ScoredLabels([0, 0], [], []), LabelSets([0, 0, 0], []))
