"""`kenmesh serve`: a model → the web page and the REST interface."""

import argparse

from ..errors import InputError
from .arguments import add_model, loading
from .command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        help="processes that tag, with one queue, one set of limits and a shared index (default: 1)",
    )
    parser.add_argument(
        "--desk",
        metavar="FILE",
        help="also serve a desk to review whole files at, kept in this SQLite file (made if it is not there)",
    )


def check(arguments: argparse.Namespace) -> None:
    """Refuses what no machine has."""
    if not 0 <= arguments.port < 1 << 16:
        raise InputError(f"--port is {arguments.port}; it must be in 0 … 65535.")


def run(arguments: argparse.Namespace) -> None:
    from ..serving import serve

    address = {"host": arguments.host, "port": arguments.port}
    choice = {"workers": arguments.workers, "desk": arguments.desk}
    serve(arguments.model, **address, **choice, **loading(arguments))


COMMAND = Command(
    name="serve",
    summary="serve the web page and the REST interface",
    examples="""kenmesh serve --port 8080
kenmesh serve --workers 4
kenmesh serve --desk review.sqlite""",
    add_arguments=add_arguments,
    run=run,
    check=check,
    scores=True,
)
