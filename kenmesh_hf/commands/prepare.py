"""`kenmesh prepare`: NLM's files → a training set."""

import argparse

from .arguments import add_fields, given_fields
from .command import Command, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..options import PrepareOptions

    add_fields(parser, PrepareOptions)
    parser.add_argument("--quiet", action="store_true", help="no progress bars")


def run(arguments: argparse.Namespace) -> int:
    from ..options import PrepareOptions
    from ..preparing import prepare
    from ..reading import ReadReport

    options = PrepareOptions(**given_fields(PrepareOptions, arguments))
    report = prepare(options, progress=not arguments.quiet)
    sizes = ", ".join(f"{figures['articles']:,} {split}" for split, figures in report["splits"].items())
    print(f"Prepared in {options.out}: {sizes} articles; report.md has the details.")
    print(f"Neighbours: {report['index']}.")
    total = ReadReport()
    for file in report["files"]:
        total.absorb(file)
    return tell(total)


COMMAND = Command(
    name="prepare",
    summary="make a training set from PubMed, PMC and MeSH files",
    examples="kenmesh prepare --pubmed pubmed26n*.xml.gz --mesh desc2026.xml --out data",
    add_arguments=add_arguments,
    run=run,
)
