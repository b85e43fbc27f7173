"""Thresholds: sweeps against brute force, the guards on held-out articles, files, other decisions."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.evaluating import (
    LabelSets,
    ScoredLabels,
    best_threshold,
    find_hits,
    score_predictions,
    select_top_k,
    sweep_thresholds,
    to_offsets,
    tune_thresholds,
)
from kenmesh_hf.evaluating.thresholds import select_expected_f, tune_per_label, tune_recalibrated
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds


def micro_f(scored, gold, selected, beta=1.0):
    right, chosen = (selected & find_hits(scored, gold)).sum(), selected.sum()
    return (1 + beta**2) * right / (chosen + beta**2 * gold.total)


@st.composite
def small_cases(draw):
    """A few articles and labels with many equal scores and at least one hit."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    articles, labels = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    scores = rng.integers(0, draw(st.integers(1, 6)), (articles, labels)) / 8
    gold = rng.random((articles, labels)) < 0.4
    gold[0, 0] = True
    ids = np.tile(np.arange(labels), (articles, 1))
    unknown = rng.integers(0, 2, articles)
    return (
        ScoredLabels.from_padded(ids, scores),
        LabelSets.from_padded(np.where(gold, ids, -100), unknown),
        labels,
    )


@settings(max_examples=80, deadline=None)
@given(small_cases(), st.sampled_from([0.5, 1.0, 2.0]))
def test_best_global_threshold_equals_brute_force(case, beta):
    scored, gold, _ = case
    best = max(micro_f(scored, gold, scored.scores >= t, beta) for t in np.unique(scored.scores))
    found = best_threshold(scored, gold, beta=beta)
    assert micro_f(scored, gold, scored.scores >= np.float32(found), beta) == pytest.approx(best)


@settings(max_examples=80, deadline=None)
@given(small_cases(), st.sampled_from([0.5, 1.0, 2.0]))
def test_unguarded_per_label_thresholds_equal_brute_force(case, beta):
    scored, gold, labels = case
    choices = [*np.unique(scored.scores), np.inf]
    best = max(
        micro_f(scored, gold, scored.scores >= np.array(thresholds)[scored.label_ids], beta)
        for thresholds in itertools.product(choices, repeat=labels)
    )
    found = tune_per_label(scored, gold, labels, prior=0, beta=beta)
    assert micro_f(scored, gold, scored.scores >= found[scored.label_ids], beta) == pytest.approx(best)


@settings(max_examples=40, deadline=None)
@given(small_cases())
def test_sweep_counts_what_each_threshold_selects(case):
    scored, gold, _ = case
    sweep = sweep_thresholds(scored, gold)
    for i, threshold in enumerate(sweep.thresholds):
        scores = score_predictions(scored, gold, scored.scores >= threshold)
        assert sweep.precision[i] == pytest.approx(scores["MiP"])
        assert sweep.recall[i] == pytest.approx(scores["MiR"])
        assert sweep.f_score()[i] == pytest.approx(scores["MiF"])
    assert np.all(np.diff(sweep.thresholds) < 0)


def invent(articles, seed, labels=400, candidates=60, spread=0.0):
    """Articles whose labels are drawn with known probabilities, which label by label are moved to scores."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, labels + 1)
    ids = np.stack(
        [rng.choice(labels, candidates, replace=False, p=weights / weights.sum()) for _ in range(articles)]
    )
    log_odds = rng.normal(-3.5, 2.2, ids.shape)
    gold = rng.random(ids.shape) < 1 / (1 + np.exp(-log_odds))
    shift = np.random.default_rng(7).normal(0, spread, labels)
    scores = 1 / (1 + np.exp(-(log_odds + shift[ids])))
    return ScoredLabels.from_padded(ids, scores), LabelSets.from_padded(np.where(gold, ids, -100))


def test_the_prior_prevents_overfitting_of_calibrated_scores():
    (scored, gold), (new, truth) = invent(400, 1), invent(2000, 2)
    shared = np.full(400, best_threshold(scored, gold), np.float32)
    fitted = {prior: tune_per_label(scored, gold, 400, prior=prior) for prior in (0, 30, 300)}

    def scores(sets, articles):
        return {
            key: micro_f(articles, sets, articles.scores >= t[articles.label_ids])
            for key, t in fitted.items()
        }

    seen, held_out = scores(gold, scored), scores(truth, new)
    best = micro_f(new, truth, new.scores >= shared[new.label_ids])
    assert seen[0] > seen[30] > seen[300]
    assert held_out[0] < held_out[30] < held_out[300]
    assert held_out[300] == pytest.approx(best, abs=0.005)
    assert held_out[0] < best - 0.02


def test_recalibration_helps_where_labels_are_off_and_is_harmless_elsewhere():
    for spread, gain in ((1.0, 0.01), (0.0, -0.003)):
        (scored, gold), (new, truth) = invent(1500, 3, spread=spread), invent(2000, 4, spread=spread)
        shared = micro_f(new, truth, new.scores >= np.float32(best_threshold(scored, gold)))
        per_label = tune_recalibrated(scored, gold, 400, variance=0.3)
        assert micro_f(new, truth, new.scores >= per_label[new.label_ids]) > shared + gain


def test_recalibration_finds_the_shift_of_a_label():
    scored, gold = invent(4000, 5, labels=60, candidates=30, spread=0.8)
    thresholds = tune_recalibrated(scored, gold, 60, variance=1.0).astype(np.float64)
    moved = np.log(thresholds / (1 - thresholds))
    shift = np.random.default_rng(7).normal(0, 0.8, 60)
    assert np.corrcoef(moved, shift)[0, 1] > 0.95


def test_strong_guards_give_the_global_threshold():
    scored, gold = invent(300, 6, spread=1.0)
    shared = tune_per_label(scored, gold, 401, prior=1e9)
    assert np.unique(shared).size == 1
    assert shared[0] == pytest.approx(best_threshold(scored, gold), abs=0.02)
    assert tune_recalibrated(scored, gold, 401, variance=1e-9) == pytest.approx(shared)


def test_labels_never_scored_keep_the_global_threshold():
    scored, gold = invent(300, 6)
    for thresholds in (tune_per_label(scored, gold, 402), tune_recalibrated(scored, gold, 402)):
        assert thresholds[400:] == pytest.approx(best_threshold(scored, gold), abs=0.02)


def test_tuning_ships_per_label_thresholds_only_where_they_win():
    off = tune_thresholds(*invent(1500, 8, spread=1.0), 400)
    assert off.per_label is not None and off.per_label.shape == (400,)
    assert max(off.held_out, key=off.held_out.get) != "global"
    # Labels in one article each: nothing can be learned about any of them.
    rng = np.random.default_rng(0)
    ids = np.arange(2000).reshape(100, 20)
    scores = rng.random(ids.shape)
    gold = LabelSets.from_padded(np.where(rng.random(ids.shape) < scores, ids, -100))
    rare = tune_thresholds(ScoredLabels.from_padded(ids, scores), gold, 2000)
    assert rare.per_label is None
    assert rare.presets["recall"] < rare.global_threshold < rare.presets["precision"]


def test_a_gain_that_may_be_chance_is_not_taken(monkeypatch):
    articles = invent(1500, 8, spread=1.0)
    held_out = tune_thresholds(*articles, 400).held_out
    gain = max(held_out.values()) - held_out["global"]
    for least, taken in ((gain * 0.9, True), (gain * 1.1, False)):
        monkeypatch.setattr("kenmesh_hf.evaluating.thresholds.LEAST_GAIN", least)
        assert (tune_thresholds(*articles, 400).per_label is not None) == taken


def test_one_lucky_division_of_the_articles_decides_nothing(monkeypatch):
    articles = invent(200, 8)
    monkeypatch.setattr("kenmesh_hf.evaluating.thresholds.PRIORS", ())
    monkeypatch.setattr("kenmesh_hf.evaluating.thresholds.VARIANCES", (1.0,))

    def spread(divisions: int) -> float:
        """How far gains differ by the way in which the articles were divided."""
        monkeypatch.setattr("kenmesh_hf.evaluating.thresholds.DIVISIONS", divisions)
        found = [tune_thresholds(*articles, 400, seed=seed).held_out for seed in range(8)]
        return float(np.std([held_out["recalibrated_1"] - held_out["global"] for held_out in found]))

    assert 0 < spread(8) < 0.7 * spread(1)


def test_presets_trade_precision_for_recall():
    scored, gold = invent(500, 9)
    thresholds = tune_thresholds(scored, gold, 400)
    figures = {
        preset: score_predictions(scored, gold, thresholds.select(scored.label_ids, scored.scores, preset))
        for preset in ("precision", "recall")
    }
    balanced = score_predictions(scored, gold, scored.scores >= np.float32(thresholds.global_threshold))
    assert figures["precision"]["MiP"] > balanced["MiP"] > figures["recall"]["MiP"]
    assert figures["precision"]["MiR"] < balanced["MiR"] < figures["recall"]["MiR"]


def test_top_k_takes_the_best_of_each_article():
    scored = ScoredLabels.from_lists([[5, 6, 7], [], [8]], [[0.1, 0.3, 0.2], [], [0.0]])
    chosen = scored.chosen(select_top_k(scored, 2))
    assert chosen.label_ids.tolist() == [6, 7, 8]
    assert chosen.sizes.tolist() == [2, 0, 1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(0, 1, width=32), max_size=6), max_size=4), st.sampled_from([0.0, 1.5]))
def test_expected_f_takes_the_best_number_of_labels(rows, missing):
    scored = ScoredLabels.from_lists([range(len(row)) for row in rows], rows)
    sizes = scored.chosen(select_expected_f(scored, missing)).sizes
    for row, size in zip(rows, sizes, strict=True):
        ranked = np.sort(np.array(row, np.float32).astype(np.float64))[::-1]
        value = 2 * np.cumsum(ranked) / np.maximum(np.arange(1, len(row) + 1) + ranked.sum() + missing, 1e-9)
        assert size > 0 if row else size == 0
        assert not row or value[size - 1] == pytest.approx(value.max())


def test_expected_f_serves_articles_better_than_a_global_threshold():
    (scored, gold), (new, truth) = invent(2000, 10), invent(2000, 11)
    by_article = score_predictions(new, truth, select_expected_f(new))
    shared = score_predictions(new, truth, new.scores >= np.float32(best_threshold(scored, gold)))
    assert by_article["EBF_mean"] > shared["EBF_mean"]


def test_bad_input_is_explained():
    scored, gold = ScoredLabels.from_lists([[1]], [[0.5]]), LabelSets.from_lists([[0]], 2)
    with pytest.raises(InputError, match="No scored label is a gold label"):
        best_threshold(scored, gold)
    with pytest.raises(InputError, match="No scored label is a gold label"):
        tune_thresholds(scored, gold, 2)
    with pytest.raises(MismatchError, match="Label 1 was scored, but the model has 1"):
        tune_per_label(scored, gold, 1)
    logits, right = ScoredLabels.from_lists([[1]], [[3.5]]), LabelSets.from_lists([[1]], 2)
    with pytest.raises(InputError, match="sigmoid"):
        tune_recalibrated(logits, right, 2)
    with pytest.raises(InputError, match="sigmoid"):
        select_expected_f(logits)


def test_the_same_thresholds_give_the_same_bytes(tmp_path):
    thresholds = Thresholds(0.3, [0.2, 0.4], {"recall": 0.1, "precision": 0.6}, {"global": 0.5, "other": 0.4})
    written = set()
    for number in range(8):
        thresholds.save_pretrained(tmp_path / str(number))
        written.add((tmp_path / str(number) / "thresholds.safetensors").read_bytes())
    assert len(written) == 1


@pytest.mark.parametrize("per_label", [None, [0.25, np.inf, 0.1]])
def test_thresholds_come_back_from_disk(tmp_path, per_label):
    Thresholds(0.1 + 0.2, per_label, {"recall": 0.1}, {"global": 0.5}).save_pretrained(tmp_path / "model")
    back = Thresholds.from_pretrained(tmp_path / "model")
    assert back.global_threshold == 0.1 + 0.2
    assert back.presets == {"recall": 0.1}
    assert back.held_out == {"global": 0.5}
    assert (
        back.per_label is None if per_label is None else back.per_label.tolist() == pytest.approx(per_label)
    )


def test_thresholds_decide_by_label_or_preset():
    thresholds = Thresholds(0.5, [0.2, 0.9], {"recall": 0.05})
    ids, scores = np.array([0, 1, 1]), np.array([0.2, 0.8, 0.9])
    assert thresholds.select(ids, scores).tolist() == [True, False, True]
    assert thresholds.select(ids, scores, preset="recall").all()
    assert Thresholds(0.5).select(ids, scores).tolist() == [False, True, True]
    with pytest.raises(ValueError, match="known presets: recall"):
        thresholds.select(ids, scores, preset="precison")
    with pytest.raises(ValueError, match="Label 2 has no threshold"):
        thresholds.of(np.array([2]))


def test_bad_thresholds_are_refused(tmp_path):
    with pytest.raises(ValueError, match="finite"):
        Thresholds(float("nan"))
    with pytest.raises(ValueError, match="one number for each label"):
        Thresholds(0.5, [[0.1]])
    with pytest.raises(OSError, match="thresholds.safetensors"):
        Thresholds.from_pretrained(tmp_path)
    (tmp_path / "thresholds.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    with pytest.raises(ValueError, match="no thresholds file of this version"):
        Thresholds.from_pretrained(tmp_path)
    (tmp_path / "thresholds.safetensors").write_bytes(b"not a tensor file")
    with pytest.raises(ValueError, match="damaged"):
        Thresholds.from_pretrained(tmp_path)


@pytest.mark.slow
def test_twenty_thousand_articles_stay_within_two_gigabytes():
    articles, labels, candidates = 20_000, 30_000, 500
    rng = np.random.default_rng(0)
    tracemalloc.start()
    # Steps of 1 … 59 from any start, less than once around: 500 distinct labels for each article.
    ids = rng.integers(1, 60, (articles, candidates), dtype=np.int32).cumsum(1, dtype=np.int32)
    ids = (ids + rng.integers(0, labels, (articles, 1), dtype=np.int32)) % labels
    scores = rng.beta(0.15, 4.0, ids.shape).astype(np.float32)
    gold_entries = np.flatnonzero(rng.random(ids.size, np.float32) < scores.reshape(-1))
    lengths = np.bincount(gold_entries // candidates, minlength=articles)
    gold = LabelSets(to_offsets(lengths), ids.reshape(-1)[gold_entries])
    scored = ScoredLabels(np.arange(articles + 1) * candidates, ids.reshape(-1), scores.reshape(-1))
    del ids, scores
    thresholds = tune_thresholds(scored, gold, labels)
    figures = score_predictions(
        scored,
        gold,
        thresholds.select(scored.label_ids, scored.scores),
        ancestors=lambda label: range(label % 9),
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5e9
    assert figures["candidate_recall"] == 1
    assert figures["MiF"] >= sweep_thresholds(scored, gold).f_score().max() - 1e-6
