"""`kenmesh push-dataset`: a prepared set → the Hub."""

import argparse

from .arguments import add_push, push_settings
from .command import Command


def run(arguments: argparse.Namespace) -> None:
    from ..sharing import push_dataset

    sent = push_dataset(arguments.folder, arguments.repo_id, **push_settings(arguments))
    print("\n".join(sent.lines()))


COMMAND = Command(
    name="push-dataset",
    summary="send a prepared set to the Hub as Parquet",
    examples="kenmesh push-dataset data org/name --private",
    add_arguments=add_push,
    run=run,
)
