"""What `kenmesh prepare` found: counts, candidate recall, timing; for people, for programs, as pictures."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow.parquet as pq

from ..files import unfinished, write_json
from ..indexing import candidate_report, label_ids, look_up
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..options import PrepareOptions
from ..reading import Article
from ..sharing import render_dataset_card
from ..showing import count, plot_candidate_recall, plot_label_frequency, table
from .dataset import REPORT_FILE
from .stages import Stage

# Articles of a split on which candidates are measured: recall is then known to about half a percent.
MEASURED = 500
CURVE = (25, 50, 100, 200, 300, 500, 750, 1000, 1500, 2000, 3000)
FREQUENCY_PLOT = "label_frequency.png"
RECALL_PLOT = "candidate_recall.png"
LAYOUT_FILE = datasets.config.REPOYAML_FILENAME


def measure_candidates(processor: KenMeSHProcessor, articles: Sequence[Article], seed: int) -> dict[str, Any]:
    """Candidate recall and size by source on some of the articles; no training article meets itself."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(articles))[:MEASURED])
    sample = [articles[i] for i in chosen]
    return {
        "articles": len(sample),
        "sources": candidate_report(processor.candidates, sample, processor.vocabulary),
        "curve": recall_curve(processor.candidates, sample, processor.vocabulary),
    }


def recall_curve(
    candidates: KenMeSHCandidates, articles: Sequence[Article], vocabulary: MeshVocabulary
) -> dict[str, list[float]]:
    """Recall at growing numbers of candidates, the most promising first, whatever the number that is kept."""
    everything = replace(candidates.options, max_candidates=None)
    found, sizes = np.zeros(len(CURVE)), np.zeros(len(CURVE))
    for article, findings in zip(articles, look_up(candidates, articles), strict=True):
        labels, features = candidates.weigh(findings, everything)
        order = np.argsort(-(features @ candidates.ranker[:-1]), kind="stable")
        ranks = np.flatnonzero(np.isin(labels[order], label_ids(article, vocabulary)))
        found += [(ranks < size).sum() for size in CURVE]
        sizes += [min(len(labels), size) for size in CURVE]
    gold = sum(len(article.descriptors) + len(article.unresolved) for article in articles)
    return {"sizes": (sizes / max(len(articles), 1)).tolist(), "recalls": (found / max(gold, 1)).tolist()}


def build_report(
    options: PrepareOptions,
    vocabulary: MeshVocabulary,
    stages: Mapping[str, Sequence[Stage]],
    data: Mapping[str, Sequence[Path]],
) -> dict[str, Any]:
    """Everything that was found, as JSON.

    Args:
        options: What was asked for.
        vocabulary: The labels.
        stages: Those of each kind of work.
        data: Parquet files of each split.
    """
    splits, counts = {}, np.zeros(len(vocabulary), np.int64)
    for split, files in data.items():
        splits[split], labels = _describe(files, len(vocabulary))
        if split == "train":
            counts = labels
    divide, (processor,) = stages["divide"][0].result, stages["candidates"]
    rows = [stage.result for stage in stages["rows"]]
    room = {key: sum(row[key] for row in rows) for key in ("candidates", "candidate_bytes", "feature_bytes")}
    leak = {key: processor.result[key] for key in ("indexed", "held_out_checked", "held_out_in_index")}
    return {
        "options": asdict(options),
        "fingerprint": _fingerprint(stages["rows"]),
        "mesh": {"year": vocabulary.year, "descriptors": len(vocabulary)},
        "files": [stage.result for stage in stages["read"]],
        "left_out": _left_out(stages["read"], divide),
        "split_rule": divide["rule"],
        "splits": splits,
        "labels": {
            "used": int((counts > 0).sum()),
            "never": int((counts == 0).sum()),
            "counts": counts.tolist(),
        },
        "index": processor.result["index"],
        "words": stages["words"][0].result | stages["word vectors"][0].result,
        "leak_check": leak,
        "candidates": stages["measure"][0].result,
        "bytes_per_candidate": {
            "id": room["candidate_bytes"] / max(room["candidates"], 1),
            "numbers": room["feature_bytes"] / max(room["candidates"], 1),
        },
        "seconds": {kind: round(sum(stage.seconds for stage in done), 2) for kind, done in stages.items()},
    }


def _fingerprint(rows: Sequence[Stage]) -> str:
    return hashlib.sha256(" ".join(stage.fingerprint for stage in rows).encode()).hexdigest()[:16]


def _left_out(reading: Sequence[Stage], divide: Mapping[str, Any]) -> dict[str, int]:
    total = Counter(divide["left_out"])
    for stage in reading:
        total.update(stage.result.get("left_out", {}))
        total.update({f"unreadable: {reason}": n for reason, n in stage.result["skipped"].items()})
    return dict(total.most_common())


def _describe(files: Sequence[Path], num_labels: int) -> tuple[dict[str, Any], np.ndarray]:
    """Figures of a split and how often each label occurs in it."""
    columns = ["labels", "unknown_labels", "year", "input_ids", "title_input_ids"]
    given, unknown, words, titles = [], [], [], []
    years, counts = Counter[int | None](), np.zeros(num_labels, np.int64)
    for file in files:
        part = pq.read_table(file, columns=columns)
        given.append(_lengths(part, "labels"))
        unknown.append(part["unknown_labels"].to_numpy())
        words.append(_lengths(part, "input_ids"))
        titles.append(_lengths(part, "title_input_ids"))
        years.update(part["year"].to_pylist())
        counts += np.bincount(part["labels"].combine_chunks().flatten().to_numpy(), minlength=num_labels)
    sizes, outside = np.concatenate(given), np.concatenate(unknown)
    return _figures(sizes + outside, outside, np.concatenate(words), np.concatenate(titles), years), counts


def _figures(
    given: np.ndarray, outside: np.ndarray, words: np.ndarray, titles: np.ndarray, years: Counter[int | None]
) -> dict[str, Any]:
    return {
        "articles": len(given),
        "without_abstract": int((words == 0).sum()),
        "labels_per_article": {
            "mean": float(given.mean()),
            **{name: int(np.quantile(given, q)) for name, q in (("least", 0), ("median", 0.5), ("most", 1))},
        },
        "labels_outside_vocabulary": int(outside.sum()),
        "words_per_title": float(titles.mean()),
        "words_per_abstract": float(words[words > 0].mean()) if words.any() else 0.0,
        "years": {str(year): years[year] for year in sorted(years, key=lambda year: year or 0)},
    }


def _lengths(part: Any, column: str) -> np.ndarray:
    return np.diff(part[column].combine_chunks().offsets.to_numpy())


def write_report(report: dict[str, Any], folder: Path) -> None:
    """Writes pictures, card and `report.md`, and last `report.json`, with which the dataset is finished."""
    plot_label_frequency(folder / FREQUENCY_PLOT, report["labels"]["counts"])
    curves = {
        split: (measured["curve"]["sizes"], measured["curve"]["recalls"])
        for split, measured in report["candidates"].items()
    }
    plot_candidate_recall(folder / RECALL_PLOT, curves)
    texts = {
        "report.md": render_report(report),
        "README.md": _card(report, folder),
        LAYOUT_FILE: _layout(report),
    }
    for name, text in texts.items():
        with unfinished(folder / name) as path:
            path.write_text(text, encoding="utf-8")
    write_json(folder / REPORT_FILE, report)


def _layout(report: Mapping[str, Any]) -> str:
    """Where `load_dataset` finds the splits.

    Its cache knows a local folder by its last name and this layout alone. The description makes sure that
    rows prepared again, or in a folder of the same name, are not taken for those in the cache.
    """
    files = [{"split": split, "path": f"data/{split}-*.parquet"} for split in report["splits"]]
    layout = {"config_name": "default", "description": report["fingerprint"], "data_files": files}
    return json.dumps({"configs": [layout]}, indent=2) + "\n"


def _card(report: Mapping[str, Any], folder: Path) -> str:
    kept = {split: measured["sources"]["kept"] for split, measured in report["candidates"].items()}
    results = {
        "mesh_year": report["mesh"]["year"] or "of unknown year",
        "sources": [file["file"] for file in report["files"]],
        "split_rule": report["split_rule"],
        "candidates": {
            split: {"candidate_recall": row["recall"], "candidate_size": row["size"]}
            for split, row in kept.items()
        },
    }
    sizes = {split: figures["articles"] for split, figures in report["splits"].items()}
    return render_dataset_card(results, sizes, folder.resolve().name)


def render_report(report: Mapping[str, Any]) -> str:
    """The report for people, as Markdown."""
    mesh, leak, room = report["mesh"], report["leak_check"], report["bytes_per_candidate"]
    parts = [
        "# Prepared dataset",
        f"MeSH {mesh['year'] or '(year unknown)'}: {count(mesh['descriptors'])} descriptors, of which "
        f"{count(report['labels']['used'])} occur in the training set.",
        "## Articles",
        _splits_table(report["splits"]),
        report["split_rule"],
        "## Left out",
        table([["reason", "articles"], *([why, count(n)] for why, n in report["left_out"].items())])
        if report["left_out"]
        else "Nothing.",
        "## Candidates",
        _candidates_table(report["candidates"]),
        "A gold descriptor that MeSH of this year lacks counts as not proposed. Training articles are "
        "measured with themselves taken out of the index and every table.",
        f"Leak check: {count(leak['indexed'])} training articles are indexed; none of the "
        f"{count(leak['held_out_checked'])} articles held out is among them, by PMID or by text.",
        f"Neighbours: {report['index']}.",
        f"On disk a candidate takes {room['id']:.2f} bytes, its numbers {room['numbers']:.1f}.",
        f"![candidate recall]({RECALL_PLOT})",
        f"![label frequency]({FREQUENCY_PLOT})",
        "## Time",
        table([["stage", "seconds"], *([kind, f"{t:,.1f}"] for kind, t in report["seconds"].items())]),
    ]
    return "\n\n".join(parts) + "\n"


def _splits_table(splits: Mapping[str, Mapping[str, Any]]) -> str:
    head = [
        "set",
        "articles",
        "without abstract",
        "years",
        "labels an article (least–most)",
        "unknown labels",
    ]
    rows = []
    for split, figures in splits.items():
        years = [year for year in figures["years"] if year != "None"]
        spread = figures["labels_per_article"]
        rows.append([
            split,
            count(figures["articles"]),
            count(figures["without_abstract"]),
            f"{years[0]}–{years[-1]}" if years else "unknown",
            f"{spread['mean']:.1f} ({spread['least']}–{spread['most']})",
            count(figures["labels_outside_vocabulary"]),
        ])  # fmt: skip
    return table([head, *rows])


def _candidates_table(candidates: Mapping[str, Mapping[str, Any]]) -> str:
    head = ["source", *(f"{split}: {what}" for split in candidates for what in ("recall", "size"))]
    sources = next(iter(candidates.values()))["sources"]
    rows = []
    for source in sources:
        cells = [measured["sources"][source] for measured in candidates.values()]
        rows.append([source, *(text for c in cells for text in (f"{c['recall']:.3f}", f"{c['size']:,.0f}"))])
    return table([head, *rows])
