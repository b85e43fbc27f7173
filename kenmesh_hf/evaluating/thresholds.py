"""The search for thresholds on validation articles, and other ways to decide how many labels an article gets.

Micro-F of a decision with `tp` hits among `n` chosen labels is `(1 + β²)·tp / (n + β²·gold)`: all of it
counts, so sweeps over sorted scores are exact and need no label matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import InputError
from ..modeling.thresholds_kenmesh import Thresholds
from .label_sets import LabelSets, ScoredLabels, find_hits, row_blocks
from .label_thresholds import GRID_POINTS, NO_HITS, Entries, f_score, fit_direct, fit_recalibrated, fit_shared

PRESETS = {"precision": 0.5, "recall": 2.0}
# Strengths of the guards that cross-validation chooses from: pseudo-counts in gold tags, and the variance of
# the labels' miscalibration.
PRIORS = (30.0, 100.0)
VARIANCES = (0.1, 0.3, 1.0, 3.0)
# Per-label thresholds must beat the global one by this much: less is chance with hundreds of articles. How
# they are divided is chance, too, worth half as much in one division; so there are several.
LEAST_GAIN = 0.002
DIVISIONS = 4
Fit = Callable[[Entries, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Counts at every threshold worth trying, from high to low.

    Attributes:
        thresholds: Scores of hits without repeats: any other cut only lets in more wrong labels.
        correct: Hits with at least that score.
        predicted: Labels with at least that score.
        gold: Gold labels of all articles, those never scored included.
    """

    thresholds: np.ndarray
    correct: np.ndarray
    predicted: np.ndarray
    gold: int

    @property
    def precision(self) -> np.ndarray:
        """Micro precision at each threshold."""
        return self.correct / self.predicted

    @property
    def recall(self) -> np.ndarray:
        """Micro recall at each threshold."""
        return self.correct / self.gold

    def f_score(self, beta: float = 1.0) -> np.ndarray:
        """Micro F-beta at each threshold."""
        return f_score(self.correct, self.predicted, self.gold, beta)

    def best(self, beta: float = 1.0) -> float:
        """The threshold with the highest micro F-beta; of equal ones the highest."""
        if not len(self.thresholds):
            raise InputError(NO_HITS)
        return float(self.thresholds[np.argmax(self.f_score(beta))])


def sweep_thresholds(scored: ScoredLabels, gold: LabelSets) -> Sweep:
    """Counts hits and predictions at every useful global threshold; there is none where nothing is hit."""
    return sweep_scores(scored.scores, find_hits(scored, gold), gold.total)


def sweep_scores(scores: np.ndarray, hits: np.ndarray, gold: int) -> Sweep:
    """The same for scores on any scale, of which `hits` tells the right ones among `gold` labels in all."""
    right, wrong = np.sort(scores[hits]), np.sort(scores[~hits])
    thresholds, first = np.unique(right, return_index=True)
    correct = len(right) - first
    predicted = correct + len(wrong) - np.searchsorted(wrong, thresholds, side="left")
    return Sweep(thresholds[::-1], correct[::-1], predicted[::-1], gold)


def best_threshold(scored: ScoredLabels, gold: LabelSets, *, beta: float = 1.0) -> float:
    """The global threshold with the highest micro F-beta; of equal ones the highest threshold."""
    return sweep_thresholds(scored, gold).best(beta)


def tune_per_label(
    scored: ScoredLabels,
    gold: LabelSets,
    num_labels: int,
    *,
    prior: float = 100.0,
    beta: float = 1.0,
    points: int = GRID_POINTS,
) -> np.ndarray:
    """A threshold for each label, float32 `(labels,)`, that together maximise micro F-beta on these articles.

    Args:
        scored: Candidates with scores.
        gold: True labels of the same articles.
        num_labels: Number of labels of the model.
        prior: How many gold tags' worth of the behaviour of all labels is mixed into each label's own. A
            label with far fewer gold tags than this keeps about the global threshold, one with far more its
            own. With 0 each label fits its own articles exactly, and one without a hit is never chosen
            (infinity).
        beta: Weight of recall.
        points: Number of thresholds to choose from; exact where there are no more distinct scores of hits.
    """
    return fit_direct(Entries.of(scored, gold, num_labels, points), num_labels, prior, beta)


def tune_recalibrated(
    scored: ScoredLabels, gold: LabelSets, num_labels: int, *, variance: float = 0.3, beta: float = 1.0
) -> np.ndarray:
    """A threshold for each label, float32 `(labels,)`: the global one moved by the label's miscalibration.

    Args:
        scored: Candidates with probabilities.
        gold: True labels of the same articles.
        num_labels: Number of labels of the model.
        variance: How far labels are expected to be off, in squared log-odds; near 0 gives the global
            threshold.
        beta: Weight of recall.
    """
    return fit_recalibrated(Entries.of(scored, gold, num_labels), num_labels, variance, beta)


def tune_thresholds(
    scored: ScoredLabels, gold: LabelSets, num_labels: int, *, folds: int = 3, seed: int = 0
) -> Thresholds:
    """Chooses the thresholds to ship: per-label ones only where they did clearly better on articles left out.

    Micro-F of the global threshold and of both kinds of per-label ones, with several strengths of their
    guard, is measured by cross-validation over articles, which are divided in several ways; the winner is
    then fitted on all of them. The figures are kept as `held_out`.
    """
    ways: dict[str, Fit] = {"global": fit_shared}
    ways |= {
        f"recalibrated_{variance:g}": partial(fit_recalibrated, variance=variance) for variance in VARIANCES
    }
    ways |= {f"direct_{prior:g}": partial(fit_direct, prior=prior) for prior in PRIORS}
    entries = Entries.of(scored, gold, num_labels)
    held_out = _cross_validate(entries, num_labels, ways, folds, seed)
    winner = max(ways, key=lambda way: held_out[way] - LEAST_GAIN * (way != "global"))
    sweep = sweep_thresholds(scored, gold)
    per_label = None if winner == "global" else ways[winner](entries, num_labels)
    presets = {name: sweep.best(beta) for name, beta in PRESETS.items()}
    return Thresholds(sweep.best(), per_label, presets, held_out)


def _cross_validate(
    entries: Entries, num_labels: int, ways: dict[str, Fit], folds: int, seed: int
) -> dict[str, float]:
    """Micro-F on left-out articles of each way to fit thresholds, over all divisions."""
    counts = {way: np.zeros(2, np.int64) for way in ways}
    draw = np.random.default_rng(seed)
    for _ in range(DIVISIONS):
        fold_of = draw.permutation(len(entries.gold)) % folds
        for fold in range(folds):
            fitted_on, left_out = entries.of_articles(fold_of != fold), entries.of_articles(fold_of == fold)
            for way, fit in ways.items():
                counts[way] += left_out.count(fit(fitted_on, num_labels))
    gold = DIVISIONS * int(entries.gold.sum())
    return {way: float(f_score(right, chosen, gold)) for way, (right, chosen) in counts.items()}


def select_top_k(scored: ScoredLabels, k: int) -> np.ndarray:
    """Selects the `k` best labels of each article (bool for each entry)."""
    selected = np.zeros(len(scored.scores), bool)
    places = scored.offsets[:-1, None] + np.arange(k)
    selected[places[places < scored.offsets[1:, None]]] = True
    return selected


def select_expected_f(scored: ScoredLabels, missing: float = 0.0) -> np.ndarray:
    """Selects for each article the best labels whose number maximises its expected F1 (bool for each entry).

    With calibrated probabilities the best k labels have about `2·Σp / (k + Σ all p)`: the (k + 1)st improves
    it as long as its probability is more than half of that. Every article gets a label.

    Args:
        scored: Candidates with probabilities.
        missing: Expected number of gold labels that are no candidates, the same for each article.
    """
    if len(scored.scores) and (scored.scores.min() < 0 or scored.scores.max() > 1):
        raise InputError(
            "Expected F needs probabilities between 0 and 1; apply a sigmoid to the logits first."
        )
    selected = np.zeros(len(scored.scores), bool)
    lengths = np.diff(scored.offsets)
    for start, stop in row_blocks(scored.offsets):
        block = slice(scored.offsets[start], scored.offsets[stop])
        rows = np.repeat(np.arange(stop - start), lengths[start:stop])
        firsts = (scored.offsets[start:stop] - scored.offsets[start])[rows]
        scores = scored.scores[block].astype(np.float64)
        before = np.append(0, np.cumsum(scores))
        expected = np.bincount(rows, weights=scores, minlength=stop - start)[rows] + missing
        rank = np.arange(len(scores)) - firsts
        selected[block] = (rank == 0) | (scores * (rank + expected) > before[:-1] - before[firsts])
    return selected
