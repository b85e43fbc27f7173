"""`kenmesh push`: a model folder → the Hub."""

import argparse

from .arguments import add_push, push_settings
from .command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_push(parser)
    parser.add_argument("--without-index", action="store_true", help="leave the neighbour index out")


def run(arguments: argparse.Namespace) -> None:
    from ..sharing import push

    settings = push_settings(arguments)
    sent = push(arguments.folder, arguments.repo_id, with_index=not arguments.without_index, **settings)
    print("\n".join(sent.lines()))


COMMAND = Command(
    name="push",
    summary="send a model to the Hub",
    examples="kenmesh push my-model org/name --dry-run",
    add_arguments=add_arguments,
    run=run,
)
