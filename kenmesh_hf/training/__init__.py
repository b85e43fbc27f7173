"""A prepared dataset enters, a model folder leaves; between them works the stock `Trainer`."""

from ..options import TrainingOptions, options_for
from .collator import KenMeSHCollator
from .network import LABEL_BUFFERS, build_network, label_inputs, label_names, start_evidence
from .trainer import (
    SUMMARY_FILE,
    build_optimizer,
    keep_best_labels,
    start_network,
    train,
    training_arguments,
    training_rows,
)

__all__ = [
    "KenMeSHCollator",
    "LABEL_BUFFERS",
    "SUMMARY_FILE",
    "TrainingOptions",
    "build_network",
    "build_optimizer",
    "keep_best_labels",
    "label_inputs",
    "label_names",
    "options_for",
    "start_evidence",
    "start_network",
    "train",
    "training_arguments",
    "training_rows",
]
