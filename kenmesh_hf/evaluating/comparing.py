"""Whether one model is better than another on the same articles, or whether these cannot tell."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..reading import Article
from .evaluation import decide, score_articles
from .label_sets import find_hits
from .metrics import precision_recall_f1

BETTER, WORSE, UNKNOWN = "better", "worse", "can't be told"
SAMPLES = 2000
# Fewer articles than this tell nothing, whatever the figures.
LEAST_ARTICLES = 10


def compare_models(
    old: MeSHIndexingPipeline, new: MeSHIndexingPipeline, articles: Sequence[Article]
) -> dict[str, Any]:
    """Micro precision, recall and F1 of both, and what the difference of F1 is worth.

    Articles are drawn anew, with repetition, many times (a paired bootstrap); 95 % of the differences so
    found are in the interval. Where it is above 0 the new model is better, below 0 worse; else these articles
    cannot tell.

    Args:
        old: A model with its own thresholds.
        new: Another one.
        articles: Labelled articles that neither was made of.
    """
    if not articles:
        return {"articles": 0, "verdict": UNKNOWN}
    before, after = (_counts(tagger, articles) for tagger in (old, new))
    difference, interval = _bootstrap(before, after)
    return {
        "articles": len(articles),
        "before": _figures(before),
        "after": _figures(after),
        "difference": difference,
        "interval": interval,
        "verdict": verdict(interval, len(articles)),
    }


def verdict(interval: tuple[float, float], articles: int) -> str:
    """What an interval of differences says."""
    if articles < LEAST_ARTICLES or interval[0] <= 0 <= interval[1]:
        return UNKNOWN
    return BETTER if interval[0] > 0 else WORSE


def _counts(tagger: MeSHIndexingPipeline, articles: Sequence[Article]) -> np.ndarray:
    """Right, given and wanted labels of each article, `(articles, 3)`."""
    scores = score_articles(tagger, articles, progress=False)
    selected = decide(scores, tagger)
    hits = find_hits(scores.scored, scores.gold) & selected
    given, right = (
        np.bincount(scores.scored.rows_of(np.flatnonzero(chosen)), minlength=len(scores.gold))
        for chosen in (selected, hits)
    )
    return np.stack([right, given, scores.gold.sizes], axis=1)


def _figures(counts: np.ndarray) -> dict[str, float]:
    return dict(zip(("MiP", "MiR", "MiF"), map(float, precision_recall_f1(*counts.sum(0))), strict=True))


def _bootstrap(before: np.ndarray, after: np.ndarray) -> tuple[float, tuple[float, float]]:
    """The difference of micro F1, and the interval that holds 95 % of those of samples drawn anew."""
    draw = np.random.default_rng(0)
    rows = draw.integers(len(before), size=(SAMPLES, len(before)))
    of_samples = _f1(after[rows].sum(1)) - _f1(before[rows].sum(1))
    low, high = np.quantile(of_samples, [0.025, 0.975])
    return float(_f1(after.sum(0)) - _f1(before.sum(0))), (float(low), float(high))


def _f1(counts: np.ndarray) -> np.ndarray:
    return precision_recall_f1(counts[..., 0], counts[..., 1], counts[..., 2])[2]
