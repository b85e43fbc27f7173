"""Metrics against scikit-learn on random cases and against figures worked out by hand."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, precision_recall_fscore_support

from kenmesh_hf.errors import DependencyError, MismatchError
from kenmesh_hf.evaluating import LabelSets, ScoredLabels, score_predictions, trainer_metrics
from kenmesh_hf.evaluating.metrics import hierarchical_scores, mesh_metric

LABELS = 7


@st.composite
def cases(draw):
    """Dense truth, distinct scores, and which labels are candidates, of a few articles."""
    articles = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    gold = rng.random((articles, LABELS)) < draw(st.sampled_from([0.0, 0.2, 0.7]))
    scores = rng.permutation(articles * LABELS).reshape(articles, LABELS) / (articles * LABELS)
    candidates = rng.random((articles, LABELS)) < draw(st.sampled_from([0.3, 0.8, 1.0]))
    return gold, scores.astype(np.float32), candidates


def sparse(gold, scores, candidates):
    candidate_ids, gold_ids = (np.where(mask, np.arange(LABELS), -100) for mask in (candidates, gold))
    return ScoredLabels.from_padded(candidate_ids, scores), LabelSets.from_padded(gold_ids)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_set_metrics_agree_with_scikit_learn(case):
    gold, scores, candidates = case
    scored, truth = sparse(*case)
    predicted = candidates & (scores >= 0.5)
    ours = score_predictions(scored, truth, scored.scores >= 0.5)
    for average, prefix in (("micro", "Mi"), ("samples", "EB")):
        p, r, f, _ = precision_recall_fscore_support(gold, predicted, average=average, zero_division=0)
        assert ours[f"{prefix}P"] == pytest.approx(p)
        assert ours[f"{prefix}R"] == pytest.approx(r)
        assert ours["MiF" if prefix == "Mi" else "EBF_mean"] == pytest.approx(f)
    used = np.flatnonzero((gold | predicted).any(0))
    if len(used):
        options = {"labels": used, "average": "macro", "zero_division": 0}
        theirs = precision_recall_fscore_support(gold, predicted, **options)
        assert [ours["MaP"], ours["MaR"], ours["MaF"]] == pytest.approx(list(theirs[:3]))
    else:
        assert ours["MaF"] == 0


@settings(max_examples=60, deadline=None)
@given(cases())
def test_ranked_metrics_agree_with_dense_ranking(case):
    gold, scores, _ = case
    scored, truth = sparse(gold, scores, np.ones_like(gold))
    ours = score_predictions(scored, truth, scored.scores >= 0.5, cutoffs=(1, 3, 5))
    order = np.argsort(-scores, axis=1)
    for k in (1, 3, 5):
        right = np.take_along_axis(gold, order[:, :k], 1).sum(1)
        assert ours[f"P@{k}"] == pytest.approx(np.mean(right / k))
        assert ours[f"R@{k}"] == pytest.approx(np.mean(right / np.maximum(gold.sum(1), 1)))
        assert ours[f"nDCG@{k}"] == pytest.approx(ndcg_score(gold, scores, k=k, ignore_ties=True))


def test_figures_worked_out_by_hand():
    scored = ScoredLabels.from_lists([[0, 1, 2], [1, 3]], [[0.9, 0.8, 0.1], [0.7, 0.2]])
    gold = LabelSets.from_lists([[0, 2, 99], [1]], num_labels=4)
    scores = score_predictions(scored, gold, scored.scores >= 0.5)
    # Article 1: chosen 0, 1; gold 0, 2 and an unknown one. Article 2: chosen 1; gold 1.
    assert scores["MiP"] == pytest.approx(2 / 3)
    assert scores["MiR"] == pytest.approx(2 / 4)
    assert scores["MiF"] == pytest.approx(4 / 7)
    assert scores["EBP"] == pytest.approx((1 / 2 + 1) / 2)
    assert scores["EBR"] == pytest.approx((1 / 3 + 1) / 2)
    assert scores["EBF"] == pytest.approx(2 * (3 / 4) * (2 / 3) / (3 / 4 + 2 / 3))
    assert scores["EBF_mean"] == pytest.approx((2 / 5 + 1) / 2)
    # Labels 0, 1, 2: F 1, 2/3, 0.
    assert scores["MaF"] == pytest.approx((1 + 2 / 3) / 3)
    assert scores["P@3"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert scores["R@3"] == pytest.approx((2 / 3 + 1) / 2)
    ideal = 1 + 1 / np.log2(3) + 1 / 2
    assert scores["nDCG@3"] == pytest.approx(((1 + 1 / 2) / ideal + 1) / 2)
    assert scores["candidate_recall"] == pytest.approx(3 / 4)
    assert scores["candidate_size"] == pytest.approx(2.5)
    assert scores["articles"] == 2
    assert all(type(value) is float for value in scores.values())


def test_equal_scores_are_ranked_by_label_whatever_their_order():
    gold = LabelSets.from_lists([[2]], num_labels=5)
    for ids in ([2, 4], [4, 2]):
        scored = ScoredLabels.from_lists([ids], [[0.5, 0.5]])
        assert score_predictions(scored, gold, scored.scores > 0)["P@1"] == 1
    scored = ScoredLabels.from_lists([[2, 1]], [[0.5, 0.5]])
    assert score_predictions(scored, gold, scored.scores > 0)["P@1"] == 0


def test_articles_without_prediction_or_gold_count_as_zero():
    scored = ScoredLabels.from_lists([[], [1], [2]], [[], [0.9], [0.9]])
    gold = LabelSets.from_lists([[0], [], [2]], num_labels=3)
    scores = score_predictions(scored, gold, scored.scores >= 0.5)
    assert scores["EBF_mean"] == pytest.approx(1 / 3)
    assert scores["MiP"] == pytest.approx(1 / 2)
    assert scores["nDCG@1"] == pytest.approx(1 / 3)


def test_no_articles_at_all_give_zeros():
    scores = score_predictions(ScoredLabels([0], [], []), LabelSets([0], []), np.zeros(0, bool))
    assert set(scores.values()) == {0.0}
    assert {"MiF", "EBF", "MaF", "P@15", "nDCG@10", "candidate_recall"} <= set(scores)


def test_hierarchical_scores_add_ancestors_to_both_sides():
    parents = {0: [], 1: [0], 2: [0], 3: [1, 0], 4: [2, 0]}
    predicted = LabelSets.from_lists([[3], [4]], 5)
    gold = LabelSets.from_lists([[1], [3, 77]], 5)
    # Article 1: {3, 1, 0} against {1, 0}. Article 2: {4, 2, 0} against {3, 1, 0} and an unknown one.
    scores = hierarchical_scores(predicted, gold, parents.__getitem__)
    assert scores["HiP"] == pytest.approx(3 / 6)
    assert scores["HiR"] == pytest.approx(3 / 6)
    scored = ScoredLabels.from_lists([[3], [4]], [[0.9], [0.9]])
    full = score_predictions(scored, gold, scored.scores > 0.5, ancestors=parents.__getitem__)
    assert full["HiF"] == pytest.approx(scores["HiF"])
    assert "HiF" not in score_predictions(scored, gold, scored.scores > 0.5)
    empty = LabelSets([0, 0, 0], [])
    assert hierarchical_scores(empty, empty, parents.__getitem__)["HiF"] == 0


def test_a_decision_of_the_wrong_shape_is_refused():
    scored = ScoredLabels.from_lists([[1, 2]], [[0.1, 0.2]])
    gold = LabelSets.from_lists([[1]], 3)
    for decision in (np.ones(3, bool), np.array([0.1, 0.9])):
        with pytest.raises(MismatchError, match="2 scored labels"):
            score_predictions(scored, gold, decision)


def test_trainer_metrics_read_padded_predictions():
    top_ids = np.array([[4, 2, 0], [1, -100, -100]])
    top_scores = np.array([[0.9, 0.8, 0.1], [0.85, -100.0, -100.0]], np.float32)
    labels = np.array([[4, 2], [1, -100]])
    prediction = SimpleNamespace(predictions=(top_ids, top_scores), label_ids=labels)
    scores = trainer_metrics()(prediction)
    assert scores["MiF"] == 1
    assert scores["threshold"] == pytest.approx(0.8)
    assert "candidate_recall" not in scores
    assert trainer_metrics(unknown=np.array([0, 1]))(prediction)["MiR"] == pytest.approx(3 / 4)


def test_trainer_metrics_survive_a_model_that_hits_nothing():
    prediction = SimpleNamespace(predictions=([[3]], [[0.9]]), label_ids=np.array([[1]]))
    assert trainer_metrics()(prediction)["MiF"] == 0


def test_evaluate_metric_gives_the_same_figures(tmp_path):
    metric = mesh_metric(num_labels=5)
    metric.add_batch(predictions=[[4, 2]], scores=[[0.9, 0.3]], references=[[4]])
    metric.add_batch(predictions=[[]], scores=[[]], references=[[1, 5]])
    scores = metric.compute(threshold=0.5)
    assert scores["MiP"] == 1
    assert scores["MiR"] == pytest.approx(1 / 3)
    assert scores["P@1"] == pytest.approx(1 / 2)


def test_missing_evaluate_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "evaluate", None)
    with pytest.raises(DependencyError, match=r"kenmesh-hf\[train\]"):
        mesh_metric(3)


def test_metrics_import_neither_evaluate_nor_matplotlib():
    code = (
        "import sys, kenmesh_hf.evaluating, kenmesh_hf.showing\n"
        "print({'evaluate', 'matplotlib'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
