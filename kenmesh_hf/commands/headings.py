"""`kenmesh headings`: a model and the articles of its index → one that tells majors and qualifiers."""

import argparse
from pathlib import Path

from .arguments import add_headings, add_hub, loading
from .command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="folder or Hub name")
    add_hub(parser)
    parser.add_argument(
        "--articles", nargs="+", required=True, help="files of the articles in the model's index"
    )
    add_headings(parser)
    parser.add_argument(
        "--validation",
        nargs="+",
        default=(),
        metavar="FILE",
        help="other articles with headings, on which thresholds are chosen",
    )
    parser.add_argument(
        "--qualifiers", help="MeSH file that says which qualifier may go with which descriptor"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the model that tells them")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(arguments: argparse.Namespace) -> int:
    from ..mesh import read_qualifiers, read_vocabulary
    from ..updating import add_headings_to_model_folder

    given = arguments.qualifiers and read_qualifiers(vocabulary=read_vocabulary(arguments.qualifiers))
    count = add_headings_to_model_folder(
        arguments.model,
        arguments.articles,
        arguments.out,
        arguments.validation,
        arguments.headings,
        given or None,
        not arguments.quiet,
        **loading(arguments),
    )
    print(f"Headings of {count:,} indexed articles are known → {arguments.out}")
    return 0


COMMAND = Command(
    name="headings",
    summary="teach a model major topics and qualifiers",
    examples="""kenmesh headings --model my-model --articles pubmed26n*.xml.gz --out told
kenmesh headings --model my-model --articles train.jsonl --headings headings.jsonl.gz --out told""",
    add_arguments=add_arguments,
    run=run,
    scores=True,
)
