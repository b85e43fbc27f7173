"""The cut between tags and no tags: one threshold for all labels or one for each, kept beside the weights."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from transformers.utils import cached_file

THRESHOLDS_NAME = "thresholds.safetensors"
THRESHOLDS_FORMAT = "kenmesh-thresholds-2"


class Thresholds:
    """Decides which scored labels become tags: those whose score is at least their threshold.

    Args:
        global_threshold: Threshold of every label without one of its own.
        per_label: A threshold for each label, `(labels,)`, or None where one for all is better.
        presets: Other global thresholds by name, such as "precision" and "recall".
        held_out: Micro-F that the ways to choose a threshold reached on articles they were not chosen on.
    """

    def __init__(
        self,
        global_threshold: float = 0.5,
        per_label: np.ndarray | None = None,
        presets: Mapping[str, float] | None = None,
        held_out: Mapping[str, float] | None = None,
    ) -> None:
        self.global_threshold = float(global_threshold)
        self.per_label = None if per_label is None else np.ascontiguousarray(per_label, np.float32)
        self.presets = {name: float(value) for name, value in (presets or {}).items()}
        self.held_out = {name: float(value) for name, value in (held_out or {}).items()}
        if not all(math.isfinite(value) for value in (self.global_threshold, *self.presets.values())):
            raise ValueError("Global thresholds must be finite numbers.")
        if self.per_label is not None and (self.per_label.ndim != 1 or np.isnan(self.per_label).any()):
            raise ValueError("Thresholds of labels must be one number for each label, none of them NaN.")

    def of(self, label_ids: np.ndarray, preset: str | None = None) -> np.ndarray:
        """Thresholds of these labels; a preset replaces the labels' own."""
        label_ids = np.asarray(label_ids)
        if preset is not None:
            if preset not in self.presets:
                known = ", ".join(sorted(self.presets)) or "none"
                raise ValueError(
                    f"There is no preset {preset!r} among these thresholds; known presets: {known}."
                )
            return np.full(label_ids.shape, self.presets[preset], np.float32)
        if self.per_label is None:
            return np.full(label_ids.shape, self.global_threshold, np.float32)
        if label_ids.size and label_ids.max() >= len(self.per_label):
            raise ValueError(
                f"Label {label_ids.max()} has no threshold: there are {len(self.per_label)}. "
                "The thresholds belong to a model with fewer labels."
            )
        return self.per_label[label_ids]

    def select(self, label_ids: np.ndarray, scores: np.ndarray, preset: str | None = None) -> np.ndarray:
        """Tells for each scored label whether it becomes a tag (bool, same shape)."""
        return np.asarray(scores, np.float32) >= self.of(label_ids, preset)

    def save_pretrained(self, directory: str | Path) -> None:
        """Writes `thresholds.safetensors`; the numbers that are no tensor stand in its header."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        numbers = {
            "global_threshold": self.global_threshold,
            "presets": self.presets,
            "held_out": self.held_out,
        }
        tensors = {} if self.per_label is None else {"per_label": self.per_label}
        # One entry only: the order of several is another one each time, and so would be the checksum.
        header = {THRESHOLDS_FORMAT: json.dumps(numbers, sort_keys=True)}
        save_file(tensors, folder / THRESHOLDS_NAME, metadata=header)

    @classmethod
    def from_pretrained(cls, name_or_path: str | Path, **hub_options: Any) -> Self:
        """Reads what `save_pretrained` wrote, from a folder or a Hub repository.

        Args:
            name_or_path: Folder or name of the repository.
            **hub_options: `revision`, `token`, `cache_dir` and others of `cached_file`.
        """
        path = cached_file(str(name_or_path), THRESHOLDS_NAME, **hub_options)
        try:
            with safe_open(path, framework="np") as file:
                header = file.metadata() or {}
                per_label = file.get_tensor("per_label") if "per_label" in file.keys() else None
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged ({error}); save or download the model again.") from error
        if THRESHOLDS_FORMAT not in header:
            raise ValueError(f"{path} is no thresholds file of this version (wanted {THRESHOLDS_FORMAT}).")
        return cls(per_label=per_label, **json.loads(header[THRESHOLDS_FORMAT]))
