"""`kenmesh index add`: a model and new articles → a model whose index knows them."""

import argparse
from pathlib import Path

from .arguments import add_hub, loading
from .command import Command, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add",), help="what to do with the index")
    parser.add_argument("--model", required=True, help="folder or Hub name")
    add_hub(parser)
    parser.add_argument("--articles", nargs="+", required=True, help="files of articles with descriptors")
    parser.add_argument(
        "--tune",
        nargs="+",
        default=(),
        metavar="FILE",
        help="other articles with descriptors, to move the thresholds to where the scores are then: needed "
        "where an index of less than a few thousand articles grows a lot",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the model with the larger index")


def run(arguments: argparse.Namespace) -> int:
    from ..updating import add_to_model_folder

    added, report = add_to_model_folder(
        arguments.model, arguments.articles, arguments.out, arguments.tune, **loading(arguments)
    )
    print(f"{added:,} articles added → {arguments.out}")
    return tell(report)


COMMAND = Command(
    name="index",
    summary="add articles to a model's index",
    examples="""kenmesh index add --model my-model --articles new.xml.gz --out my-model-new
kenmesh index add --model my-model --articles new.xml.gz --tune other.xml.gz --out my-model-new""",
    add_arguments=add_arguments,
    run=run,
    scores=True,
)
