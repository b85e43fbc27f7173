"""Scores of predicted MeSH labels: micro, macro, by article, by rank, along the hierarchy; sparse throughout.

Conventions, the same everywhere: 0/0 counts as 0 (scikit-learn's `zero_division=0`), so an article without
prediction has precision 0, one without gold label recall 0, and both stay in the averages. Gold descriptors
unknown to the model are missed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import MismatchError, need
from .label_sets import LabelSets, ScoredLabels, find_hits, ragged_arange, to_offsets
from .thresholds import sweep_thresholds

CUTOFFS = (1, 3, 5, 10, 15)


def divide(numerator: Any, denominator: Any) -> np.ndarray:
    """Quotient of counts as float64, 0 where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    )
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator != 0)


def precision_recall_f1(correct: Any, predicted: Any, gold: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1 of counts."""
    correct, predicted, gold = (np.asarray(counts, np.float64) for counts in (correct, predicted, gold))
    return divide(correct, predicted), divide(correct, gold), divide(2 * correct, predicted + gold)


def _check_selected(scored: ScoredLabels, selected: np.ndarray) -> np.ndarray:
    selected = np.asarray(selected)
    if selected.shape != scored.scores.shape or selected.dtype != bool:
        raise MismatchError(
            f"A decision must be one bool for each of the {len(scored.scores)} scored labels."
        )
    return selected


def score_predictions(
    scored: ScoredLabels,
    gold: LabelSets,
    selected: np.ndarray,
    *,
    ancestors: Callable[[int], Iterable[int]] | None = None,
    cutoffs: Sequence[int] = CUTOFFS,
) -> dict[str, float]:
    """Computes every overall metric.

    `MiP MiR MiF` count over all articles together. `EBP EBR` are means over articles, `EBF` their harmonic
    mean (as in the paper), `EBF_mean` the mean of the articles' F1 (as in BioASQ). `MaP MaR MaF` are means
    over the labels that are gold or predicted at least once; unknown descriptors have no label and don't
    enter them. `P@k R@k nDCG@k` follow the ranking of all scored labels, whatever was selected; P@k divides
    by k even where an article has fewer candidates. `HiP HiR HiF` are micro figures after adding all
    ancestors to both sides (only with `ancestors`; an unknown descriptor is one miss). `candidate_recall` is
    the share of gold labels that were scored at all, `candidate_size` the mean number of scored labels.

    Args:
        scored: Candidates with scores.
        gold: True labels of the same articles.
        selected: The decision: a bool for each entry of `scored`.
        ancestors: Gives the ancestor labels of a label, as `MeshVocabulary.ancestors`.
        cutoffs: The k of the ranked metrics.
    """
    selected = _check_selected(scored, selected)
    hits = find_hits(scored, gold)
    scores = _micro_and_example_scores(scored, gold, selected, hits)
    scores |= _macro_scores(scored, gold, selected, hits)
    scores |= rank_scores(scored, gold, hits, cutoffs)
    if ancestors is not None:
        scores |= hierarchical_scores(scored.chosen(selected), gold, ancestors)
    scores["candidate_recall"] = float(divide(hits.sum(), gold.total))
    scores["candidate_size"] = float(divide(len(scored.label_ids), len(scored)))
    scores["articles"] = float(len(gold))
    return scores


def _micro_and_example_scores(
    scored: ScoredLabels, gold: LabelSets, selected: np.ndarray, hits: np.ndarray
) -> dict[str, float]:
    articles = len(gold)
    predicted = np.bincount(scored.rows_of(np.flatnonzero(selected)), minlength=articles)
    correct = np.bincount(scored.rows_of(np.flatnonzero(selected & hits)), minlength=articles)
    micro = precision_recall_f1(correct.sum(), predicted.sum(), gold.total)
    by_article = precision_recall_f1(correct, predicted, gold.sizes)
    precision, recall, f1 = (float(divide(values.sum(), articles)) for values in by_article)
    example = {"EBP": precision, "EBR": recall, "EBF_mean": f1}
    example["EBF"] = float(divide(2 * precision * recall, precision + recall))
    return dict(zip(("MiP", "MiR", "MiF"), map(float, micro), strict=True)) | example


def _macro_scores(
    scored: ScoredLabels, gold: LabelSets, selected: np.ndarray, hits: np.ndarray
) -> dict[str, float]:
    size = 1 + max((int(ids.max()) for ids in (scored.label_ids, gold.label_ids) if len(ids)), default=0)
    predicted = np.bincount(scored.label_ids[selected], minlength=size)
    correct = np.bincount(scored.label_ids[selected & hits], minlength=size)
    truth = np.bincount(gold.label_ids, minlength=size)
    used = (predicted + truth) > 0
    figures = precision_recall_f1(correct[used], predicted[used], truth[used])
    return {
        name: float(divide(values.sum(), used.sum()))
        for name, values in zip(("MaP", "MaR", "MaF"), figures, strict=True)
    }


def rank_scores(
    scored: ScoredLabels, gold: LabelSets, hits: np.ndarray, cutoffs: Sequence[int] = CUTOFFS
) -> dict[str, float]:
    """Means of P@k, R@k and nDCG@k (binary gain, ideal ranking of all gold labels) over articles."""
    deepest, articles = max(cutoffs), len(scored)
    if not articles:
        return {f"{name}@{k}": 0.0 for k in cutoffs for name in ("P", "R", "nDCG")}
    ranks = np.arange(deepest)
    places = scored.offsets[:-1, None] + ranks
    top = (places < scored.offsets[1:, None]) & np.append(hits, False)[np.minimum(places, len(hits))]
    discounts = 1 / np.log2(ranks + 2)
    correct, gain, ideal = np.cumsum(top, 1), np.cumsum(top * discounts, 1), np.cumsum(discounts)
    scores = {}
    for k in cutoffs:
        best = ideal[np.minimum(gold.sizes, k) - 1]
        scores[f"P@{k}"] = float(correct[:, k - 1].mean() / k)
        scores[f"R@{k}"] = float(divide(correct[:, k - 1], gold.sizes).mean())
        scores[f"nDCG@{k}"] = float(divide(gain[:, k - 1], np.where(gold.sizes > 0, best, 0)).mean())
    return scores


def hierarchical_scores(
    predicted: LabelSets, gold: LabelSets, ancestors: Callable[[int], Iterable[int]]
) -> dict[str, float]:
    """Micro precision, recall and F1 after each side has been closed under ancestors."""
    labels = np.union1d(predicted.label_ids, gold.label_ids)
    lines = [np.append(np.asarray(list(ancestors(int(label))), np.int64), label) for label in labels]
    offsets = to_offsets(np.array([len(line) for line in lines], np.int64))
    closure = np.concatenate([np.empty(0, np.int64), *lines])

    def close(sets: LabelSets) -> LabelSets:
        places = np.searchsorted(labels, sets.label_ids)
        lengths = np.diff(offsets)[places]
        sizes = np.bincount(sets.rows, weights=lengths, minlength=len(sets)).astype(np.int64)
        return LabelSets(to_offsets(sizes), closure[ragged_arange(offsets[places], lengths)], sets.unknown)

    wide, truth = close(predicted), close(gold)
    stride = int(closure.max()) + 1 if len(closure) else 1
    both = np.intersect1d(
        wide.rows * stride + wide.label_ids, truth.rows * stride + truth.label_ids, assume_unique=True
    )
    figures = precision_recall_f1(len(both), wide.total, truth.total)
    return dict(zip(("HiP", "HiR", "HiF"), map(float, figures), strict=True))


def trainer_metrics(
    unknown: np.ndarray | None = None, beta: float = 1.0
) -> Callable[[Any], dict[str, float]]:
    """Makes `compute_metrics` for a Trainer whose evaluation yields `(top_ids, top_scores)` of each article.

    The decision is the best threshold on the very articles that are scored: a figure to compare epochs by,
    not one to publish. Negative ids (padding between batches) are dropped; candidate recall and size would be
    those of the top k only, so they are left out.

    Args:
        unknown: Number of gold descriptors outside the model's labels for each article of the evaluation set,
            in its order.
        beta: Weight of recall in the F that the threshold maximises.
    """

    def compute_metrics(prediction: Any) -> dict[str, float]:
        top_ids, top_scores = prediction.predictions
        scored = ScoredLabels.from_padded(top_ids, top_scores)
        gold = LabelSets.from_padded(prediction.label_ids, unknown)
        sweep = sweep_thresholds(scored, gold)
        threshold = sweep.best(beta) if len(sweep.thresholds) else 1.0
        scores = score_predictions(scored, gold, scored.scores >= np.float32(threshold))
        dropped = ("candidate_recall", "candidate_size", "articles")
        return {name: value for name, value in scores.items() if name not in dropped} | {
            "threshold": threshold
        }

    return compute_metrics


def mesh_metric(num_labels: int, **options: Any) -> Any:
    """Makes an `evaluate.Metric` around `score_predictions`.

    Its inputs are `predictions` (label ids of each article), `scores` (one for each of them) and `references`
    (gold label ids; ids of `num_labels` and above are descriptors that the model doesn't know).
    `compute(threshold=0.5)` sets the cut.

    Args:
        num_labels: Number of labels of the model.
        **options: Passed on to `score_predictions`.
    """
    need("evaluate", "train", "An `evaluate.Metric`")
    import datasets
    import evaluate

    class MeshMetric(evaluate.Metric):
        """Multi-label scores of MeSH indexing."""

        def _info(self) -> Any:
            labels = datasets.List(datasets.Value("int32"))
            features = {
                "predictions": labels,
                "scores": datasets.List(datasets.Value("float32")),
                "references": labels,
            }
            return evaluate.MetricInfo(
                description="Scores of MeSH indexing", citation="", features=datasets.Features(features)
            )

        def _compute(
            self, predictions: Any, scores: Any, references: Any, threshold: float = 0.5
        ) -> Mapping[str, float]:
            scored = ScoredLabels.from_lists(predictions, scores)
            gold = LabelSets.from_lists(references, num_labels)
            return score_predictions(scored, gold, scored.scores >= np.float32(threshold), **options)

    return MeshMetric(keep_in_memory=True)
