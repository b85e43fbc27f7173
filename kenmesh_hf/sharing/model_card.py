"""Cards for the Hub, filled from what was measured: `results.json` in, the metadata and tables of a card out.

A card is its own template: text between `<!-- results: NAME -->` and `<!-- /results -->`, and the metadata on
top, are written anew from the results; everything else is prose and stays.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from ..errors import InputError

RESULTS_FILE = "results.json"
TASK = "mesh-indexing"
TAGS = (
    "mesh",
    "medline",
    "pubmed",
    "biomedical",
    "subject-indexing",
    "multi-label",
    "text-classification",
    "kenmesh",
)
NOT_MEASURED = "Not measured yet."

# Metric of the package → its type on the Hub and its name for readers.
METRICS = {
    "MiF": ("f1", "micro F1"),
    "MiP": ("precision", "micro precision"),
    "MiR": ("recall", "micro recall"),
    "EBF": ("f1", "example-based F1, of mean precision and recall"),
    "EBF_mean": ("f1", "example-based F1, mean over articles"),
    "MaF": ("f1", "macro F1"),
    "P@1": ("precision", "precision at 1"),
    "P@5": ("precision", "precision at 5"),
    "P@10": ("precision", "precision at 10"),
    "R@10": ("recall", "recall at 10"),
    "nDCG@10": ("ndcg", "nDCG at 10"),
    "HiF": ("f1", "hierarchical F1"),
    "candidate_recall": ("recall", "candidate recall"),
    "candidate_size": ("size", "candidates an article"),
}

_METADATA = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- /results -->)", re.DOTALL)


def read_results(folder: str | os.PathLike) -> dict[str, Any]:
    """What was measured for the model or dataset in a folder; empty where nothing was."""
    path = Path(folder) / RESULTS_FILE
    if not path.exists():
        return {}
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); write it again with `kenmesh evaluate`.") from error
    if not isinstance(results, dict):
        raise InputError(f"{path} must hold one JSON object; write it again with `kenmesh evaluate`.")
    return results


def write_results(folder: str | os.PathLike, results: Mapping[str, Any]) -> None:
    """Merges results into `results.json`; an evaluation replaces the one of the same name."""
    old = read_results(folder)
    evaluations = {evaluation["name"]: evaluation for evaluation in _evaluations(old)}
    evaluations |= {evaluation["name"]: evaluation for evaluation in _evaluations(results)}
    merged = {**old, **results, "evaluations": list(evaluations.values())}
    text = json.dumps(merged, indent=2, ensure_ascii=False) + "\n"
    (Path(folder) / RESULTS_FILE).write_text(text, encoding="utf-8", newline="\n")


def card_template() -> str:
    """The card of the bundled checkpoint, which serves every other model as template."""
    here = Path(__file__).parent.parent
    for path in (here / "checkpoint" / "README.md", here.parent / "model_card.md"):
        if path.exists():
            return path.read_text(encoding="utf-8")
    raise InputError("This installation has no model card; put a README.md into the model's folder.")


def has_results_blocks(card: str) -> bool:
    """Whether a card can be filled; one written by hand from top to bottom cannot."""
    return _BLOCK.search(card) is not None


def render_model_card(results: Mapping[str, Any], template: str, *, repo_id: str | None = None) -> str:
    """Fills a card.

    Args:
        results: `model_name`, `mesh_year`, `num_labels`, `num_parameters`, `datasets` (ids on the Hub),
            `training` (`articles`, `index_articles`, `sources`, `split_rule`) and `evaluations`, a list of
            `name`, `dataset`, `split`, `metrics` and `weak_spots` (`what`, `F1`, `gold`). All may be missing.
        template: A card with `results` blocks, filled or not.
        repo_id: Where the model will be found on the Hub.
    """
    writers: dict[str, Callable[[], str]] = {
        "usage": lambda: _usage(repo_id or results.get("repo_id")),
        "model": lambda: _facts(results),
        "training": lambda: _training(results.get("training", {})),
        "evaluation": lambda: _evaluation(_evaluations(results)),
        "weak_spots": lambda: _weak_spots(_evaluations(results)),
    }
    return fill_card(template, _model_metadata(results).to_yaml(), writers)


def fill_card(template: str, metadata: str, writers: Mapping[str, Callable[[], str]]) -> str:
    """Puts a metadata block on top of a card and calls for each `results` block the writer of its name."""

    def fill(block: re.Match[str]) -> str:
        if block[2] not in writers:
            raise InputError(f"The card has a block {block[2]!r}; there are only {', '.join(writers)}.")
        return f"{block[1]}{writers[block[2]]()}\n{block[3]}"

    return f"---\n{metadata}\n---\n" + _BLOCK.sub(fill, _METADATA.sub("", template))


def _evaluations(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    evaluations = results.get("evaluations", [])
    for evaluation in evaluations:
        metrics = evaluation.get("metrics")
        if not isinstance(metrics, Mapping) or not isinstance(evaluation.get("name"), str):
            raise InputError("Every entry of `evaluations` in the results needs a `name` and `metrics`.")
        if not isinstance(metrics.get("candidate_recall"), int | float):
            raise InputError(
                f"The evaluation {evaluation['name']!r} has no candidate recall; scores need it beside them."
            )
    return evaluations


def _model_metadata(results: Mapping[str, Any]) -> ModelCardData:
    found = [
        EvalResult(
            task_type="text-classification",
            task_name="MeSH indexing",
            dataset_type=evaluation.get("dataset", "pubmed"),
            dataset_name=evaluation["name"],
            dataset_split=evaluation.get("split"),
            metric_type=kind,
            metric_name=title,
            metric_value=round(evaluation["metrics"][name], 4),
        )
        for evaluation in _evaluations(results)
        for name, (kind, title) in METRICS.items()
        if name in evaluation["metrics"]
    ]
    return ModelCardData(
        language="en",
        license="apache-2.0",
        library_name="transformers",
        pipeline_tag=TASK,
        tags=list(TAGS),
        datasets=list(results.get("datasets", ["ncbi/pubmed"])),
        metrics=["f1", "precision", "recall"],
        model_name=results.get("model_name", "KenMeSH"),
        eval_results=found or None,
    )


def _usage(repo_id: str | None) -> str:
    return f"""```python
import kenmesh_hf
from transformers import pipeline

tagger = pipeline("{TASK}", model="{repo_id or "path/to/model"}")
for tag in tagger({{"title": "Aspirin after stroke", "abstract": "…", "journal": "Stroke"}}, evidence=True):
    print(tag["ui"], tag["name"], round(tag["score"], 2), tag["evidence"])
```"""


def count(number: float) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,.0f}"


def table(rows: list[list[str]]) -> str:
    """Rows, the first of them the head, as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _facts(results: Mapping[str, Any]) -> str:
    titles = {"mesh_year": "MeSH year", "num_labels": "descriptors", "num_parameters": "parameters"}
    rows = [
        [title, str(results[name]) if name == "mesh_year" else count(results[name])]
        for name, title in titles.items()
        if name in results
    ]
    return table([["", ""], *rows]) if rows else NOT_MEASURED


def _training(training: Mapping[str, Any]) -> str:
    lines = [f"- Source: {source}" for source in training.get("sources", [])]
    if "articles" in training:
        lines.append(f"- Articles the network was trained on: {count(training['articles'])}")
    if "index_articles" in training:
        lines.append(f"- Articles in the neighbour index: {count(training['index_articles'])}")
    if "split_rule" in training:
        lines.append(f"- Split: {training['split_rule']}")
    return "\n".join(lines) or NOT_MEASURED


def _evaluation(evaluations: list[Mapping[str, Any]]) -> str:
    if not evaluations:
        return NOT_MEASURED
    rows = [["metric", *(evaluation["name"] for evaluation in evaluations)]]
    for name, (_, title) in METRICS.items():
        values = [evaluation["metrics"].get(name) for evaluation in evaluations]
        if any(value is not None for value in values):
            form = count if name == "candidate_size" else "{:.3f}".format
            rows.append([f"{title} (`{name}`)", *("" if value is None else form(value) for value in values)])
    articles = [evaluation["metrics"].get("articles") for evaluation in evaluations]
    if all(articles):
        rows.append(["articles", *map(count, articles)])
    return table(rows)


def _weak_spots(evaluations: list[Mapping[str, Any]]) -> str:
    spots = [spot for evaluation in evaluations for spot in evaluation.get("weak_spots", [])]
    rows = [[spot["what"], f"{spot['F1']:.3f}", count(spot["gold"])] for spot in spots]
    return table([["labels", "micro F1", "gold labels"], *rows]) if rows else NOT_MEASURED
