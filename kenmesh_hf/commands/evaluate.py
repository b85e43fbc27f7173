"""`kenmesh evaluate`: a model and labelled articles → figures."""

import argparse
import json
from pathlib import Path

from .arguments import add_batch_size, add_headings, add_model, add_reading, loading
from .command import Command, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--articles", nargs="+", required=True, help="files of articles with descriptors")
    add_headings(parser)
    parser.add_argument("--threshold", type=float, help="least score of a tag (default: the model's own)")
    parser.add_argument("--preset", choices=("precision", "recall"), help="another of the model's thresholds")
    parser.add_argument("--out", type=Path, help="folder for a table of labels and plots")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    parser.add_argument(
        "--record", metavar="NAME", help="keep the figures under this name in the model's results.json"
    )
    add_batch_size(parser)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..evaluating import evaluate, record_result, report_lines
    from ..reading import ReadReport, join_headings, read_articles, read_heading_files
    from ..sharing import load

    report, known = ReadReport(), read_heading_files(arguments.headings)
    articles = read_articles(arguments.articles, strict=arguments.strict, report=report)
    result = evaluate(
        load(arguments.model, **loading(arguments)),
        (join_headings(article, known) for article in articles),
        threshold=arguments.threshold,
        preset=arguments.preset,
        batch_size=arguments.batch_size,
        out=arguments.out,
        progress=not arguments.quiet,
    )
    if arguments.record:
        record_result(arguments.model, arguments.record, result)
    code = tell(report)
    print(json.dumps(result) if arguments.json else "\n".join(report_lines(result)))
    return code


COMMAND = Command(
    name="evaluate",
    summary="score a model on articles whose descriptors are known",
    examples="""kenmesh evaluate --articles test.jsonl
kenmesh evaluate --model my-model --articles pubmed26n0001.xml.gz --out figures --json""",
    add_arguments=add_arguments,
    run=run,
    scores=True,
)
