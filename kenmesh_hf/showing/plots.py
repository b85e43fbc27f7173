"""Pictures of data, training and evaluation: each function takes numbers and writes one PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, need

COLOUR = "#20639b"
ACCENT = "#d1495b"


def check_plots() -> None:
    """Says that plots cannot be drawn here, before the work whose figures they would show."""
    need("matplotlib", "train", "Drawing plots")


def _axes(title: str, x_label: str, y_label: str, width: float = 6.4) -> tuple[Any, Any]:
    """A figure with one pair of axes, apart from the window system and from plots of the caller."""
    check_plots()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    return figure, axes


def _save(figure: Any, path: str | Path) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png")
    return path


def plot_groups(
    path: str | Path,
    groups: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    x_label: str,
    metric: str = "MiF",
) -> Path:
    """Bars of one metric by group, with the number of gold labels under each name.

    Args:
        path: The PNG to write.
        groups: What `score_frequency_groups` or `score_categories` returned.
        title: Title of the picture.
        x_label: What the groups are.
        metric: Which figure of each group to show.
    """
    figure, axes = _axes(title, x_label, metric, width=max(6.4, 0.65 * len(groups)))
    heights = [scores[metric] for scores in groups.values()]
    names = [f"{name}\n{scores['gold']:,.0f}" for name, scores in groups.items()]
    axes.bar_label(axes.bar(names, heights, color=COLOUR), fmt="%.2f", fontsize=8)
    axes.set_ylim(0, 1)
    axes.tick_params(axis="x", labelsize=8)
    return _save(figure, path)


def plot_precision_recall(
    path: str | Path,
    recall: Sequence[float] | np.ndarray,
    precision: Sequence[float] | np.ndarray,
    *,
    chosen: Mapping[str, tuple[float, float]] | None = None,
) -> Path:
    """Micro precision against recall over thresholds.

    Args:
        path: The PNG to write.
        recall: Recall at each threshold, as of `sweep_thresholds`.
        precision: Precision at each threshold.
        chosen: Decisions to mark: name → (recall, precision).
    """
    recall, precision = np.asarray(recall), np.asarray(precision)
    if recall.shape != precision.shape:
        raise InputError(f"{len(recall)} values of recall came with {len(precision)} of precision.")
    figure, axes = _axes("Precision and recall over thresholds", "micro recall", "micro precision")
    # A sweep has a point for each score; a picture shows no more than some hundreds.
    shown = np.unique(np.linspace(0, max(len(recall) - 1, 0), 800).astype(int))[: len(recall)]
    axes.plot(recall[shown], precision[shown], color=COLOUR)
    for name, point in (chosen or {}).items():
        axes.plot(*point, "o", color=ACCENT)
        axes.annotate(name, point, textcoords="offset points", xytext=(6, 4), fontsize=8)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    return _save(figure, path)


def plot_label_frequency(path: str | Path, counts: Sequence[int] | np.ndarray) -> Path:
    """Training articles of each label, most frequent first; the title tells how many labels have none."""
    counts = np.sort(np.asarray(counts))[::-1]
    used = counts[counts > 0]
    title = f"Label frequency: {len(used):,} labels used, {len(counts) - len(used):,} never"
    figure, axes = _axes(title, "rank of the label", "articles")
    axes.plot(np.arange(1, len(used) + 1), used, color=COLOUR)
    if len(used):
        axes.set(xscale="log", yscale="log")
    return _save(figure, path)


def plot_candidate_recall(
    path: str | Path, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> Path:
    """Candidate recall against the mean number of candidates; a line for each name → (sizes, recalls)."""
    figure, axes = _axes("Candidate recall", "candidates an article", "share of gold labels proposed")
    for name, (sizes, recalls) in curves.items():
        axes.plot(sizes, recalls, marker="o", markersize=4, label=name)
    axes.set_ylim(top=1)
    if curves:
        axes.legend()
    return _save(figure, path)


def plot_curves(
    path: str | Path, curves: Mapping[str, Sequence[float]], *, title: str, x_label: str, y_label: str
) -> Path:
    """A line for each name → values at 1, 2, 3 and so on."""
    figure, axes = _axes(title, x_label, y_label)
    for name, values in curves.items():
        axes.plot(range(1, len(values) + 1), values, marker="o", markersize=4, label=name)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if curves:
        axes.legend()
    return _save(figure, path)


def plot_training(path: str | Path, history: Sequence[Mapping[str, float]], metric: str = "eval_MiF") -> Path:
    """Losses and one validation metric over steps, from the log of a Trainer (`state.log_history`)."""
    figure, axes = _axes("Training", "step", "loss")
    for key, name in (("loss", "training loss"), ("eval_loss", "validation loss")):
        points = [(entry["step"], entry[key]) for entry in history if key in entry]
        if points:
            axes.plot(*zip(*points, strict=True), label=name)
    points = [(entry["step"], entry[metric]) for entry in history if metric in entry]
    if points:
        right = axes.twinx()
        right.plot(*zip(*points, strict=True), color=ACCENT, marker="o", markersize=4)
        right.set_ylabel(metric.removeprefix("eval_"), color=ACCENT)
    if axes.lines:
        axes.legend()
    return _save(figure, path)
