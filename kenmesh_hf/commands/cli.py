"""The command `kenmesh`: reads the line that was typed and runs the command it names."""

import argparse
import codecs
import errno
import gc
import io
import os
import re
import sys
from collections.abc import Sequence

from .._version import __version__
from ..errors import DependencyError, InputError, KenMeSHError
from . import (
    desk,
    evaluate,
    headings,
    index,
    info,
    learn,
    prepare,
    push,
    push_dataset,
    serve,
    tag,
    train,
    update_mesh,
)
from .command import FAILED, Command

_FILES = (
    tag,
    evaluate,
    info,
    prepare,
    train,
    serve,
    desk,
    learn,
    push,
    push_dataset,
    update_mesh,
    index,
    headings,
)
COMMANDS: dict[str, Command] = {file.COMMAND.name: file.COMMAND for file in _FILES}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; an error of ours is one sentence on standard error, not a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    _write_any_character()
    arguments = build_parser(next((word for word in argv if word in COMMANDS), None)).parse_args(argv)
    try:
        return _run(COMMANDS[arguments.command], arguments)
    except BrokenPipeError:
        # The reader (`head`, say) has gone; nothing is wrong. Keep Python from flushing into the closed pipe.
        sys.stdout = None  # type: ignore[assignment]
        return 0
    except KeyboardInterrupt:
        print("kenmesh: stopped; where a command has --resume, it goes on from here.", file=sys.stderr)
        return 130
    except (KenMeSHError, OSError, ValueError) as error:
        print("kenmesh: error:", " ".join(f"{error}{_advice(error)}".split()), file=sys.stderr)
        return FAILED


def _advice(error: BaseException | None) -> str:
    """What to do where a full disk or a limit ended the work, wherever in it that was."""
    if error is None:
        return ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ". Make room or choose another folder; what is whole stays, and the same command goes on."
    return _advice(error.__cause__)


def _write_any_character() -> None:
    """Where an old encoding lacks a letter, a terminal shows "?" for it; files and pipes get UTF-8."""
    if "PYTHONIOENCODING" in os.environ:
        return
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            if not stream.isatty():
                stream.reconfigure(encoding="utf-8", errors=stream.errors)
            elif stream.errors == "strict":
                stream.reconfigure(errors="replace")


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser; only the chosen command has its arguments, since some must load NumPy for theirs."""
    parser = argparse.ArgumentParser(
        prog="kenmesh", description="MeSH indexing of biomedical articles, with reasons."
    )
    parser.add_argument("--version", action="version", version=f"kenmesh_hf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS.values():
        added = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in command.examples.splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if command.name == chosen:
            command.add_arguments(added)
    return parser


def _run(command: Command, arguments: argparse.Namespace) -> int:
    """Runs a command. What is wrong with its options is told before slow modules load."""
    if command.check is not None:
        command.check(arguments)
    if command.scores:
        # Waiting threads of torch sleep: the network's many short steps run several times slower where
        # they spin beside other programs. OpenMP reads this when torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "kenmesh_hf.registration" not in sys.modules:
        _load_modules()
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError
    from transformers.utils import logging

    # Bars for reading a few small files would only stand between a person and the tags.
    logging.disable_progress_bar()
    try:
        return command.run(arguments) or 0
    except StrictDataclassError as error:
        raise InputError(str(error)) from error
    except SafetensorError as error:
        # The library tells what the system said only in words.
        known = re.search(r"\(os error (\d+)\)", str(error))
        raise OSError(int(known[1]), str(error)) if known else InputError(str(error)) from error
    except ImportError as error:
        if (error.name or "").startswith("kenmesh_hf"):
            raise
        raise DependencyError(str(error)) from error


def _load_modules() -> None:
    """Registers with transformers. Looking for garbage among so many new modules takes a third longer."""
    gc.disable()
    try:
        from .. import registration  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()
