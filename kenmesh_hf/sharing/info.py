"""What a saved model is: labels, training, scores, files, and whether they are all intact."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from .._version import __version__
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.checksums_kenmesh import check_checksums, read_checksums
from ..modeling.configuration_kenmesh import KenMeSHConfig
from ..modeling.headings_kenmesh import HEADINGS_FILE, KenMeSHHeadings
from ..modeling.thresholds_kenmesh import THRESHOLDS_NAME, Thresholds
from ..modeling.vocabulary_kenmesh import VOCABULARY_FILE, MeshVocabulary
from ..showing import table_lines
from .loading import find_model
from .results import RESULTS_FILE, describe_encoder, read_results

PARTS = {
    "model.safetensors": "weights",
    "tokenizer.json": "tokenizer",
    VOCABULARY_FILE: "MeSH vocabulary",
    "candidates.json": "candidate index",
    THRESHOLDS_NAME: "thresholds",
    RESULTS_FILE: "measured results",
    HEADINGS_FILE: "major topics and qualifiers",
}


def describe_model(model: str | Path, **hub_options: Any) -> dict[str, Any]:
    """Everything there is to know about a model without running it.

    Args:
        model: Folder or Hub name.
        **hub_options: `revision`, `token`, `cache_dir`, `local_files_only`.
    """
    folder = find_model(model, hub_options)
    config = KenMeSHConfig.from_pretrained(folder)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    result: dict[str, Any] = {
        "model": str(model),
        "labels": config.num_labels,
        **({"text_encoder": encoder} if (encoder := describe_encoder(config)) else {}),
        "words": config.vocab_size,
        "embedding_size": config.embedding_size,
        "evidence_features": config.num_evidence_features,
        "without": [name for file, name in PARTS.items() if file not in files],
        "problems": find_problems(folder),
        "checked_files": len(read_checksums(folder)),
        "total_bytes": sum(files.values()),
        "files": files,
        "versions": {
            "kenmesh_hf": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            # Not imported: that would take a third of a second, of everybody who loads this room.
            "datasets": version("datasets"),
        },
    }
    if not result["problems"]:
        result |= _describe_parts(folder)
    return result


def find_problems(folder: str | Path) -> list[str]:
    """A sentence for each file that is missing or is not the one that was saved."""
    problems = []
    for name in sorted(read_checksums(folder)):
        try:
            if check_checksums(folder, [name]):
                problems.append(f"{name} of the neighbour index is missing; tags will be poorer without it.")
        except (OSError, ValueError) as error:
            problems.append(str(error))
    return problems


def _describe_parts(folder: Path) -> dict[str, Any]:
    """What the parts say that are there."""
    parts: dict[str, Any] = {}
    if (folder / VOCABULARY_FILE).exists():
        parts["mesh_year"] = MeshVocabulary.from_pretrained(folder).year
    if KenMeSHCandidates.is_saved_in(folder):
        candidates = KenMeSHCandidates.from_pretrained(folder)
        parts["indexed_articles"] = candidates.num_articles
        parts["neighbours"] = candidates.index.description
        parts["indexed_journals"] = len(candidates.journals.sizes)
        parts["labels_with_articles"] = int((candidates.label_counts > 0).sum())
        parts |= _describe_indexed_headings(candidates)
    if (folder / THRESHOLDS_NAME).exists():
        thresholds = Thresholds.from_pretrained(folder)
        parts["threshold"] = thresholds.global_threshold
        parts["presets"] = thresholds.presets
    if KenMeSHHeadings.is_saved_in(folder):
        headings = KenMeSHHeadings.from_pretrained(folder)
        parts["qualifiers"] = len(headings.qualifiers)
        parts["heading_thresholds"] = headings.thresholds
    if results := read_results(folder):
        parts["results"] = results
    return parts


def _describe_indexed_headings(candidates: KenMeSHCandidates) -> dict[str, int]:
    """Of how many indexed articles it is known which headings are major, and which qualifiers they have."""
    table, every = candidates.articles.headings, np.arange(candidates.num_articles)
    if table is None:
        return {"articles_with_majors": 0, "articles_with_qualifiers": 0}
    return {
        "articles_with_majors": int(table.majors_known(every).sum()),
        "articles_with_qualifiers": int(table.qualifiers_known(every).sum()),
    }


def info_lines(result: dict[str, Any]) -> list[str]:
    """The same for people."""
    rows = [(name, value) for name, value in result.items() if not isinstance(value, dict | list)]
    rows += _flat(result.get("presets", {}), "threshold for ")
    rows += _flat(result.get("heading_thresholds", {}), "threshold of a ")
    results = dict(result.get("results", {}))
    evaluations = results.pop("evaluations", [])
    rows += _flat({name: value for name, value in results.items() if name not in result})
    rows += _flat(result["versions"])
    rows.append(("without", ", ".join(result["without"]) or "nothing"))
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.replace('_', ' '):<{width}}  {_text(name, value)}" for name, value in rows]
    for evaluation in evaluations:
        figures = [{"metric": name, "value": value} for name, value in evaluation["metrics"].items()]
        lines += ["", evaluation["name"], *table_lines(figures, ("metric", "value"))]
    sizes = [{"file": name, "bytes": size} for name, size in result["files"].items()]
    lines += ["", *table_lines(sizes, ("file", "bytes")), ""]
    good = f"All {result['checked_files']} listed files are as they were saved."
    if not result["checked_files"]:
        good = "There is no list of checksums, so the files cannot be checked."
    return [*lines, *(result["problems"] or [good])]


def _flat(values: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in values.items():
        rows += _flat(value, f"{before}{key} ") if isinstance(value, dict) else [(before + key, value)]
    return rows


def _text(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and "year" not in name else str(value)
