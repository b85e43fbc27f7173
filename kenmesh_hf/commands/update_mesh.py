"""`kenmesh update-mesh`: a model and another MeSH year → a model."""

import argparse
from pathlib import Path

from .arguments import add_hub, loading
from .command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="folder or Hub name of the model to carry over")
    add_hub(parser)
    parser.add_argument("--mesh", type=Path, required=True, help="descYYYY.xml, dYYYY.bin or a table")
    parser.add_argument(
        "--trees", type=Path, help="mtreesYYYY.bin, beside an ASCII file without tree numbers"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the new model")


def run(arguments: argparse.Namespace) -> None:
    from ..updating import update_model_folder

    options = loading(arguments)
    print(update_model_folder(arguments.model, arguments.mesh, arguments.out, arguments.trees, **options))


COMMAND = Command(
    name="update-mesh",
    summary="carry a model to another MeSH year",
    examples="kenmesh update-mesh --model my-model --mesh desc2026.xml --out my-model-2026",
    add_arguments=add_arguments,
    run=run,
)
