"""`kenmesh tag`: articles given by options or in files → tags."""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from ..errors import InputError
from .arguments import add_batch_size, add_engine, add_model, add_reading, loading, ray_options, silence_ray
from .command import Command, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", nargs="*", help="files, folders (their files by name), or - for standard input"
    )
    parser.add_argument("--title", default="", help="title of one article")
    parser.add_argument("--abstract", default="", help="abstract of one article")
    parser.add_argument("--journal", help="journal of one article")
    add_model(parser)
    parser.add_argument(
        "--out", default="-", help="output file (default: standard output); with --engine a folder"
    )
    parser.add_argument(
        "--format",
        choices=("jsonl", "csv", "ris", "nbib", "table", "parquet"),
        help="default: by the name of --out, else jsonl; for one article table; parquet with --engine only",
    )
    parser.add_argument("--input-format", help="format of the inputs (default: found from their content)")
    parser.add_argument(
        "--top-k", type=int, help="most tags of an article; alone: the best, whatever their score"
    )
    parser.add_argument("--threshold", type=float, help="least score of a tag (default: the model's own)")
    parser.add_argument("--preset", choices=("precision", "recall"), help="fewer and surer, or more tags")
    for name, which in (("--include", "only"), ("--exclude", "never")):
        parser.add_argument(
            name,
            nargs="+",
            action="extend",
            metavar="D…|C04…",
            help=f"{which} these descriptors or branches, with all that is below them",
        )
    parser.add_argument(
        "--no-check-tags", action="store_true", help="leave out Humans, Male, Adult and the like"
    )
    parser.add_argument(
        "--no-qualifiers", action="store_true", help="tell descriptors and major topics, no qualifiers"
    )
    parser.add_argument("--evidence", action="store_true", help="say why each tag was given")
    parser.add_argument(
        "--min-candidates",
        type=int,
        default=0,
        metavar="N",
        help="score at least N labels for each article; the most frequent ones fill up (default: 0)",
    )
    parser.add_argument("--export-search", choices=("pubmed", "ovid"), help="write a search string instead")
    parser.add_argument("--resume", action="store_true", help="go on with --out after an interruption")
    parser.add_argument("--num-proc", type=int, default=1, help="processes (default: 1)")
    add_batch_size(parser)
    parser.add_argument("--device", help="cpu, cuda, cuda:1 … (default: a GPU if there is one)")
    add_reading(parser)
    from ..options import RayOptions

    add_engine(parser, RayOptions)


def check(arguments: argparse.Namespace) -> None:
    """Refuses options that contradict each other; settles what depends on several of them."""
    for value in [*(arguments.include or ()), *(arguments.exclude or ())]:
        if not re.fullmatch(r"[A-Z]|[A-Z]\d\d[\d.]*|D\d{6,9}", value):
            raise InputError(
                f"{value!r} is neither a descriptor (D006801) nor a branch (C04); "
                "files go before --include and --exclude."
            )
    _check_engine(arguments)
    if bool(arguments.title or arguments.abstract) == bool(arguments.inputs):
        raise InputError("Give either files to tag, or --title and --abstract of one article.")
    if arguments.resume and (arguments.out == "-" or arguments.export_search or not arguments.inputs):
        raise InputError("Only the tags of files, written to a file, can be resumed: give inputs and --out.")
    if not arguments.inputs and arguments.out == "-" and not arguments.export_search:
        arguments.format = arguments.format or "table"
        arguments.evidence = arguments.evidence or arguments.format == "table"
    format = arguments.format or Path(arguments.out).suffix.lstrip(".")
    if arguments.evidence and format in ("csv", "ris", "nbib"):
        raise InputError("CSV, RIS and MEDLINE have no place for --evidence; write jsonl or table.")


def _check_engine(arguments: argparse.Namespace) -> None:
    from ..options import RayOptions

    spread = ray_options(arguments, RayOptions) is not None
    if not spread and arguments.format == "parquet":
        raise InputError("Parquet is written with --engine ray, a file for each input; else choose jsonl.")
    if not spread:
        return
    if arguments.export_search or not arguments.inputs or arguments.out == "-":
        raise InputError("With --engine ray files are tagged into a folder: give inputs and --out.")
    if arguments.format not in (None, "jsonl", "parquet"):
        raise InputError(f"With --engine ray --format is jsonl or parquet, not {arguments.format}.")
    if arguments.num_proc != 1:
        raise InputError("With --engine ray the number of processes is --workers; leave out --num-proc.")


def run(arguments: argparse.Namespace) -> int:
    from ..options import RayOptions
    from ..reading import Article, ReadReport
    from ..tagging import TagOptions, read_inputs, search_for, tag_files, write_tags

    options = TagOptions(
        model=arguments.model,
        choice=_choice(arguments),
        loading=loading(arguments) | ({"device": arguments.device} if arguments.device else {}),
        batch_size=arguments.batch_size,
        num_proc=arguments.num_proc,
        min_candidates=arguments.min_candidates,
    )
    report, progress = ReadReport(), not arguments.quiet
    if spread := ray_options(arguments, RayOptions):
        silence_ray()
        from ..spreading import tag_files_on_ray

        count, report = tag_files_on_ray(
            arguments.inputs, arguments.out, options, ray_options=spread, **_how(arguments)
        )
        _tell_count(count, arguments)
        return tell(report)
    one = (
        [] if arguments.inputs else [Article(arguments.title, arguments.abstract, journal=arguments.journal)]
    )
    if arguments.export_search:
        articles = one or read_inputs(arguments.inputs, report, arguments.input_format, arguments.strict)
        _print(search_for(articles, options, arguments.export_search, progress and not one), arguments.out)
    elif one:
        write_tags(one, arguments.out, options, format=arguments.format, progress=False)
    else:
        count, report = tag_files(arguments.inputs, arguments.out, options, **_how(arguments))
        _tell_count(count, arguments)
    return tell(report)


def _how(arguments: argparse.Namespace) -> dict[str, Any]:
    """How files are tagged, on whatever engine."""
    names = ("format", "input_format", "resume", "strict")
    return {name: getattr(arguments, name) for name in names} | {"progress": not arguments.quiet}


def _tell_count(count: int, arguments: argparse.Namespace) -> None:
    if arguments.out != "-" and not arguments.quiet:
        print(f"{count:,} articles tagged → {arguments.out}", file=sys.stderr)


def _choice(arguments: argparse.Namespace) -> dict[str, Any]:
    """The pipeline's options that were given."""
    choice = {
        name: getattr(arguments, name) for name in ("top_k", "threshold", "preset", "include", "exclude")
    }
    choice["check_tags"] = False if arguments.no_check_tags else None
    choice["qualifiers"] = False if arguments.no_qualifiers else None
    choice["evidence"] = True if arguments.evidence else None
    return {name: value for name, value in choice.items() if value is not None}


def _print(text: str, out: str) -> None:
    """To standard output or a file."""
    if out == "-":
        print(text)
    else:
        Path(out).write_text(text + "\n", encoding="utf-8")


COMMAND = Command(
    name="tag",
    summary="assign MeSH descriptors to articles",
    examples="""kenmesh tag articles.xml.gz --out tags.jsonl
kenmesh tag exports/ --out tags.ris --preset recall
kenmesh tag --title "Zinc in childhood diarrhoea" --abstract "…" --format table
kenmesh tag pubmed/ --out tags/ --engine ray --workers 8 --resume
zcat new.xml.gz | kenmesh tag - --include C04 --no-check-tags > neoplasms.jsonl""",
    add_arguments=add_arguments,
    run=run,
    check=check,
    scores=True,
)
