"""`kenmesh learn`: a desk and a model → a model that has learned, and what that is worth."""

import argparse
import json
from pathlib import Path

from .arguments import add_model, loading
from .command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("desk", type=Path, help="SQLite file of the desk")
    add_model(parser)
    parser.add_argument("--out", type=Path, required=True, help="new folder for the model that has learned")
    parser.add_argument(
        "--collection",
        action="append",
        metavar="NAME",
        help="name or number (default: all; may be given again)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object last")


def run(arguments: argparse.Namespace) -> int:
    from ..desk import Desk, find_collection, learn, learning_lines

    desk = Desk(arguments.desk, new=False)
    try:
        names = arguments.collection
        collections = [find_collection(desk, name) for name in names] if names else None
        report = learn(desk, arguments.model, arguments.out, collections, **loading(arguments))
    finally:
        desk.close()
    print(json.dumps(report) if arguments.json else "\n".join(learning_lines(report)))
    return 0


COMMAND = Command(
    name="learn",
    summary="let a model learn from what was decided at a desk",
    examples="""kenmesh learn review.sqlite --out my-model-2
kenmesh learn review.sqlite --model my-model --collection export.nbib --out my-model-2""",
    add_arguments=add_arguments,
    run=run,
    scores=True,
)
