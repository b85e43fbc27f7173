"""Scoring a model on articles whose descriptors are known: figures, tables and plots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from ..errors import InputError
from ..mesh import uis_of_terms
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline, as_article, map_by_length
from ..modeling.vocabulary_kenmesh import CATEGORIES, MeshVocabulary
from ..reading import Article
from ..sharing import write_results
from ..showing import check_plots, plot_groups, plot_precision_recall, table_lines
from .heading_scores import HeadingScores
from .label_report import (
    LabelCounts,
    check_tag_rows,
    label_rows,
    score_categories,
    score_frequency_groups,
    write_label_rows,
)
from .label_sets import LabelSets, ScoredLabels, find_hits, to_offsets
from .metrics import score_predictions
from .thresholds import sweep_thresholds

# Best labels of an article that are kept: the others are far below every threshold.
MOST = 150


@dataclass
class Scores:
    """What a model says about articles with known descriptors.

    Attributes:
        scored: The best labels of each article, with probabilities.
        gold: Labels that are right; descriptors the model does not know are counted as missed.
        candidates: Labels that were proposed.
        headings: What its tags say of major topics and qualifiers, beside what is right.
    """

    scored: ScoredLabels
    gold: LabelSets
    candidates: LabelSets
    headings: HeadingScores


def gold_labels(articles: Sequence[Article], vocabulary: MeshVocabulary) -> LabelSets:
    """Gold labels; a heading given by name only (MEDLINE, RIS) is looked up, one not found is missed."""
    ui_of = uis_of_terms(vocabulary)
    rows: list[list[int | None]] = []
    for article in articles:
        known = article.with_uis(ui_of)
        rows.append([*map(vocabulary.get, known.descriptors), *[None] * len(known.unresolved)])
    return LabelSets.from_lists(rows, len(vocabulary))


def score_articles(
    tagger: MeSHIndexingPipeline,
    articles: Iterable[Article],
    batch_size: int = 32,
    progress: bool = True,
    choice: Mapping[str, Any] | None = None,
) -> Scores:
    """Runs the model over labelled articles; memory grows with what is kept, not with articles × labels.

    Args:
        tagger: The model.
        articles: Articles with their descriptors.
        batch_size: Articles the network reads at once.
        progress: Show a progress bar.
        choice: Which tags are wanted, as the pipeline takes it, to score their major topics and qualifiers.
    """
    vocabulary = tagger.processor.vocabulary
    headings = HeadingScores(uis_of_terms(vocabulary))
    least = tagger.least_scores(choice or {})
    kept: list[Article] = []
    found: list[tuple[Any, Any]] = []
    proposed: list[Any] = []
    results = map_by_length(
        articles,
        batch_size,
        lambda article: len(article.abstract),
        lambda batch: tagger.preprocess([as_article(article.as_input()) for article in batch]),
        lambda inputs: _score_batch(tagger, inputs, least),
    )
    for article, (labels, scores, candidates, tags) in tqdm(results, unit=" articles", disable=not progress):
        headings.add(tags, article)
        # Without its text an article is small, and its descriptors are all that is needed later.
        kept.append(Article(headings=article.headings))
        found.append((labels, scores))
        proposed.append(candidates)
    if not kept:
        raise InputError("There is no labelled article to evaluate on; articles need a `mesh` list.")
    return Scores(
        ScoredLabels.from_lists([labels for labels, _ in found], [scores for _, scores in found]),
        gold_labels(kept, vocabulary),
        LabelSets(to_offsets(np.array([len(row) for row in proposed])), np.concatenate(proposed)),
        headings,
    )


def _score_batch(
    tagger: MeSHIndexingPipeline, batch: dict[str, Any], least: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]]:
    """Best labels, their probabilities, candidates, and tags of each article that `preprocess` prepared."""
    outputs = tagger.forward(batch)
    tags = tagger.postprocess(outputs, least=least)
    inputs, logits = outputs["inputs"], outputs["logits"].float().cpu()
    results = []
    for row, scores in enumerate(logits.sigmoid()):
        candidates = torch.empty(0, dtype=torch.long)
        if "candidate_ids" in inputs:
            candidates = inputs["candidate_ids"][row][inputs["candidate_mask"][row]].cpu()
        if tagger.model.config.loss_labels != "candidates" or not len(candidates):
            labels = scores.topk(min(MOST, len(scores))).indices
        else:
            labels = candidates[scores[candidates].topk(min(MOST, len(candidates))).indices]
        results.append((labels.int().numpy(), scores[labels].numpy(), candidates.int().numpy(), tags[row]))
    return results


def summarize(scores: Scores, tagger: MeSHIndexingPipeline, selected: np.ndarray) -> dict[str, float | int]:
    """Every overall figure; candidate recall and size are those of the proposed labels.

    Figures of major topics and qualifiers (`HeadingScores`) are there where the tags and the articles tell
    of them.
    """
    processor = tagger.processor
    figures: dict[str, float | int] = {
        **score_predictions(scores.scored, scores.gold, selected, ancestors=processor.vocabulary.ancestors)
    }
    if processor.candidates is None:
        # Every label is looked at, so only descriptors that the model does not know are out of reach.
        figures["candidate_recall"] = len(scores.gold.label_ids) / max(1, scores.gold.total)
        figures["candidate_size"] = float(len(processor.vocabulary))
    else:
        proposed = ScoredLabels(
            scores.candidates.offsets,
            scores.candidates.label_ids,
            np.ones(len(scores.candidates.label_ids), np.float32),
        )
        figures["candidate_recall"] = float(
            find_hits(proposed, scores.gold).sum() / max(1, scores.gold.total)
        )
        figures["candidate_size"] = len(proposed.label_ids) / len(proposed)
    return figures | {"articles": len(scores.gold)} | scores.headings.figures()


def decide(
    scores: Scores,
    tagger: MeSHIndexingPipeline,
    threshold: float | None = None,
    preset: str | None = None,
) -> np.ndarray:
    """Which scored labels become tags, as the pipeline decides it."""
    choice = {"threshold": threshold, "preset": preset}
    least = tagger.least_scores({name: value for name, value in choice.items() if value is not None})
    return scores.scored.scores >= least[scores.scored.label_ids]


def evaluate(
    tagger: MeSHIndexingPipeline,
    articles: Iterable[Article],
    *,
    threshold: float | None = None,
    preset: str | None = None,
    batch_size: int = 32,
    out: Path | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Scores a model.

    Args:
        tagger: The model.
        articles: Articles with their descriptors; those without any are passed over.
        threshold: Least score of a tag; without it the model's own thresholds decide.
        preset: Another of the model's own thresholds.
        batch_size: Articles the network reads at once.
        out: Folder for tables and plots.
        progress: Show a progress bar.

    Returns:
        The overall figures, and figures by frequency group, by MeSH category and for each check tag.
    """
    # Wrong options and missing libraries are told before hours of work.
    if out is not None:
        check_plots()
    choice = {"threshold": threshold, "preset": preset}
    tagger.least_scores(choice)
    labelled = (article for article in articles if article.headings)
    scores = score_articles(tagger, labelled, batch_size, progress, choice)
    selected = decide(scores, tagger, threshold, preset)
    vocabulary, candidates = tagger.processor.vocabulary, tagger.processor.candidates
    counts = LabelCounts.of(scores.scored, scores.gold, selected, len(vocabulary))
    training = None if candidates is None else candidates.label_counts
    result: dict[str, Any] = summarize(scores, tagger, selected)
    result["by_category"] = score_categories(counts, vocabulary.categories)
    result["check_tags"] = check_tag_rows(counts, vocabulary, training)
    if training is not None:
        result["by_frequency"] = score_frequency_groups(counts, training)
    if out is not None:
        _write(out, result, scores, label_rows(counts, vocabulary, training_counts=training))
    return result


def _write(out: Path, result: dict[str, Any], scores: Scores, rows: list[dict[str, Any]]):
    out.mkdir(parents=True, exist_ok=True)
    write_label_rows(out / "labels.csv", rows)
    if "by_frequency" in result:
        plot_groups(
            out / "by_frequency.png",
            result["by_frequency"],
            title="MiF by training frequency of a label",
            x_label="training articles",
        )
    named = {CATEGORIES[letter]: figures for letter, figures in result["by_category"].items()}
    plot_groups(out / "by_category.png", named, title="MiF by MeSH category", x_label="category")
    sweep = sweep_thresholds(scores.scored, scores.gold)
    plot_precision_recall(
        out / "precision_recall.png",
        sweep.recall,
        sweep.precision,
        chosen={"chosen": (result["MiR"], result["MiP"])},
    )


def record_result(model: str | Path, name: str, result: dict[str, Any]) -> None:
    """Keeps the overall figures in the results file of a saved model, from which its card is written."""
    if not Path(model).is_dir():
        raise InputError(f"Figures can be kept with a model in a folder; {model} is none.")
    metrics = {key: value for key, value in result.items() if isinstance(value, int | float)}
    write_results(model, {"evaluations": [{"name": name, "metrics": metrics}]})


def report_lines(result: dict[str, Any]) -> list[str]:
    """The figures as tables for people."""
    overall = [
        {"metric": name, "value": value} for name, value in result.items() if isinstance(value, int | float)
    ]
    lines = [*table_lines(overall, ("metric", "value"))]
    columns = ("MiP", "MiR", "MiF", "gold", "predicted")
    for title, key, names in (
        ("training articles of the label", "by_frequency", {}),
        ("category", "by_category", CATEGORIES),
    ):
        rows = [
            {title: names.get(name, name)} | figures | {count: int(figures[count]) for count in columns[3:]}
            for name, figures in result.get(key, {}).items()
        ]
        lines += ["", *table_lines(rows, (title, *columns))]
    return [*lines, "", *table_lines(result["check_tags"], ("name", "P", "R", "F", "gold", "predicted"))]
