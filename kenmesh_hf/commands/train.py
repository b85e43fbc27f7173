"""`kenmesh train`: a prepared set → a model."""

import argparse
from pathlib import Path

from .arguments import add_fields, given_fields
from .command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..options import PRESETS, TrainingOptions

    parser.add_argument("data", type=Path, help="folder that `kenmesh prepare` made")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    parser.add_argument(
        "--preset", choices=tuple(PRESETS), default="small", help="options to start from (small)"
    )
    parser.add_argument("--start-from", help="go on from this trained model (fine-tuning)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    add_fields(parser, TrainingOptions, PRESETS)


def run(arguments: argparse.Namespace) -> None:
    from ..options import TrainingOptions, options_for
    from ..training import train

    options = options_for(arguments.preset, **given_fields(TrainingOptions, arguments))
    train(options, arguments.data, arguments.out, resume=arguments.resume, start_from=arguments.start_from)


COMMAND = Command(
    name="train",
    summary="train on a prepared set",
    examples="""kenmesh train data --out my-model
kenmesh train data --out my-model --resume
kenmesh train newer-data --out newer-model --start-from my-model --learning-rate 3e-4
kenmesh train data --out my-model --encoder organisation/name --word-path --gradient-checkpointing""",
    add_arguments=add_arguments,
    run=run,
)
