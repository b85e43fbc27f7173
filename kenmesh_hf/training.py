"""What the stock `Trainer` needs from us to train KenMeSH, and no more."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from safetensors.torch import load_file, save_file
from transformers import EarlyStoppingCallback, PreTrainedModel, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import is_tensorboard_available

from .collator import KenMeSHCollator
from .metrics import trainer_metrics
from .modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from .modeling.processing_kenmesh import KenMeSHProcessor
from .network import START_ARTICLES, build_network, start_evidence
from .options import option

# Labels of each article that validation looks at; an article has about twelve descriptors.
TOP_LABELS = 100


@dataclass
class TrainingOptions:
    """How to train. The defaults are the paper's; `PRESETS` has others."""

    epochs: int = option(20, "most passes over the training articles")
    patience: int = option(3, "stop after this many epochs without a better validation MiF")
    batch_size: int = option(32, "articles in a step of one process")
    learning_rate: float = option(3e-4, "Adam's learning rate in the first epoch")
    decay: float = option(0.9, "the learning rate is multiplied by this after every epoch")
    clip_norm: float = option(5.0, "largest norm of a gradient")
    dropout: float = option(0.2, "dropout right after the word embeddings")
    evidence: bool = option(False, "add what the numbers of a candidate say to its score (beyond the paper)")
    label_bias: bool = option(False, "learn a bias for each label")
    loss_labels: str = option("all", "labels the loss runs over: all, candidates or sampled")
    residual: bool = option(False, "add a convolution's input to its output")
    two_channels: bool = option(True, "off: read title and abstract as one text (ablation a)")
    convolutions: bool = option(True, "off: no dilated convolutions (ablation b)")
    label_graph: bool = option(True, "off: a free vector for each label (ablation c)")
    mask: bool = option(True, "off: every label is attended, candidate or not (ablation d)")
    average: float = option(0.0, "save a running mean of the weights with this decay; 0 for the last weights")
    seed: int = option(1, "random seed")

    def network_settings(self) -> dict[str, Any]:
        """The same choices in the words of `KenMeSHConfig`."""
        return {
            "embedding_dropout": self.dropout,
            "label_bias": self.label_bias,
            "loss_labels": self.loss_labels,
            "residual_convolutions": self.residual,
            "two_channels": self.two_channels,
            "label_encoder": "gcn" if self.label_graph else "free",
            "mask_labels": self.mask,
        } | ({} if self.convolutions else {"dilation_rates": []})


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "small": {
        "epochs": 4,
        "patience": 2,
        "learning_rate": 1e-3,
        "decay": 0.6,
        "evidence": True,
        "label_bias": True,
        "loss_labels": "candidates",
        "residual": True,
        "average": 0.998,
    },
}


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

    def on_train_begin(self, args, state, control, model, **kwargs):
        self.mean = _copy(model)
        if self.resumed_from:
            _load(model, load_file(Path(self.resumed_from, self.FILE)))

    @torch.no_grad()
    def on_step_end(self, args, state, control, model, **kwargs):
        decay = min(self.decay, (1 + state.global_step) / (10 + state.global_step))
        for name, weight in _weights(model):
            self.mean[name].lerp_(weight, 1 - decay)

    def on_epoch_end(self, args, state, control, model, **kwargs):
        self.trained = _copy(model)
        _load(model, self.mean)

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            save_file(self.trained, Path(args.output_dir, f"checkpoint-{state.global_step}", self.FILE))

    def on_epoch_begin(self, args, state, control, model, **kwargs):
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


def keep_best_labels(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`preprocess_logits_for_metrics`: ids and probabilities of the best labels instead of all logits."""
    scores, ids = logits.float().topk(min(TOP_LABELS, logits.shape[1]), dim=1)
    return ids, scores.sigmoid()


def build_optimizer(
    model: torch.nn.Module, options: TrainingOptions, steps_per_epoch: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """Adam, with a learning rate that falls by the same factor after every epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: options.decay ** (step // steps_per_epoch)
    )
    return optimizer, schedule


def training_arguments(out: Path, options: TrainingOptions, **overrides: Any) -> TrainingArguments:
    """The options in the words of `Trainer`."""
    settings: dict[str, Any] = {
        "output_dir": str(out),
        "num_train_epochs": options.epochs,
        "per_device_train_batch_size": options.batch_size,
        "per_device_eval_batch_size": 2 * options.batch_size,
        "max_grad_norm": options.clip_norm,
        "train_sampling_strategy": "group_by_length",
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "save_total_limit": 2,
        "load_best_model_at_end": True,
        "metric_for_best_model": "MiF",
        "greater_is_better": True,
        "logging_steps": 50,
        "label_names": ["labels"],
        "remove_unused_columns": False,
        "report_to": ["tensorboard"] if is_tensorboard_available() else [],
        "bf16": torch.cuda.is_available(),
        "seed": options.seed,
    }
    return TrainingArguments(**(settings | overrides))


def build_trainer(
    model: PreTrainedModel,
    processor: KenMeSHProcessor,
    train: Dataset,
    validation: Dataset,
    out: Path,
    options: TrainingOptions,
    resumed_from: str | None = None,
    **overrides: Any,
) -> Trainer:
    """A stock `Trainer` for rows of a prepared dataset.

    Args:
        model: Network to train.
        processor: Whose tokenizer goes into each checkpoint; its index does not.
        train: Training rows.
        validation: Rows that decide when to stop and which weights are best.
        out: Folder of checkpoints and logs.
        options: How to train.
        resumed_from: Checkpoint whose training goes on.
        **overrides: Further `TrainingArguments`.
    """
    arguments = training_arguments(out, options, **overrides)
    step = options.batch_size * arguments.world_size * arguments.gradient_accumulation_steps
    callbacks: list[TrainerCallback] = [EarlyStoppingCallback(options.patience)]
    if options.average:
        callbacks.append(AverageWeights(options.average, resumed_from))
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=validation,
        data_collator=KenMeSHCollator(len(processor.candidates.FEATURES)),
        processing_class=processor.tokenizer,
        compute_metrics=trainer_metrics(np.asarray(validation["unknown_labels"])),
        preprocess_logits_for_metrics=keep_best_labels,
        optimizers=build_optimizer(model, options, math.ceil(len(train) / step)),
        callbacks=callbacks,
    )


def start_network(
    processor: KenMeSHProcessor, word_vectors: np.ndarray, train: Dataset, options: TrainingOptions
) -> KenMeSHForMeSHIndexing:
    """A fresh network with the dataset's word vectors; evidence starts from a logistic regression."""
    torch.manual_seed(options.seed)
    model = build_network(processor, word_vectors, options.evidence, **options.network_settings())
    if options.evidence:
        chosen = np.random.default_rng(options.seed).permutation(len(train))[:START_ARTICLES]
        start_evidence(model, train.select(np.sort(chosen)))
    return model
