"""From rows of a prepared dataset to a padded batch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..modeling.processing_kenmesh import pad_batch

MODEL_COLUMNS = ("input_ids", "title_input_ids", "candidate_ids", "candidate_features", "labels")


class KenMeSHCollator:
    """Pads rows of a prepared dataset to the model's inputs; columns the model does not take are left out.

    Args:
        num_features: Numbers that come with each candidate. A row holds them one after the other.
    """

    def __init__(self, num_features: int):
        self.num_features = num_features

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        return pad_batch([self._model_columns(row) for row in rows])

    def _model_columns(self, row: Mapping[str, Any]) -> dict[str, np.ndarray]:
        columns = {name: np.asarray(row[name]) for name in MODEL_COLUMNS if name in row}
        if "candidate_features" in columns:
            columns["candidate_features"] = columns["candidate_features"].reshape(-1, self.num_features)
        return columns
