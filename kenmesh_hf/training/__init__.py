"""A prepared dataset enters, a model folder leaves; between them works the stock `Trainer`."""

from ..options import TrainingOptions, options_for
from .collator import KenMeSHCollator
from .encoder import TextEncoder, encoder_processor, load_encoder, parameter_groups, tokens_for
from .headings import fit_headings
from .network import LABEL_BUFFERS, build_network, label_inputs, label_names, start_evidence
from .trainer import (
    SUMMARY_FILE,
    build_optimizer,
    build_trainer,
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
    "TextEncoder",
    "TrainingOptions",
    "build_network",
    "build_optimizer",
    "build_trainer",
    "encoder_processor",
    "fit_headings",
    "keep_best_labels",
    "label_inputs",
    "label_names",
    "load_encoder",
    "options_for",
    "parameter_groups",
    "start_evidence",
    "start_network",
    "tokens_for",
    "train",
    "training_arguments",
    "training_rows",
]
