"""Counts for each label and what they tell: frequency groups, MeSH categories, check tags, a table."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..errors import MismatchError
from .label_sets import LabelSets, ScoredLabels, find_hits
from .metrics import divide, precision_recall_f1

# Lower ends of the groups of training counts; the last one is open.
FREQUENCY_BOUNDS = (1, 100, 1000, 5000)
COLUMNS = ("descriptor", "name", "training", "gold", "predicted", "correct", "P", "R", "F")


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """How often each label is gold, predicted, and both.

    Attributes:
        gold: Articles that carry the label, `(labels,)`.
        predicted: Articles it was predicted for, `(labels,)`.
        correct: Articles with both, `(labels,)`.
        unknown: Gold descriptors of all articles that are no labels of the model.
    """

    gold: np.ndarray
    predicted: np.ndarray
    correct: np.ndarray
    unknown: int = 0

    @classmethod
    def of(cls, scored: ScoredLabels, gold: LabelSets, selected: np.ndarray, num_labels: int) -> Self:
        """Counts one decision (a bool for each entry of `scored`)."""
        hits = find_hits(scored, gold)
        counted = (gold.label_ids, scored.label_ids[selected], scored.label_ids[selected & hits])
        if any(len(ids) and ids.max() >= num_labels for ids in counted):
            raise MismatchError(
                f"Some label ids are not below {num_labels}; scores and labels belong to different models."
            )
        truth, predicted, correct = (np.bincount(ids, minlength=num_labels) for ids in counted)
        return cls(truth, predicted, correct, unknown=gold.total - len(gold.label_ids))


def _group_scores(counts: LabelCounts, labels: np.ndarray, unknown: int = 0) -> dict[str, float]:
    """Micro figures over these labels, and MaF over those of them that are gold or predicted at all."""
    gold, predicted, correct = counts.gold[labels], counts.predicted[labels], counts.correct[labels]
    micro = precision_recall_f1(correct.sum(), predicted.sum(), gold.sum() + unknown)
    scores = dict(zip(("MiP", "MiR", "MiF"), map(float, micro), strict=True))
    used = (gold + predicted) > 0
    macro = precision_recall_f1(correct[used], predicted[used], gold[used])[2]
    scores["MaF"] = float(divide(macro.sum(), used.sum()))
    scores |= {
        "labels": float(len(labels)),
        "gold": float(gold.sum() + unknown),
        "predicted": float(predicted.sum()),
    }
    return scores


def score_frequency_groups(
    counts: LabelCounts, training_counts: np.ndarray, bounds: Sequence[int] = FREQUENCY_BOUNDS
) -> dict[str, dict[str, float]]:
    """Scores labels by how many training articles carry them.

    The first group, "0", holds labels without a training article; gold descriptors unknown to the model are
    missed there too, since they have none either. The others are `[bound, next bound)`.
    """
    training_counts = np.asarray(training_counts)
    if training_counts.shape != counts.gold.shape:
        raise MismatchError(
            f"{len(training_counts)} training counts were given for {len(counts.gold)} labels."
        )
    ends = [*bounds[1:], None]
    names = [
        "0",
        *(f"{low}-{high - 1}" if high else f"{low}+" for low, high in zip(bounds, ends, strict=True)),
    ]
    groups = np.searchsorted(bounds, training_counts, side="right")
    return {
        name: _group_scores(counts, np.flatnonzero(groups == group), counts.unknown if group == 0 else 0)
        for group, name in enumerate(names)
    }


def score_categories(
    counts: LabelCounts, categories: Callable[[int], Iterable[str]]
) -> dict[str, dict[str, float]]:
    """Scores labels by MeSH category: in each category of a label; unknown descriptors are in none.

    Args:
        counts: What was counted.
        categories: Gives the category letters of a label, as `MeshVocabulary.categories`.
    """
    members: dict[str, list[int]] = {}
    for label in range(len(counts.gold)):
        for category in set(categories(label)):
            members.setdefault(category, []).append(label)
    return {name: _group_scores(counts, np.array(members[name])) for name in sorted(members)}


def label_rows(
    counts: LabelCounts, vocabulary: Any, labels: Iterable[int] | None = None, training_counts: Any = None
) -> list[dict[str, Any]]:
    """One row for each label, with the keys of `COLUMNS` (`training` only if counts are given).

    Args:
        counts: What was counted.
        vocabulary: A `MeshVocabulary`: its `uis` and `names`.
        labels: Which labels; by default all that are gold or predicted at least once, most frequent first.
        training_counts: Number of training articles of each label.
    """
    if len(vocabulary.uis) != len(counts.gold):
        raise MismatchError(
            f"The vocabulary has {len(vocabulary.uis)} descriptors, the scores {len(counts.gold)} labels."
        )
    if labels is None:
        used = np.flatnonzero((counts.gold + counts.predicted) > 0)
        labels = used[np.lexsort((used, -counts.predicted[used], -counts.gold[used]))]
    figures = np.stack(precision_recall_f1(counts.correct, counts.predicted, counts.gold))
    rows = []
    for label in labels:
        row: dict[str, Any] = {"descriptor": vocabulary.uis[label], "name": vocabulary.names[label]}
        if training_counts is not None:
            row["training"] = int(training_counts[label])
        row |= {name: int(getattr(counts, name)[label]) for name in ("gold", "predicted", "correct")}
        rows.append(row | dict(zip(("P", "R", "F"), figures[:, label].tolist(), strict=True)))
    return rows


def check_tag_rows(counts: LabelCounts, vocabulary: Any, training_counts: Any = None) -> list[dict[str, Any]]:
    """Rows of `label_rows` for the check tags (Humans, Animals, Male, Female, age groups …), used or not."""
    return label_rows(counts, vocabulary, vocabulary.check_tags, training_counts)


def write_label_rows(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows of `label_rows` as CSV."""
    columns = [column for column in COLUMNS if not rows or column in rows[0]]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{row[key]:.4f}" if key in "PRF" else row[key] for key in columns})
