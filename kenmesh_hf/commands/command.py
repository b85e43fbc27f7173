"""What a command is, and how it ends."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..reading import ReadReport

# Exit codes: 1 is an error, 2 wrong usage (argparse), 3 a finished job that had to skip some input.
FAILED, SKIPPED = 1, 3


@dataclass(frozen=True)
class Command:
    """One command of `kenmesh`.

    Its file imports slow modules only where it runs, so that help and wrong usage are told at once.

    Attributes:
        name: What is typed.
        summary: One line for `kenmesh --help`.
        examples: Lines as they are typed, for `kenmesh NAME --help`.
        add_arguments: Adds its arguments to a parser.
        run: Does the work; gives the exit code, None for 0.
        check: Refuses options that contradict each other, before slow modules load.
        scores: Whether it may run the network over articles.
    """

    name: str
    summary: str
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    check: Callable[[argparse.Namespace], None] | None = None
    scores: bool = False


def tell(report: "ReadReport") -> int:
    """Says what was skipped; the exit code tells too."""
    if report.ok:
        return 0
    print(report.summary(), file=sys.stderr)
    return SKIPPED
