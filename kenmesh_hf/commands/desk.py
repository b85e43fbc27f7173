"""`kenmesh desk`: what is on a desk → files to hand in, a report, a backup; and files onto it."""

import argparse
import json
import sys
from pathlib import Path

from .command import Command, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    for name, summary in {
        "export": "hand in what was decided",
        "report": "tell how far proposals and decisions agree",
        "backup": "copy the desk, whatever is being done at it",
        "open": "put the articles of files on the desk, to be tagged when it is served",
    }.items():
        added = actions.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        added.add_argument("desk", type=Path, help="SQLite file of the desk")
        if name in ("export", "report"):
            added.add_argument(
                "--collection",
                action="append",
                metavar="NAME",
                help="name or number (default: all; may be given again)",
            )
        _ADD[name](added)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, help="file to write (default: standard output)")
    parser.add_argument(
        "--format", help="jsonl, csv, ris, nbib, pubmed or ovid (default: by the file's name)"
    )
    parser.add_argument("--all", action="store_true", help="also what is to do or skipped, as things stand")


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE.html", help="write a page with plots, too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("to", type=Path, help="new file")


def _add_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", type=Path, help="articles in any format; each file is a collection"
    )
    parser.add_argument("--who", default="kenmesh", help="who opens them (default: kenmesh)")


_ADD = {"export": _add_export, "report": _add_report, "backup": _add_backup, "open": _add_open}


def run(arguments: argparse.Namespace) -> int:
    from ..desk import Desk

    desk = Desk(arguments.desk, new=arguments.action == "open")
    try:
        return _RUN[arguments.action](desk, arguments)
    finally:
        desk.close()


def _export(desk, arguments: argparse.Namespace) -> int:  # type: ignore[no-untyped-def]
    from ..desk import FORMATS, hand_in
    from ..errors import InputError
    from ..files import unfinished

    suffix = arguments.out.suffix.lower().lstrip(".") if arguments.out else ""
    if suffix in ("gz", "bz2", "xz"):
        raise InputError(
            f"{arguments.out} would not be compressed; choose a name without .{suffix}, compress it later."
        )
    format = arguments.format or (suffix if suffix in FORMATS else "jsonl")
    rows = hand_in(desk, format, _collections(desk, arguments), only_done=not arguments.all)
    if arguments.out is None:
        sys.stdout.writelines(rows)
        return 0
    with unfinished(arguments.out) as part, open(part, "w", encoding="utf-8", newline="") as file:
        file.writelines(rows)
    print(f"handed in → {arguments.out}")
    return 0


def _report(desk, arguments: argparse.Namespace) -> int:  # type: ignore[no-untyped-def]
    from ..desk import report_lines, score_agreement, write_report

    report = score_agreement(desk, _collections(desk, arguments))
    if arguments.out:
        write_report(report, arguments.out)
    print(json.dumps(report, ensure_ascii=False) if arguments.json else "\n".join(report_lines(report)))
    return 0


def _backup(desk, arguments: argparse.Namespace) -> int:  # type: ignore[no-untyped-def]
    desk.back_up(arguments.to)
    print(f"{arguments.desk} → {arguments.to}")
    return 0


def _open(desk, arguments: argparse.Namespace) -> int:  # type: ignore[no-untyped-def]
    from ..desk import open_collection
    from ..errors import InputError
    from ..reading import ReadReport, read_articles

    total = ReadReport()
    # Before the first is on the desk, since giving the same line again would put it there twice.
    for path in arguments.files:
        if str(path) != "-" and not path.exists():
            raise InputError(f"{path} does not exist, so nothing was put on the desk. Check the path.")
    for path in arguments.files:
        report = ReadReport()
        articles = list(read_articles(path, report=report))
        if not articles:
            told = report.examples.items()
            reasons = "; ".join(f"{reason}: {place}" for reason, places in told for place in places)
            raise InputError(f"There is no article to put on the desk in {path}. {reasons}".strip())
        open_collection(desk, path.name, arguments.who, articles, report.skipped.total())
        print(f"{path.name}: {len(articles):,} article{'' if len(articles) == 1 else 's'} on the desk")
        total.absorb(report.to_dict())
    return tell(total)


def _collections(desk, arguments: argparse.Namespace) -> list[int] | None:  # type: ignore[no-untyped-def]
    from ..desk import find_collection

    return [find_collection(desk, name) for name in arguments.collection] if arguments.collection else None


_RUN = {"export": _export, "report": _report, "backup": _backup, "open": _open}

COMMAND = Command(
    name="desk",
    summary="hand in, report on, or back up what was decided at a desk",
    examples="""kenmesh desk export review.sqlite --out done.ris
kenmesh desk export review.sqlite --collection export.nbib --all --format pubmed
kenmesh desk report review.sqlite --out agreement.html
kenmesh desk backup review.sqlite monday.sqlite
kenmesh desk open review.sqlite large.xml.gz""",
    add_arguments=add_arguments,
    run=run,
)
