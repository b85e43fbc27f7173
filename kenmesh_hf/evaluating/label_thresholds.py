"""A threshold for each label, fitted on validation articles so that rare labels keep about the global one.

Two ways: a direct one, which sweeps the thresholds of all labels for the highest micro-F with pseudo-counts
of the behaviour of all labels as guard; and recalibration, which estimates how far each label's scores are
off and moves the global threshold by that. The second learns from every scored article of a label, not only
from those near the cut.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..errors import InputError, MismatchError
from .label_sets import LabelSets, ScoredLabels, find_hits

# Cells (labels × grid points) that a sweep over labels holds at once.
SWEEP_CELLS = 1 << 20
MAX_ROUNDS = 20
GRID_POINTS = 512
NO_HITS = "No scored label is a gold label, so no threshold can be chosen; check the candidates."


def f_score(correct: Any, predicted: Any, gold: int, beta: float = 1.0) -> Any:
    """Micro F-beta of counts."""
    return (1 + beta**2) * correct / np.maximum(predicted + beta**2 * gold, 1)


@dataclass(frozen=True, eq=False)
class Entries:
    """Scored labels in order of label, with the highest grid threshold that each score reaches.

    Attributes:
        grid: Thresholds to choose from, rising; index `len(grid)` stands for one that nothing reaches.
        rows: Article of each entry. Entries that reach no threshold are left out.
        labels: Label of each entry.
        scores: Score of each entry.
        levels: Index of the highest threshold that its score reaches.
        hits: Whether it is a gold label of its article.
        gold: Number of gold labels of each article, `(articles,)`.
    """

    grid: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    levels: np.ndarray
    hits: np.ndarray
    gold: np.ndarray

    @classmethod
    def of(cls, scored: ScoredLabels, gold: LabelSets, num_labels: int, points: int = GRID_POINTS) -> Self:
        """Takes all scores of hits as grid, or `points` quantiles of them where there are more.

        The lowest twentieth of the hits lies among most of the wrong candidates, where no threshold pays;
        quantiles start above it, which leaves few entries to sweep.
        """
        if len(scored.label_ids) and scored.label_ids.max() >= num_labels:
            raise MismatchError(
                f"Label {scored.label_ids.max()} was scored, but the model has {num_labels} labels."
            )
        hits = find_hits(scored, gold)
        if not hits.any():
            raise InputError(NO_HITS)
        right = np.sort(scored.scores[hits])
        grid = np.unique(right)
        if len(grid) > points:
            grid = np.unique(right[np.linspace(len(right) // 20, len(right) - 1, points).astype(np.int64)])
        kept = np.flatnonzero(scored.scores >= grid[0])
        kept = kept[np.argsort(scored.label_ids[kept], kind="stable")]
        scores = scored.scores[kept]
        levels = np.searchsorted(grid, scores, side="right") - 1
        return cls(grid, scored.rows_of(kept), scored.label_ids[kept], scores, levels, hits[kept], gold.sizes)

    def of_articles(self, inside: np.ndarray) -> Self:
        """The entries of some articles, `inside` being a bool for each article."""
        kept = inside[self.rows]
        columns = {name: getattr(self, name)[kept] for name in ("rows", "labels", "scores", "levels", "hits")}
        return replace(self, **columns, gold=np.where(inside, self.gold, 0))

    def curves(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Hits and predictions of labels `start … stop - 1` at each grid index, both `(labels, grid + 1)`."""
        block = slice(*np.searchsorted(self.labels, [start, stop]))
        width = len(self.grid) + 1
        cells = (self.labels[block].astype(np.int64) - start) * width + self.levels[block]
        size = (stop - start) * width
        counts = [np.bincount(kept, minlength=size) for kept in (cells[self.hits[block]], cells)]
        right, chosen = (c.reshape(-1, width)[:, ::-1].cumsum(1)[:, ::-1] for c in counts)
        return right, chosen

    def pooled(self) -> tuple[np.ndarray, np.ndarray]:
        """Hits and predictions at each grid index when it serves all labels, both `(1, grid + 1)`."""
        return replace(self, labels=np.zeros_like(self.labels)).curves(0, 1)

    def count(self, thresholds: np.ndarray) -> tuple[int, int]:
        """Hits and predictions when label `l` has the threshold `thresholds[l]`."""
        selected = self.scores >= thresholds[self.labels]
        return int((selected & self.hits).sum()), int(selected.sum())


def fit_shared(entries: Entries, num_labels: int, beta: float = 1.0) -> np.ndarray:
    """The grid threshold that is best for all labels together, once for each label, float32 `(labels,)`."""
    best = int(np.argmax(f_score(*entries.pooled(), int(entries.gold.sum()), beta)))
    return np.full(num_labels, np.append(entries.grid, np.inf)[best], np.float32)


def fit_direct(entries: Entries, num_labels: int, prior: float, beta: float = 1.0) -> np.ndarray:
    """The thresholds that maximise micro F-beta; labels without an entry get the shared one.

    Micro-F is a ratio of sums over labels, so it is highest where each label by itself maximises `(1 + β²)·tp
    − F·n` with F the value reached: sweep all labels with the F so far until F stays. Coordinate ascent over
    labels (Pillai et al. 2013) ends at the same value; here all labels move at once. The prior adds to each
    label's counts those of all labels together, scaled down to `prior` hits.
    """
    pool, gold = entries.pooled(), int(entries.gold.sum())
    thresholds = fit_shared(entries, num_labels, beta)
    used, compact = np.unique(entries.labels, return_inverse=True)
    own, choices = replace(entries, labels=compact), np.append(entries.grid, np.inf).astype(np.float32)
    weight, value = prior / max(pool[0].max(), 1), 0.0
    step = max(SWEEP_CELLS // len(choices), 1)
    for _ in range(MAX_ROUNDS):
        before, value = value, float(f_score(*entries.count(thresholds), gold, beta))
        if abs(value - before) < 1e-6:
            break
        pull = weight * ((1 + beta**2) * pool[0] - value * pool[1])
        for start in range(0, len(used), step):
            right, chosen = own.curves(start, min(start + step, len(used)))
            best = np.argmax((1 + beta**2) * right - value * chosen + pull, axis=1)
            thresholds[used[start : start + step]] = choices[best]
    return thresholds


def _logit(probabilities: np.ndarray) -> np.ndarray:
    inner = np.clip(probabilities.astype(np.float64), 1e-6, 1 - 1e-6)
    return np.log(inner / (1 - inner))


def fit_recalibrated(entries: Entries, num_labels: int, variance: float, beta: float = 1.0) -> np.ndarray:
    """The shared threshold, moved for each label by how far its scores are off.

    Label l's true log-odds are taken to be its scores' plus `b_l`, with `b_l` normally distributed around 0:
    a logistic regression with one coefficient for each label, solved for all of them at once by Newton's
    method. Leaving out entries by their score alone doesn't bias it.
    """
    if len(entries.scores) and (entries.scores.min() < 0 or entries.scores.max() > 1):
        raise InputError(
            "Recalibration needs probabilities between 0 and 1; apply a sigmoid to the logits first."
        )
    log_odds = _logit(entries.scores)
    shifts = np.zeros(num_labels)
    for _ in range(MAX_ROUNDS):
        expected = 1 / (1 + np.exp(-(log_odds + shifts[entries.labels])))
        slope = np.bincount(entries.labels, entries.hits - expected, num_labels) - shifts / variance
        curvature = np.bincount(entries.labels, expected * (1 - expected), num_labels) + 1 / variance
        # A full Newton step can overshoot where the first guess is far off.
        steps = np.clip(slope / curvature, -1, 1)
        shifts += steps
        if np.abs(steps).max() < 1e-3:
            break
    return (1 / (1 + np.exp(shifts - _logit(fit_shared(entries, num_labels, beta))))).astype(np.float32)
