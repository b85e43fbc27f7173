"""The command `kenmesh`: one function for each command, each a thin layer over the library."""

import argparse
import gc
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import InputError, KenMeSHError
from . import arguments as cli_options

# Exit codes: 1 is an error, 2 wrong usage (argparse), 3 a finished job that had to skip some input.
FAILED, SKIPPED = 1, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; an error of ours is one sentence on standard error, not a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = build_parser(next((word for word in argv if word in COMMANDS), None)).parse_args(argv)
    try:
        return _run(arguments)
    except BrokenPipeError:
        # The reader (`head`, say) has gone; nothing is wrong. Keep Python from flushing into the closed pipe.
        sys.stdout = None  # type: ignore[assignment]
        return 0
    except KeyboardInterrupt:
        print("kenmesh: stopped; where a command has --resume, it goes on from here.", file=sys.stderr)
        return 130
    except (KenMeSHError, OSError, ValueError) as error:
        print("kenmesh: error:", " ".join(str(error).split()), file=sys.stderr)
        return FAILED


def _run(arguments: argparse.Namespace) -> int:
    """Runs the command that was chosen. What is wrong with its options is told before slow modules load."""
    if arguments.run is tag:
        _check_tag(arguments)
    if arguments.run in (tag, evaluate, serve):
        # Waiting threads of torch sleep: the network's many short steps run several times slower where
        # they spin beside other programs. OpenMP reads this when torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if f"{__package__}.registration" not in sys.modules:
        _load_modules()
    from huggingface_hub.errors import StrictDataclassError
    from transformers.utils import logging

    # Bars for reading a few small files would only stand between a person and the tags.
    logging.disable_progress_bar()
    try:
        return arguments.run(arguments) or 0
    except StrictDataclassError as error:
        raise InputError(str(error)) from error


def _load_modules() -> None:
    """Registers with transformers. Looking for garbage among so many new modules takes a third longer."""
    gc.disable()
    try:
        from .. import registration  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


def tag(arguments: argparse.Namespace) -> int:
    """Tags articles given by options or in files."""
    from ..reading.records import Article, ReadReport
    from ..tagging.articles import TagOptions, read_inputs, search_for, tag_files, write_tags

    options = TagOptions(
        model=arguments.model,
        choice=_choice(arguments),
        loading=_loading(arguments) | ({"device": arguments.device} if arguments.device else {}),
        batch_size=arguments.batch_size,
        num_proc=arguments.num_proc,
        min_candidates=arguments.min_candidates,
    )
    report, progress = ReadReport(), not arguments.quiet
    one = (
        [] if arguments.inputs else [Article(arguments.title, arguments.abstract, journal=arguments.journal)]
    )
    if arguments.export_search:
        articles = one or read_inputs(arguments.inputs, report, arguments.input_format, arguments.strict)
        _print(search_for(articles, options, arguments.export_search, progress and not one), arguments.out)
    elif one:
        write_tags(one, arguments.out, options, format=arguments.format, progress=False)
    else:
        count, report = tag_files(
            arguments.inputs,
            arguments.out,
            options,
            format=arguments.format,
            input_format=arguments.input_format,
            resume=arguments.resume,
            strict=arguments.strict,
            progress=progress,
        )
        if arguments.out != "-" and progress:
            print(f"{count:,} articles tagged → {arguments.out}", file=sys.stderr)
    return _tell(report)


def _check_tag(arguments: argparse.Namespace) -> None:
    """Refuses options that contradict each other; settles what depends on several of them."""
    for value in [*(arguments.include or ()), *(arguments.exclude or ())]:
        if not re.fullmatch(r"[A-Z]|[A-Z]\d\d[\d.]*|D\d{6,9}", value):
            raise InputError(
                f"{value!r} is neither a descriptor (D006801) nor a branch (C04); "
                "files go before --include and --exclude."
            )
    if bool(arguments.title or arguments.abstract) == bool(arguments.inputs):
        raise InputError("Give either files to tag, or --title and --abstract of one article.")
    if arguments.resume and (arguments.out == "-" or arguments.export_search or not arguments.inputs):
        raise InputError("Only the tags of files, written to a file, can be resumed: give inputs and --out.")
    if not arguments.inputs and arguments.out == "-" and not arguments.export_search:
        arguments.format = arguments.format or "table"
        arguments.evidence = arguments.evidence or arguments.format == "table"
    if arguments.evidence and (arguments.format or Path(arguments.out).suffix.lstrip(".")) in ("csv", "ris"):
        raise InputError("CSV and RIS have no place for --evidence; write jsonl or table.")


def evaluate(arguments: argparse.Namespace) -> int:
    """Scores a model on labelled articles."""
    from .. import load
    from ..evaluating.evaluation import evaluate as run
    from ..evaluating.evaluation import record_result, report_lines
    from ..reading.articles import ReadReport, read_articles

    report = ReadReport()
    articles = read_articles(arguments.articles, strict=arguments.strict, report=report)
    result = run(
        load(arguments.model, **_loading(arguments)),
        articles,
        threshold=arguments.threshold,
        preset=arguments.preset,
        batch_size=arguments.batch_size,
        out=arguments.out,
        progress=not arguments.quiet,
    )
    if arguments.record:
        record_result(arguments.model, arguments.record, result)
    code = _tell(report)
    print(json.dumps(result) if arguments.json else "\n".join(report_lines(result)))
    return code


def info(arguments: argparse.Namespace) -> int:
    """Says what a model is, and checks its files."""
    from ..sharing.info import describe_model, info_lines

    result = describe_model(arguments.model, **_loading(arguments))
    print(json.dumps(result) if arguments.json else "\n".join(info_lines(result)))
    return FAILED if result["problems"] else 0


def prepare(arguments: argparse.Namespace) -> int:
    """Makes a training set from NLM's files."""
    from ..preparing.preparation import PrepareOptions
    from ..preparing.preparation import prepare as run

    run(_options(PrepareOptions, arguments), progress=not arguments.quiet)
    return 0


def train(arguments: argparse.Namespace) -> int:
    """Trains a network on a prepared dataset."""
    from ..training.trainer import PRESETS, TrainingOptions
    from ..training.trainer import train as run

    changed = {
        item.name: getattr(arguments, item.name)
        for item in fields(TrainingOptions)
        if getattr(arguments, item.name) is not None
    }
    options = TrainingOptions(**(PRESETS[arguments.preset] | changed))
    run(options, arguments.data, arguments.out, resume=arguments.resume, start_from=arguments.start_from)
    return 0


def serve(arguments: argparse.Namespace) -> int:
    """Serves the web page and the REST interface."""
    from ..serving.app import serve as run

    run(arguments.model, host=arguments.host, port=arguments.port, **_loading(arguments))
    return 0


def push(arguments: argparse.Namespace) -> int:
    """Sends a model or a prepared dataset to the Hub."""
    from ..sharing import pushing as hub

    settings: dict[str, Any] = {
        "private": arguments.private,
        "revision": arguments.revision,
        "token": arguments.token,
        "dry_run": arguments.dry_run,
    }
    if arguments.command == "push":
        settings["with_index"] = not arguments.without_index
    send = hub.push if arguments.command == "push" else hub.push_dataset
    print("\n".join(send(arguments.folder, arguments.repo_id, **settings).lines()))
    return 0


def update_mesh(arguments: argparse.Namespace) -> int:
    """Carries a model to another MeSH year."""
    from ..updating.mesh_update import update_model_folder

    loading = _loading(arguments)
    print(update_model_folder(arguments.model, arguments.mesh, arguments.out, arguments.trees, **loading))
    return 0


def index_add(arguments: argparse.Namespace) -> int:
    """Adds articles to a model's index."""
    from ..indexing.growth import add_to_model_folder

    added, report = add_to_model_folder(
        arguments.model, arguments.articles, arguments.out, arguments.tune, **_loading(arguments)
    )
    print(f"{added:,} articles added → {arguments.out}")
    return _tell(report)


def _choice(arguments: argparse.Namespace) -> dict[str, Any]:
    """The pipeline's options that were given."""
    choice = {
        name: getattr(arguments, name) for name in ("top_k", "threshold", "preset", "include", "exclude")
    }
    choice["check_tags"] = False if arguments.no_check_tags else None
    choice["evidence"] = True if arguments.evidence else None
    return {name: value for name, value in choice.items() if value is not None}


def _loading(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("revision", "token") if getattr(arguments, name)}


def _options(kind: type, arguments: argparse.Namespace) -> Any:
    return kind(**{item.name: getattr(arguments, item.name) for item in fields(kind)})


def _print(text: str, out: str) -> None:
    """To standard output or a file."""
    if out == "-":
        print(text)
    else:
        Path(out).write_text(text + "\n", encoding="utf-8")


def _tell(report: Any) -> int:
    """Says what was skipped; the exit code tells too."""
    if report.ok:
        return 0
    print(report.summary(), file=sys.stderr)
    return SKIPPED


COMMANDS: dict[str, tuple[Callable, Callable, str, str]] = {
    "tag": (
        tag,
        cli_options.add_tag,
        "assign MeSH descriptors to articles",
        """kenmesh tag articles.xml.gz --out tags.jsonl
kenmesh tag exports/ --out tags.ris --preset recall
kenmesh tag --title "Zinc in childhood diarrhoea" --abstract "…" --format table
zcat new.xml.gz | kenmesh tag - --include C04 --no-check-tags > neoplasms.jsonl""",
    ),
    "evaluate": (
        evaluate,
        cli_options.add_evaluate,
        "score a model on articles whose descriptors are known",
        """kenmesh evaluate --articles test.jsonl
kenmesh evaluate --model my-model --articles pubmed26n0001.xml.gz --out figures --json""",
    ),
    "info": (
        info,
        cli_options.add_info,
        "say what a model is and check its files",
        "kenmesh info --model org/name",
    ),
    "prepare": (
        prepare,
        cli_options.add_prepare,
        "make a training set from PubMed, PMC and MeSH files",
        "kenmesh prepare --pubmed pubmed26n*.xml.gz --mesh desc2026.xml --out data",
    ),
    "train": (
        train,
        cli_options.add_train,
        "train on a prepared set",
        """kenmesh train data --out my-model
kenmesh train data --out my-model --resume
kenmesh train newer-data --out newer-model --start-from my-model --learning-rate 3e-4""",
    ),
    "serve": (
        serve,
        cli_options.add_serve,
        "serve the web page and the REST interface",
        "kenmesh serve --port 8080",
    ),
    "push": (
        push,
        cli_options.add_push_model,
        "send a model to the Hub",
        "kenmesh push my-model org/name --dry-run",
    ),
    "push-dataset": (
        push,
        cli_options.add_push,
        "send a prepared set to the Hub as Parquet",
        "kenmesh push-dataset data org/name --private",
    ),
    "update-mesh": (
        update_mesh,
        cli_options.add_update_mesh,
        "carry a model to another MeSH year",
        "kenmesh update-mesh --model my-model --mesh desc2026.xml --out my-model-2026",
    ),
    "index": (
        index_add,
        cli_options.add_index,
        "add articles to a model's index",
        """kenmesh index add --model my-model --articles new.xml.gz --out my-model-new
kenmesh index add --model my-model --articles new.xml.gz --tune other.xml.gz --out my-model-new""",
    ),
}


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser; options are added for the chosen command only, since some take theirs from slow modules."""
    parser = argparse.ArgumentParser(
        prog="kenmesh", description="MeSH indexing of biomedical articles, with reasons."
    )
    parser.add_argument("--version", action="version", version=f"kenmesh_hf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (run, add, summary, examples) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == chosen:
            add(command)
        command.set_defaults(run=run)
    return parser
