"""Figures enter; what people look at leaves: tables, plots, and cards whose blocks are filled."""

from .card_blocks import fill_card, has_results_blocks
from .plots import (
    check_plots,
    plot_candidate_recall,
    plot_curves,
    plot_groups,
    plot_label_frequency,
    plot_precision_recall,
    plot_training,
)
from .tables import count, table, table_lines

__all__ = [
    "check_plots",
    "count",
    "fill_card",
    "has_results_blocks",
    "plot_candidate_recall",
    "plot_curves",
    "plot_groups",
    "plot_label_frequency",
    "plot_precision_recall",
    "plot_training",
    "table",
    "table_lines",
]
