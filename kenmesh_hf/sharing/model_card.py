"""The card of a model, filled from what was measured: `results.json` in, metadata and tables out."""

from collections.abc import Callable, Mapping
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from ..errors import InputError
from ..files import BUNDLED_CHECKPOINT
from ..showing import count, fill_card, table
from .results import CARD, evaluations_of

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
    "major_MiF": ("f1", "micro F1 of major topics"),
    "major_MiP": ("precision", "micro precision of major topics"),
    "major_MiR": ("recall", "micro recall of major topics"),
    "qualifier_MiF": ("f1", "micro F1 of descriptor–qualifier pairs"),
    "qualifier_MiP": ("precision", "micro precision of descriptor–qualifier pairs"),
    "qualifier_MiR": ("recall", "micro recall of descriptor–qualifier pairs"),
    "candidate_recall": ("recall", "candidate recall"),
    "candidate_size": ("size", "candidates an article"),
}


def card_template() -> str:
    """The card of the bundled checkpoint, which serves every other model as template."""
    for path in (BUNDLED_CHECKPOINT / CARD, BUNDLED_CHECKPOINT.parents[1] / "model_card.md"):
        if path.exists():
            return path.read_text(encoding="utf-8")
    raise InputError("This installation has no model card; put a README.md into the model's folder.")


def render_model_card(results: Mapping[str, Any], template: str, *, repo_id: str | None = None) -> str:
    """Fills a card.

    Args:
        results: `model_name`, `mesh_year`, `num_labels`, `text_encoder` (its name and size),
            `num_parameters`, `datasets` (ids on the Hub), `training` (`articles`, `index_articles`,
            `sources`, `split_rule`) and `evaluations`, a list of `name`, `dataset`, `split`, `metrics` and
            `weak_spots` (`what`, `F1`, `gold`). All may be missing.
        template: A card with `results` blocks, filled or not.
        repo_id: Where the model will be found on the Hub.
    """
    writers: dict[str, Callable[[], str]] = {
        "usage": lambda: _usage(repo_id or results.get("repo_id")),
        "model": lambda: _facts(results),
        "training": lambda: _training(results.get("training", {})),
        "evaluation": lambda: _evaluation(evaluations_of(results)),
        "weak_spots": lambda: _weak_spots(evaluations_of(results)),
    }
    return fill_card(template, _model_metadata(results).to_yaml(), writers)


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
        for evaluation in evaluations_of(results)
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


def _facts(results: Mapping[str, Any]) -> str:
    titles = {"mesh_year": "MeSH year", "num_labels": "descriptors", "text_encoder": "text encoder"}
    titles |= {"num_parameters": "parameters"}
    rows = [
        [title, count(results[name]) if name.startswith("num_") else str(results[name])]
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
