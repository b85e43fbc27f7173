"""`kenmesh prepare`: NLM's files → a training set."""

import argparse

from .arguments import add_engine, add_fields, given_fields, ray_options, silence_ray
from .command import Command, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..options import PrepareOptions, RayPrepareOptions

    add_fields(parser, PrepareOptions)
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    add_engine(parser, RayPrepareOptions)


def run(arguments: argparse.Namespace) -> int:
    from ..options import PrepareOptions, RayPrepareOptions
    from ..preparing import prepare
    from ..reading import ReadReport

    options, progress = PrepareOptions(**given_fields(PrepareOptions, arguments)), not arguments.quiet
    if spread := ray_options(arguments, RayPrepareOptions):
        silence_ray()
        from ..spreading import prepare_on_ray

        report = prepare_on_ray(options, spread, progress)
    else:
        report = prepare(options, progress=progress)
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
    examples="""kenmesh prepare --pubmed pubmed26n*.xml.gz --mesh desc2026.xml --out data
kenmesh prepare --pubmed s3://bucket/pubmed/ --mesh desc2026.xml --out data --engine ray --address auto""",
    add_arguments=add_arguments,
    run=run,
)
