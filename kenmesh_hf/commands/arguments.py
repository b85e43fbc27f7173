"""Options of the commands; those of preparing and training come from the dataclasses that describe them."""

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .. import BUNDLED_CHECKPOINT


def _add_options(
    parser: argparse.ArgumentParser, kind: type, presets: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """An option for each field of a dataclass, described by the field itself.

    Args:
        parser: Of the command.
        kind: The dataclass.
        presets: Values by the name of a preset; what was not given is then None.
    """
    usual, types = kind(), get_type_hints(kind)
    for item in fields(kind):
        default = getattr(usual, item.name)
        shown = " ".join(map(str, default)) if isinstance(default, list) else default
        said = "" if shown in (None, "") else f" (default: {shown})"
        if presets:
            values = (f"{name}: {preset.get(item.name, shown)}" for name, preset in presets.items())
            said = f" ({', '.join(values)})"
        settings: dict[str, Any] = {
            "help": item.metadata["help"].replace("%", "%%") + said,
            "default": None if presets else default,
        }
        if isinstance(default, bool):
            settings["action"] = argparse.BooleanOptionalAction
        elif isinstance(default, list):
            settings |= {"nargs": "+", "metavar": "…"}
        elif get_origin(types[item.name]) is Literal:
            settings["choices"] = get_args(types[item.name])
        elif default is not None:
            settings["type"] = type(default)
        parser.add_argument("--" + item.name.replace("_", "-"), **settings)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        default=str(BUNDLED_CHECKPOINT),
        help="folder or Hub name (default: the bundled checkpoint)",
    )
    _add_hub(parser)


def _add_hub(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--revision", help="branch, tag or commit on the Hub")
    parser.add_argument("--token", help="Hub token (default: the one of `hf auth login`)")


def add_tag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", nargs="*", help="files, folders (their files by name), or - for standard input"
    )
    parser.add_argument("--title", default="", help="title of one article")
    parser.add_argument("--abstract", default="", help="abstract of one article")
    parser.add_argument("--journal", help="journal of one article")
    _add_model(parser)
    parser.add_argument("--out", default="-", help="output file (default: standard output)")
    parser.add_argument(
        "--format",
        choices=("jsonl", "csv", "ris", "table"),
        help="default: by the name of --out, else jsonl; for one article table",
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
    parser.add_argument("--batch-size", type=int, default=32, help="articles read at once (default: 32)")
    parser.add_argument("--device", help="cpu, cuda, cuda:1 … (default: a GPU if there is one)")
    _add_reading(parser)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strict", action="store_true", help="stop at the first record that cannot be read")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument("--articles", nargs="+", required=True, help="files of articles with descriptors")
    parser.add_argument("--threshold", type=float, help="least score of a tag (default: the model's own)")
    parser.add_argument("--preset", choices=("precision", "recall"), help="another of the model's thresholds")
    parser.add_argument("--out", type=Path, help="folder for a table of labels and plots")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    parser.add_argument(
        "--record", metavar="NAME", help="keep the figures under this name in the model's results.json"
    )
    parser.add_argument("--batch-size", type=int, default=32, help="articles read at once (default: 32)")
    _add_reading(parser)


def add_info(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_prepare(parser: argparse.ArgumentParser) -> None:
    from ..prepare_options import PrepareOptions

    _add_options(parser, PrepareOptions)
    parser.add_argument("--quiet", action="store_true", help="no progress bars")


def add_train(parser: argparse.ArgumentParser) -> None:
    from ..training.trainer import PRESETS, TrainingOptions

    parser.add_argument("data", type=Path, help="folder that `kenmesh prepare` made")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    parser.add_argument(
        "--preset", choices=tuple(PRESETS), default="small", help="options to start from (small)"
    )
    parser.add_argument("--start-from", help="go on from this trained model (fine-tuning)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    _add_options(parser, TrainingOptions, PRESETS)


def add_serve(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")


def add_push(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="what to send")
    parser.add_argument("repo_id", help="organisation/name")
    parser.add_argument("--private", action="store_true", default=None, help="make a new repository private")
    parser.add_argument("--revision", help="branch to write to")
    parser.add_argument("--token", help="Hub token (default: the one of `hf auth login`)")
    parser.add_argument("--dry-run", action="store_true", help="list what would go, send nothing")


def add_push_model(parser: argparse.ArgumentParser) -> None:
    add_push(parser)
    parser.add_argument("--without-index", action="store_true", help="leave the neighbour index out")


def add_update_mesh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="folder or Hub name of the model to carry over")
    _add_hub(parser)
    parser.add_argument("--mesh", type=Path, required=True, help="descYYYY.xml, dYYYY.bin or a table")
    parser.add_argument(
        "--trees", type=Path, help="mtreesYYYY.bin, beside an ASCII file without tree numbers"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the new model")


def add_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add",), help="what to do with the index")
    parser.add_argument("--model", required=True, help="folder or Hub name")
    _add_hub(parser)
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
