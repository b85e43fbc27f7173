"""The command `kenmesh`: one function for each command, each a thin layer over the library."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from . import BUNDLED_CHECKPOINT
from ._version import __version__
from .errors import KenMeSHError

# Exit codes: 1 is an error, 2 wrong usage (argparse), 3 a finished job that had to skip some input.
FAILED, SKIPPED = 1, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; an error of ours is one sentence on standard error, not a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = build_parser(next((word for word in argv if word in COMMANDS), None)).parse_args(argv)
    try:
        return arguments.run(arguments) or 0
    except BrokenPipeError:
        # The reader (`head`, say) has gone; nothing is wrong. Keep Python from flushing into the closed pipe.
        sys.stdout = None  # type: ignore[assignment]
        return 0
    except KeyboardInterrupt:
        print("kenmesh: stopped; where a command has --resume, it goes on from here.", file=sys.stderr)
        return 130
    except (KenMeSHError, OSError, ValueError) as error:
        print(f"kenmesh: error: {error}", file=sys.stderr)
        return FAILED


def tag(arguments: argparse.Namespace) -> int:
    """Tags articles given by options or in files."""
    from .records import Article
    from .tagging import TagOptions, print_tags, tag_articles, tag_files

    options = TagOptions(
        model=arguments.model,
        choice=_choice(arguments),
        loading=_loading(arguments) | ({"device": arguments.device} if arguments.device else {}),
        batch_size=arguments.batch_size,
        num_proc=arguments.num_proc,
    )
    given = arguments.title or arguments.abstract
    if bool(given) == bool(arguments.inputs):
        raise KenMeSHError("Give either files to tag, or --title and --abstract of one article.")
    if given:
        article = Article(arguments.title or "", arguments.abstract or "", journal=arguments.journal)
        print_tags(tag_articles([article], options), arguments.format, arguments.export_search)
        return 0
    if arguments.export_search or arguments.format == "table":
        from .articles import ReadReport, read_articles

        report = ReadReport()
        articles = read_articles(
            arguments.inputs, format=arguments.input_format, strict=arguments.strict, report=report
        )
        print_tags(tag_articles(articles, options), arguments.format, arguments.export_search)
        return _tell(report)
    count, report = tag_files(
        arguments.inputs,
        arguments.out,
        options,
        format=arguments.format,
        input_format=arguments.input_format,
        resume=arguments.resume,
        strict=arguments.strict,
        progress=not arguments.quiet,
    )
    if arguments.out != "-" and not arguments.quiet:
        print(f"{count:,} articles tagged → {arguments.out}", file=sys.stderr)
    return _tell(report)


def evaluate(arguments: argparse.Namespace) -> int:
    """Scores a model on labelled articles."""
    from . import load
    from .articles import ReadReport, read_articles
    from .evaluation import evaluate as run

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
    code = _tell(report)
    if not arguments.json:
        from .evaluation import report_lines

        print("\n".join(report_lines(result)))
    else:
        print(json.dumps(result))
    return code


def info(arguments: argparse.Namespace) -> int:
    """Says what a model is, and checks its files."""
    from .info import describe_model, info_lines

    result = describe_model(arguments.model, **_loading(arguments))
    print(json.dumps(result) if arguments.json else "\n".join(info_lines(result)))
    return 0


def prepare(arguments: argparse.Namespace) -> int:
    """Makes a training set from NLM's files."""
    from .prepare import PrepareOptions
    from .prepare import prepare as run

    run(_options(PrepareOptions, arguments), progress=not arguments.quiet)
    return 0


def train(arguments: argparse.Namespace) -> int:
    """Trains a network on a prepared dataset."""
    from .training import PRESETS, TrainingOptions
    from .training import train as run

    changed = {
        item.name: getattr(arguments, item.name)
        for item in fields(TrainingOptions)
        if getattr(arguments, item.name) is not None
    }
    options = TrainingOptions(**(PRESETS[arguments.preset] | changed))
    run(arguments.data, arguments.out, options, resume=arguments.resume, start_from=arguments.start_from)
    return 0


def serve(arguments: argparse.Namespace) -> int:
    """Serves the web page and the REST interface."""
    from .app import serve as run

    run(arguments.model, host=arguments.host, port=arguments.port, **_loading(arguments))
    return 0


def push(arguments: argparse.Namespace) -> int:
    """Sends a model or a prepared dataset to the Hub."""
    from . import hub

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
    from .mesh_update import update_model_folder

    print(update_model_folder(arguments.model, arguments.mesh, arguments.out, trees=arguments.trees))
    return 0


def index_add(arguments: argparse.Namespace) -> int:
    """Adds articles to a model's index."""
    from .indexing import add_to_model_folder

    added, report = add_to_model_folder(arguments.model, arguments.articles, arguments.out)
    print(f"{added:,} articles added → {arguments.out}")
    return _tell(report)


def _choice(arguments: argparse.Namespace) -> dict[str, Any]:
    """The pipeline's options that were given."""
    choice = {
        name: getattr(arguments, name) for name in ("top_k", "threshold", "preset", "include", "exclude")
    }
    choice["check_tags"] = False if arguments.no_check_tags else None
    for_people = arguments.format in (None, "table") and bool(arguments.title or arguments.abstract)
    choice["evidence"] = True if arguments.evidence or for_people or arguments.format == "table" else None
    return {name: value for name, value in choice.items() if value is not None}


def _loading(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("revision", "token") if getattr(arguments, name)}


def _options(kind: type, arguments: argparse.Namespace) -> Any:
    return kind(**{item.name: getattr(arguments, item.name) for item in fields(kind)})


def _tell(report: Any) -> int:
    """Says what was skipped; the exit code tells too."""
    if report.ok:
        return 0
    print(report.summary(), file=sys.stderr)
    return SKIPPED


def _add_options(parser: argparse.ArgumentParser, kind: type, presets: bool = False):
    """An option for each field of a dataclass, described by the field itself."""
    for item in fields(kind):
        default = item.default if item.default is not MISSING else item.default_factory()  # type: ignore[misc]
        settings: dict[str, Any] = {
            "help": f"{item.metadata['help']} (default: {default})",
            "default": default,
        }
        settings |= item.metadata.get("argument", {})
        if presets:
            settings["default"] = None
        if isinstance(default, bool):
            settings["action"] = argparse.BooleanOptionalAction
        elif default is not None and "type" not in settings and "nargs" not in settings:
            settings["type"] = type(default)
        parser.add_argument("--" + item.name.replace("_", "-"), **settings)


def _add_model(parser: argparse.ArgumentParser):
    parser.add_argument(
        "--model",
        default=str(BUNDLED_CHECKPOINT),
        help="folder or Hub name (default: the bundled checkpoint)",
    )
    parser.add_argument("--revision", help="branch, tag or commit on the Hub")
    parser.add_argument("--token", help="Hub token (default: the one of `hf auth login`)")


def _add_tag(parser: argparse.ArgumentParser):
    parser.add_argument("inputs", nargs="*", help="files, folders, or - for standard input")
    parser.add_argument("--title", default="", help="title of one article")
    parser.add_argument("--abstract", default="", help="abstract of one article")
    parser.add_argument("--journal", help="journal of one article")
    _add_model(parser)
    parser.add_argument("--out", default="-", help="output file (default: standard output)")
    parser.add_argument(
        "--format", choices=("jsonl", "csv", "ris", "table"), help="default: by the name of --out"
    )
    parser.add_argument("--input-format", help="format of the inputs (default: found from their content)")
    parser.add_argument(
        "--top-k", type=int, help="most tags of an article; alone: the best, whatever their score"
    )
    parser.add_argument("--threshold", type=float, help="least score of a tag (default: the model's own)")
    parser.add_argument("--preset", choices=("precision", "recall"), help="fewer and surer, or more tags")
    parser.add_argument("--include", nargs="+", metavar="D…|C04…", help="only these descriptors or branches")
    parser.add_argument("--exclude", nargs="+", metavar="D…|C04…", help="never these descriptors or branches")
    parser.add_argument(
        "--no-check-tags", action="store_true", help="leave out Humans, Male, Adult and the like"
    )
    parser.add_argument("--evidence", action="store_true", help="say why each tag was given")
    parser.add_argument("--export-search", choices=("pubmed", "ovid"), help="print a search string instead")
    parser.add_argument("--resume", action="store_true", help="go on with --out after an interruption")
    parser.add_argument("--num-proc", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--batch-size", type=int, default=32, help="articles read at once (default: 32)")
    parser.add_argument("--device", help="cpu, cuda, cuda:1 … (default: a GPU if there is one)")
    _add_reading(parser)


def _add_reading(parser: argparse.ArgumentParser):
    parser.add_argument("--strict", action="store_true", help="stop at the first record that cannot be read")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_evaluate(parser: argparse.ArgumentParser):
    _add_model(parser)
    parser.add_argument("--articles", nargs="+", required=True, help="files of articles with descriptors")
    parser.add_argument("--threshold", type=float, help="least score of a tag (default: the model's own)")
    parser.add_argument("--preset", choices=("precision", "recall"), help="another of the model's thresholds")
    parser.add_argument("--out", type=Path, help="folder for a table of labels and plots")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    parser.add_argument("--batch-size", type=int, default=32, help="articles read at once (default: 32)")
    _add_reading(parser)


def _add_info(parser: argparse.ArgumentParser):
    _add_model(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_prepare(parser: argparse.ArgumentParser):
    from .prepare import PrepareOptions

    _add_options(parser, PrepareOptions)
    parser.add_argument("--quiet", action="store_true", help="no progress bars")


def _add_train(parser: argparse.ArgumentParser):
    from .training import PRESETS, TrainingOptions

    parser.add_argument("data", type=Path, help="folder that `kenmesh prepare` made")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="small", help="options to start from")
    parser.add_argument("--start-from", help="go on from this trained model (fine-tuning)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    _add_options(parser, TrainingOptions, presets=True)


def _add_serve(parser: argparse.ArgumentParser):
    _add_model(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")


def _add_push(parser: argparse.ArgumentParser):
    parser.add_argument("folder", type=Path, help="what to send")
    parser.add_argument("repo_id", help="organisation/name")
    parser.add_argument("--private", action="store_true", default=None, help="make a new repository private")
    parser.add_argument("--revision", help="branch to write to")
    parser.add_argument("--token", help="Hub token (default: the one of `hf auth login`)")
    parser.add_argument("--dry-run", action="store_true", help="list what would go, send nothing")


def _add_push_model(parser: argparse.ArgumentParser):
    _add_push(parser)
    parser.add_argument("--without-index", action="store_true", help="leave the neighbour index out")


def _add_update_mesh(parser: argparse.ArgumentParser):
    parser.add_argument("--model", required=True, help="folder or Hub name of the model to carry over")
    parser.add_argument("--mesh", type=Path, required=True, help="descYYYY.xml, dYYYY.bin or a table")
    parser.add_argument(
        "--trees", type=Path, help="mtreesYYYY.bin, beside an ASCII file without tree numbers"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the new model")


def _add_index(parser: argparse.ArgumentParser):
    parser.add_argument("action", choices=("add",), help="what to do with the index")
    parser.add_argument("--model", required=True, help="folder or Hub name")
    parser.add_argument("--articles", nargs="+", required=True, help="files of articles with descriptors")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model with the larger index")


COMMANDS: dict[str, tuple[Callable, Callable, str, str]] = {
    "tag": (
        tag,
        _add_tag,
        "assign MeSH descriptors to articles",
        """kenmesh tag articles.xml.gz --out tags.jsonl
kenmesh tag exports/ --out tags.ris --preset recall
kenmesh tag --title "Zinc in childhood diarrhoea" --abstract "…" --format table
zcat new.xml.gz | kenmesh tag - --include C04 --no-check-tags > neoplasms.jsonl""",
    ),
    "evaluate": (
        evaluate,
        _add_evaluate,
        "score a model on articles whose descriptors are known",
        """kenmesh evaluate --articles test.jsonl
kenmesh evaluate --model my-model --articles pubmed26n0001.xml.gz --out figures --json""",
    ),
    "info": (info, _add_info, "say what a model is and check its files", "kenmesh info --model org/name"),
    "prepare": (
        prepare,
        _add_prepare,
        "make a training set from PubMed, PMC and MeSH files",
        "kenmesh prepare --pubmed pubmed26n*.xml.gz --mesh desc2026.xml --out data",
    ),
    "train": (
        train,
        _add_train,
        "train on a prepared set",
        """kenmesh train data --out my-model
kenmesh train data --out my-model --resume
kenmesh train newer-data --out newer-model --start-from my-model --learning-rate 3e-4""",
    ),
    "serve": (serve, _add_serve, "serve the web page and the REST interface", "kenmesh serve --port 8080"),
    "push": (push, _add_push_model, "send a model to the Hub", "kenmesh push my-model org/name --dry-run"),
    "push-dataset": (
        push,
        _add_push,
        "send a prepared set to the Hub as Parquet",
        "kenmesh push-dataset data org/name --private",
    ),
    "update-mesh": (
        update_mesh,
        _add_update_mesh,
        "carry a model to another MeSH year",
        "kenmesh update-mesh --model my-model --mesh desc2026.xml --out my-model-2026",
    ),
    "index": (
        index_add,
        _add_index,
        "add articles to a model's index",
        "kenmesh index add --model my-model --articles new.xml.gz --out my-model-new",
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
