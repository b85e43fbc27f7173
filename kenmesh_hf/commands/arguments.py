"""Arguments that several commands have, and those made from a dataclass whose fields describe themselves."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ..errors import InputError
from ..files import BUNDLED_CHECKPOINT

if TYPE_CHECKING:
    from ..options import RayOptions

Ray = TypeVar("Ray", bound="RayOptions")


def add_fields(
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
        else:
            kinds = get_args(types[item.name]) or (types[item.name],)
            settings["type"] = next(kind for kind in kinds if kind is not type(None))
        parser.add_argument("--" + item.name.replace("_", "-"), **settings)


def given_fields(kind: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of a dataclass that were given."""
    values = {item.name: getattr(arguments, item.name) for item in fields(kind)}
    return {name: value for name, value in values.items() if value is not None}


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model, the bundled one by default."""
    parser.add_argument(
        "--model",
        default=str(BUNDLED_CHECKPOINT),
        help="folder or Hub name (default: the bundled checkpoint)",
    )
    add_hub(parser)


def add_hub(parser: argparse.ArgumentParser) -> None:
    """Which version of a model on the Hub, and who asks."""
    parser.add_argument("--revision", help="branch, tag or commit on the Hub")
    add_token(parser)


def add_token(parser: argparse.ArgumentParser) -> None:
    """Who asks the Hub."""
    parser.add_argument("--token", help="Hub token (default: the one of `hf auth login`)")


def loading(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_hub` that were given, for `load` and `find_model`."""
    return {name: getattr(arguments, name) for name in ("revision", "token") if getattr(arguments, name)}


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How articles are read."""
    parser.add_argument("--strict", action="store_true", help="stop at the first record that cannot be read")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def add_headings(parser: argparse.ArgumentParser) -> None:
    """What else is known of the headings of articles."""
    parser.add_argument(
        "--headings",
        nargs="+",
        default=(),
        metavar="FILE",
        help="files with headings of the same citations, joined by PMID: major topics and qualifiers",
    )


def add_batch_size(parser: argparse.ArgumentParser) -> None:
    """How many articles the network reads at once."""
    parser.add_argument("--batch-size", type=int, default=32, help="articles read at once (default: 32)")


def add_engine(parser: argparse.ArgumentParser, kind: "type[RayOptions]") -> None:
    """Whether work is spread over a Ray cluster, over which, and how."""
    parser.add_argument(
        "--engine", choices=("ray",), help="spread the files over the workers of a Ray, here or on a cluster"
    )
    add_fields(parser, kind)


def ray_options(arguments: argparse.Namespace, kind: "type[Ray]") -> "Ray | None":
    """The options of `add_engine`; None where nothing is spread."""
    given = given_fields(kind, arguments)
    if arguments.engine is None:
        usual = kind()
        if wrong := next((name for name, value in given.items() if value != getattr(usual, name)), None):
            raise InputError(f"--{wrong.replace('_', '-')} is for --engine ray; give both.")
        return None
    options = kind(**given)
    options.check()
    return options


def silence_ray() -> None:
    """Ray would print what its machines say, twenty lines for one that is lost; our own lines are enough.

    It reads this when it is imported.
    """
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")


def add_push(parser: argparse.ArgumentParser) -> None:
    """What goes to the Hub, and where."""
    parser.add_argument("folder", type=Path, help="what to send")
    parser.add_argument("repo_id", help="organisation/name")
    parser.add_argument("--private", action="store_true", default=None, help="make a new repository private")
    parser.add_argument("--revision", help="branch to write to")
    add_token(parser)
    parser.add_argument("--dry-run", action="store_true", help="list what would go, send nothing")


def push_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_push` in the words of `push` and `push_dataset`."""
    return {name: getattr(arguments, name) for name in ("private", "revision", "token", "dry_run")}
