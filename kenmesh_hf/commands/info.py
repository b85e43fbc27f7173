"""`kenmesh info`: a model → what it is, and whether its files are intact."""

import argparse
import json

from .arguments import add_model, loading
from .command import FAILED, Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    from ..sharing import describe_model, info_lines

    result = describe_model(arguments.model, **loading(arguments))
    print(json.dumps(result) if arguments.json else "\n".join(info_lines(result)))
    return FAILED if result["problems"] else 0


COMMAND = Command(
    name="info",
    summary="say what a model is and check its files",
    examples="kenmesh info --model org/name",
    add_arguments=add_arguments,
    run=run,
)
