"""The search for thresholds on validation articles, and other ways to decide how many labels an article gets.

Micro-F of a decision with `tp` hits among `n` chosen labels is `(1 + β²)·tp / (n + β²·gold)`: all of it
counts, so sweeps over sorted scores are exact and need no label matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .errors import InputError, MismatchError
from .label_sets import LabelSets, ScoredLabels, find_hits, row_blocks
from .modeling.thresholds_kenmesh import Thresholds

PRESETS = {"precision": 0.5, "recall": 2.0}
# Strength of the pull to the global behaviour, in gold tags; cross-validation picks one.
PRIORS = (10.0, 30.0, 100.0)
# Cells (labels × grid points) that a sweep over labels holds at once.
SWEEP_CELLS = 1 << 20
MAX_ROUNDS = 20
GRID_POINTS = 512
NO_HITS = "No scored label is a gold label, so no threshold can be chosen; check the candidates."


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
        return (1 + beta**2) * self.correct / (self.predicted + beta**2 * self.gold)

    def best(self, beta: float = 1.0) -> float:
        """The threshold with the highest micro F-beta; of equal ones the highest."""
        if not len(self.thresholds):
            raise InputError(NO_HITS)
        return float(self.thresholds[np.argmax(self.f_score(beta))])


def sweep_thresholds(scored: ScoredLabels, gold: LabelSets) -> Sweep:
    """Counts hits and predictions at every useful global threshold; there is none where nothing is hit."""
    return _sweep(scored.scores, find_hits(scored, gold), gold.total)


def _sweep(scores: np.ndarray, hits: np.ndarray, gold: int) -> Sweep:
    right, wrong = np.sort(scores[hits]), np.sort(scores[~hits])
    thresholds, first = np.unique(right, return_index=True)
    correct = len(right) - first
    predicted = correct + len(wrong) - np.searchsorted(wrong, thresholds, side="left")
    return Sweep(thresholds[::-1], correct[::-1], predicted[::-1], gold)


def best_threshold(scored: ScoredLabels, gold: LabelSets, *, beta: float = 1.0) -> float:
    """The global threshold with the highest micro F-beta; of equal ones the highest threshold."""
    return sweep_thresholds(scored, gold).best(beta)


@dataclass(frozen=True, eq=False)
class _Levels:
    """Scored labels in order of label, with the highest grid threshold that each score reaches.

    Attributes:
        grid: Thresholds to choose from, rising; index `len(grid)` stands for one that nothing reaches.
        rows: Article of each entry. Entries that reach no threshold are left out.
        labels: Label of each entry.
        levels: Index of the highest threshold that its score reaches.
        hits: Whether it is a gold label of its article.
    """

    grid: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    levels: np.ndarray
    hits: np.ndarray

    @classmethod
    def of(cls, scored: ScoredLabels, hits: np.ndarray, points: int) -> Self:
        """Takes all scores of hits as grid, or `points` quantiles of them where there are more.

        The lowest twentieth of the hits lies among most of the wrong candidates, where no threshold pays;
        quantiles start above it, which leaves few entries to sweep.
        """
        if not hits.any():
            raise InputError(NO_HITS)
        right = np.sort(scored.scores[hits])
        grid = np.unique(right)
        if len(grid) > points:
            grid = np.unique(right[np.linspace(len(right) // 20, len(right) - 1, points).astype(np.int64)])
        entries = np.flatnonzero(scored.scores >= grid[0])
        entries = entries[np.argsort(scored.label_ids[entries], kind="stable")]
        levels = np.searchsorted(grid, scored.scores[entries], side="right") - 1
        return cls(grid, scored.rows_of(entries), scored.label_ids[entries], levels, hits[entries])

    def of_articles(self, inside: np.ndarray) -> Self:
        """The entries of some articles, `inside` being a bool for each article."""
        kept = inside[self.rows]
        return replace(
            self,
            rows=self.rows[kept],
            labels=self.labels[kept],
            levels=self.levels[kept],
            hits=self.hits[kept],
        )

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
        """Hits and predictions at each grid index when it serves all labels."""
        return replace(self, labels=np.zeros_like(self.labels)).curves(0, 1)

    def thresholds(self, indices: np.ndarray) -> np.ndarray:
        """The thresholds at these grid indices, float32."""
        return np.append(self.grid, np.inf).astype(np.float32)[indices]

    def count(self, chosen: np.ndarray) -> tuple[int, int]:
        """Hits and predictions when label `l` has the grid threshold `chosen[l]`."""
        selected = self.levels >= chosen[self.labels]
        return int((selected & self.hits).sum()), int(selected.sum())


def _f_score(correct: Any, predicted: Any, gold: int, beta: float) -> Any:
    return (1 + beta**2) * correct / np.maximum(predicted + beta**2 * gold, 1)


def _label_indices(levels: _Levels, gold: int, num_labels: int, prior: float, beta: float) -> np.ndarray:
    """Grid index of each label's best threshold; labels without an entry get the best global one.

    Micro-F is a ratio of sums over labels, so it is highest where each label by itself maximises `(1 + β²)·tp
    − F·n` with F the value reached: sweep all labels with the F so far until F stays. Coordinate ascent over
    labels (Pillai et al. 2013) ends at the same value; here all labels move at once. The prior adds to each
    label's counts those of all labels together, scaled down to `prior` hits.
    """
    pool = levels.pooled()
    shared = int(np.argmax(_f_score(*pool, gold, beta)))
    indices = np.full(num_labels, shared)
    if np.isinf(prior):
        return indices
    used, compact = np.unique(levels.labels, return_inverse=True)
    own = replace(levels, labels=compact)
    best = np.full(len(used), shared)
    weight, value = prior / max(pool[0].max(), 1), 0.0
    step = max(SWEEP_CELLS // pool[0].shape[1], 1)
    for _ in range(MAX_ROUNDS):
        before, value = value, float(_f_score(*own.count(best), gold, beta))
        if abs(value - before) < 1e-7:
            break
        pull = weight * ((1 + beta**2) * pool[0] - value * pool[1])
        for start in range(0, len(used), step):
            right, chosen = own.curves(start, min(start + step, len(used)))
            best[start : start + step] = np.argmax((1 + beta**2) * right - value * chosen + pull, axis=1)
    indices[used] = best
    return indices


def _check_labels(scored: ScoredLabels, num_labels: int) -> None:
    if len(scored.label_ids) and scored.label_ids.max() >= num_labels:
        raise MismatchError(
            f"Label {scored.label_ids.max()} was scored, but the model has {num_labels} labels."
        )


def tune_per_label(
    scored: ScoredLabels,
    gold: LabelSets,
    num_labels: int,
    *,
    prior: float = 30.0,
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
    _check_labels(scored, num_labels)
    levels = _Levels.of(scored, find_hits(scored, gold), points)
    indices = _label_indices(levels, gold.total, num_labels, prior, beta)
    return levels.thresholds(indices)


def tune_thresholds(
    scored: ScoredLabels,
    gold: LabelSets,
    num_labels: int,
    *,
    priors: Sequence[float] = PRIORS,
    folds: int = 3,
    points: int = GRID_POINTS,
    seed: int = 0,
) -> Thresholds:
    """Chooses the thresholds to ship: per-label ones only where they did better on articles left out.

    Micro-F of the global threshold and of per-label ones with each prior is measured by cross-validation over
    articles; the winner is then fitted on all of them. The figures are kept as `held_out`.
    """
    _check_labels(scored, num_labels)
    hits = find_hits(scored, gold)
    levels = _Levels.of(scored, hits, points)
    held_out = _cross_validate(levels, gold, num_labels, (np.inf, *priors), folds, seed)
    prior = max(held_out, key=lambda prior: held_out[prior])
    sweep = _sweep(scored.scores, hits, gold.total)
    per_label = None
    if np.isfinite(prior):
        per_label = levels.thresholds(_label_indices(levels, gold.total, num_labels, prior, 1.0))
    presets = {name: sweep.best(beta) for name, beta in PRESETS.items()}
    figures = {f"per_label_{prior:g}" if np.isfinite(prior) else "global": f for prior, f in held_out.items()}
    return Thresholds(sweep.best(), per_label, presets, figures)


def _cross_validate(
    levels: _Levels, gold: LabelSets, num_labels: int, priors: Sequence[float], folds: int, seed: int
) -> dict[float, float]:
    """Micro-F that each prior reaches on left-out articles; an infinite prior is the global threshold."""
    counts = {prior: np.zeros(2, np.int64) for prior in priors}
    fold_of = np.random.default_rng(seed).permutation(len(gold)) % folds
    for fold in range(folds):
        left_out = fold_of == fold
        train, test = levels.of_articles(~left_out), levels.of_articles(left_out)
        train_gold = int(gold.sizes[~left_out].sum())
        for prior in priors:
            counts[prior] += test.count(_label_indices(train, train_gold, num_labels, prior, 1.0))
    return {prior: float(_f_score(*pair, gold.total, 1.0)) for prior, pair in counts.items()}


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
