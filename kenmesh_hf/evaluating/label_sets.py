"""Labels of many articles as flat arrays with offsets: gold sets, scored candidates, the hits among them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..errors import InputError, MismatchError

# Entries handled at once: a block stays in the processor's cache, which makes sorting several times faster.
BLOCK_ENTRIES = 1 << 16


def ragged_arange(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Positions `starts[i] … starts[i] + lengths[i] - 1` of all rows, one row after the other."""
    first = np.cumsum(lengths) - lengths
    return np.repeat(starts - first, lengths) + np.arange(int(lengths.sum()))


def to_offsets(lengths: np.ndarray) -> np.ndarray:
    """Offsets `(rows + 1,)` of rows with these lengths."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def row_blocks(offsets: np.ndarray, entries: int = BLOCK_ENTRIES) -> Iterator[tuple[int, int]]:
    """Ranges of whole rows that hold about `entries` entries; a longer row is a block of its own."""
    start, rows = 0, len(offsets) - 1
    while start < rows:
        stop = int(np.searchsorted(offsets, offsets[start] + entries, side="right")) - 1
        stop = min(max(stop, start + 1), rows)
        yield start, stop
        start = stop


def _check_rows(offsets: np.ndarray, label_ids: np.ndarray) -> None:
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or np.any(np.diff(offsets) < 0):
        raise InputError("Offsets of label rows must start at 0 and never decrease.")
    if label_ids.ndim != 1 or offsets[-1] != len(label_ids):
        raise InputError(f"Offsets end at {offsets[-1]} but there are {label_ids.size} label ids.")
    if len(label_ids) and label_ids.min() < 0:
        raise InputError("Label ids must not be negative; drop padding or use from_padded.")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """A set of labels for each article: `label_ids[offsets[i]:offsets[i + 1]]`.

    Rows are kept in order of label id and without repeats (a citation may carry one descriptor several
    times).

    Attributes:
        offsets: Where each article starts, `(articles + 1,)`.
        label_ids: Labels of all articles, `(total,)`.
        unknown: How many more gold descriptors each article has that are no labels of the model,
            `(articles,)`. No prediction can hit them, so they count as missed. None means that there are
            none.
    """

    offsets: np.ndarray
    label_ids: np.ndarray
    unknown: np.ndarray | None = None

    def __post_init__(self) -> None:
        offsets, label_ids = np.asarray(self.offsets, np.int64), np.asarray(self.label_ids, np.int32)
        _check_rows(offsets, label_ids)
        articles = len(offsets) - 1
        unknown = np.zeros(articles, np.int64) if self.unknown is None else np.asarray(self.unknown, np.int64)
        if unknown.shape != (articles,) or np.any(unknown < 0):
            raise InputError(f"Counts of unknown labels must be {articles} numbers of 0 or more.")
        stride = int(label_ids.max()) + 1 if len(label_ids) else 1
        rows = np.repeat(np.arange(articles), np.diff(offsets))
        rows, labels = np.divmod(np.unique(rows * stride + label_ids), stride)
        object.__setattr__(self, "offsets", to_offsets(np.bincount(rows, minlength=articles)))
        object.__setattr__(self, "label_ids", labels.astype(np.int32))
        object.__setattr__(self, "unknown", unknown)

    @classmethod
    def from_lists(cls, rows: Iterable[Sequence[int | None]], num_labels: int) -> Self:
        """Takes label ids of each article; None and ids outside `0 … num_labels - 1` count as unknown."""
        known, unknown = [], []
        for row in rows:
            inside = [label for label in row if label is not None and 0 <= label < num_labels]
            outside = {label for label in row if label is not None and not 0 <= label < num_labels}
            known.append(inside)
            unknown.append(len(outside) + sum(label is None for label in row))
        flat = np.fromiter((label for row in known for label in row), np.int32)
        return cls(
            to_offsets(np.array([len(row) for row in known], np.int64)), flat, np.array(unknown, np.int64)
        )

    @classmethod
    def from_padded(cls, labels: np.ndarray, unknown: np.ndarray | None = None) -> Self:
        """Takes a `(articles, longest)` array of label ids padded with negative numbers."""
        labels = np.asarray(labels)
        real = labels >= 0
        return cls(to_offsets(real.sum(1)), labels[real], unknown)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """How many labels each article has, unknown ones included, `(articles,)`."""
        return np.diff(self.offsets) + self.unknown

    @property
    def rows(self) -> np.ndarray:
        """Article of each entry of `label_ids`, `(total,)`."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def total(self) -> int:
        """How many labels all articles have together, unknown ones included."""
        return int(self.sizes.sum())

    def take(self, articles: np.ndarray) -> Self:
        """The sets of these articles only, in this order."""
        lengths = np.diff(self.offsets)[articles]
        entries = ragged_arange(self.offsets[:-1][articles], lengths)
        return type(self)(to_offsets(lengths), self.label_ids[entries], self.sizes[articles] - lengths)


@dataclass(frozen=True, eq=False)
class ScoredLabels:
    """Scored candidate labels of each article: `label_ids[offsets[i]:offsets[i + 1]]`, `scores` likewise.

    Rows are kept from the best score to the worst, equal scores in order of label id, whatever the order they
    came in: a rank never depends on how candidates were found. A label may stand only once in a row.

    Attributes:
        offsets: Where each article starts, `(articles + 1,)`.
        label_ids: Candidates of all articles, `(total,)`.
        scores: Their scores, `(total,)`: finite, higher is better; probabilities where thresholds are to be
            kept.
    """

    offsets: np.ndarray
    label_ids: np.ndarray
    scores: np.ndarray

    def __post_init__(self) -> None:
        offsets, label_ids = np.asarray(self.offsets, np.int64), np.array(self.label_ids, np.int32)
        scores = np.array(self.scores, np.float32)
        _check_rows(offsets, label_ids)
        if scores.shape != label_ids.shape:
            raise InputError(
                f"{label_ids.size} label ids came with {scores.size} scores; each label needs one."
            )
        if not np.isfinite(scores).all():
            raise InputError("Scores must be finite numbers; check the model's outputs for NaN or infinity.")
        _sort_rows(offsets, label_ids, scores)
        for name, value in (("offsets", offsets), ("label_ids", label_ids), ("scores", scores)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_lists(cls, label_ids: Iterable[Sequence[int]], scores: Iterable[Sequence[float]]) -> Self:
        """Takes label ids and scores of each article."""
        ids = [np.asarray(row, np.int32) for row in label_ids]
        values = [np.asarray(row, np.float32) for row in scores]
        if [row.shape for row in ids] != [row.shape for row in values]:
            raise InputError(
                "Label ids and scores of some article differ in number; each label needs one score."
            )
        flat_ids = np.concatenate([np.empty(0, np.int32), *ids])
        return cls(
            to_offsets(np.array([len(row) for row in ids], np.int64)), flat_ids, np.concatenate([[], *values])
        )

    @classmethod
    def from_padded(cls, label_ids: np.ndarray, scores: np.ndarray) -> Self:
        """Takes `(articles, k)` arrays; places with a negative id or a score of -infinity are padding."""
        label_ids, scores = np.asarray(label_ids), np.asarray(scores)
        if label_ids.shape != scores.shape:
            raise InputError(
                f"Label ids of shape {label_ids.shape} came with scores of shape {scores.shape}."
            )
        real = (label_ids >= 0) & (scores != -np.inf)
        return cls(to_offsets(real.sum(1)), label_ids[real], scores[real])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows_of(self, entries: np.ndarray) -> np.ndarray:
        """Article of each of these entries (positions in `label_ids`)."""
        return np.searchsorted(self.offsets, entries, side="right") - 1

    def chosen(self, selected: np.ndarray) -> LabelSets:
        """The labels that a decision kept, `selected` being a bool for each entry."""
        entries = np.flatnonzero(selected)
        lengths = np.bincount(self.rows_of(entries), minlength=len(self))
        return LabelSets(to_offsets(lengths), self.label_ids[entries])

    def take(self, articles: np.ndarray) -> Self:
        """The candidates of these articles only, in this order."""
        lengths = np.diff(self.offsets)[articles]
        entries = ragged_arange(self.offsets[:-1][articles], lengths)
        return type(self)(to_offsets(lengths), self.label_ids[entries], self.scores[entries])


def _sort_rows(offsets: np.ndarray, label_ids: np.ndarray, scores: np.ndarray) -> None:
    """Sorts each row in place by falling score, then label; refuses a label that stands twice in a row."""
    lengths = np.diff(offsets)
    stride = int(label_ids.max()) + 1 if len(label_ids) else 1
    for start, stop in row_blocks(offsets):
        block = slice(offsets[start], offsets[stop])
        rows = np.repeat(np.arange(stop - start), lengths[start:stop])
        keys = np.sort(rows * stride + label_ids[block])
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            row, label = divmod(int(keys[twice[0]]), stride)
            raise InputError(f"Label {label} is scored twice for article {start + row}; keep one score.")
        order = np.lexsort((label_ids[block], -scores[block], rows))
        label_ids[block] = label_ids[block][order]
        scores[block] = scores[block][order]


def find_hits(scored: ScoredLabels, gold: LabelSets) -> np.ndarray:
    """Tells for each scored entry whether it is a gold label of its article, `(total,)` bool."""
    if len(scored) != len(gold):
        raise MismatchError(
            f"Scores of {len(scored)} articles cannot be judged by gold labels of {len(gold)} articles."
        )
    hits = np.zeros(len(scored.label_ids), bool)
    stride = 1 + max((int(ids.max()) for ids in (scored.label_ids, gold.label_ids) if len(ids)), default=0)
    lengths, gold_lengths = np.diff(scored.offsets), np.diff(gold.offsets)
    for start, stop in row_blocks(scored.offsets):
        local = np.arange(stop - start)
        right = np.repeat(local, gold_lengths[start:stop]) * stride
        right += gold.label_ids[gold.offsets[start] : gold.offsets[stop]]
        if not len(right):
            continue
        block = slice(scored.offsets[start], scored.offsets[stop])
        keys = np.repeat(local, lengths[start:stop]) * stride + scored.label_ids[block]
        places = np.minimum(np.searchsorted(right, keys), len(right) - 1)
        hits[block] = right[places] == keys
    return hits
