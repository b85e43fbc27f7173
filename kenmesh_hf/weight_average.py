"""A running mean of the weights: often better than the last weights, and free."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import TrainerCallback

from .stages import unfinished


class AverageWeights(TrainerCallback):
    """Evaluates and saves a running mean of the weights, and trains on with the weights themselves.

    Args:
        decay: Share of the old mean in the new one; smaller in the first steps, when weights still move far.
        resumed_from: Checkpoint whose training goes on.
    """

    FILE = "training_weights.safetensors"

    def __init__(self, decay: float, resumed_from: str | None = None):
        self.decay = decay
        self.resumed_from = resumed_from
        self.mean: dict[str, torch.Tensor] = {}
        self.trained: dict[str, torch.Tensor] = {}

    def on_train_begin(self, args, state, control, *, model=None, **kwargs):
        self.mean = _copy(model)
        if self.resumed_from:
            _load(model, load_file(Path(self.resumed_from, self.FILE)))

    @torch.no_grad()
    def on_step_end(self, args, state, control, *, model=None, **kwargs):
        decay = min(self.decay, (1 + state.global_step) / (10 + state.global_step))
        for name, weight in _weights(model):
            self.mean[name].lerp_(weight, 1 - decay)

    def on_epoch_end(self, args, state, control, *, model=None, **kwargs):
        self.trained = _copy(model)
        _load(model, self.mean)

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            with unfinished(Path(args.output_dir, f"checkpoint-{state.global_step}", self.FILE)) as path:
                save_file(self.trained, path)

    def on_epoch_begin(self, args, state, control, *, model=None, **kwargs):
        if self.trained:
            _load(model, self.trained)


def _weights(model: torch.nn.Module):
    return [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]


def _copy(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in _weights(model)}


@torch.no_grad()
def _load(model: torch.nn.Module, values: dict[str, torch.Tensor]):
    for name, weight in _weights(model):
        weight.copy_(values[name])
