"""A model or its scores, and gold labels, enter; figures, thresholds and reports leave. Sparse throughout."""

from .comparing import compare_models
from .evaluation import Scores, decide, evaluate, record_result, report_lines, score_articles
from .heading_scores import HeadingScores
from .label_sets import LabelSets, ScoredLabels, find_hits, to_offsets
from .metrics import divide, mesh_metric, precision_recall_f1, score_predictions, trainer_metrics
from .retuning import MIN_ARTICLES, retune_thresholds
from .thresholds import best_threshold, select_top_k, sweep_scores, sweep_thresholds, tune_thresholds

__all__ = [
    "HeadingScores",
    "LabelSets",
    "MIN_ARTICLES",
    "ScoredLabels",
    "Scores",
    "best_threshold",
    "compare_models",
    "decide",
    "divide",
    "evaluate",
    "find_hits",
    "mesh_metric",
    "precision_recall_f1",
    "record_result",
    "report_lines",
    "retune_thresholds",
    "score_articles",
    "score_predictions",
    "select_top_k",
    "sweep_scores",
    "sweep_thresholds",
    "to_offsets",
    "trainer_metrics",
    "tune_thresholds",
]
