"""What a saved model is: labels, training, scores, files, and whether they are all intact."""

import json
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers

from ._version import __version__
from .errors import InputError
from .hub import pull
from .modeling.candidates_kenmesh import KenMeSHCandidates
from .modeling.checksums_kenmesh import check_checksums, read_checksums
from .modeling.configuration_kenmesh import KenMeSHConfig
from .modeling.thresholds_kenmesh import THRESHOLDS_NAME, Thresholds
from .modeling.vocabulary_kenmesh import MeshVocabulary

RESULTS_FILE = "results.json"


def describe_model(model: str | Path, **hub_options: Any) -> dict[str, Any]:
    """Everything there is to know about a model without running it.

    Args:
        model: Folder or Hub name.
        **hub_options: `revision`, `token`, `cache_dir`, `local_files_only`.
    """
    folder = pull(model, **hub_options)
    if not (folder / "config.json").exists():
        raise InputError(f"{folder} has no config.json, so it is not a saved model.")
    config = KenMeSHConfig.from_pretrained(folder)
    vocabulary = MeshVocabulary.from_pretrained(folder)
    missing = check_checksums(folder)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    result: dict[str, Any] = {
        "folder": str(model),
        "mesh_year": vocabulary.year,
        "labels": len(vocabulary),
        "words": config.vocab_size,
        "embedding_size": config.embedding_size,
        "evidence_features": config.num_evidence_features,
        "files": {path.name: path.stat().st_size for path in files},
        "total_bytes": sum(path.stat().st_size for path in files),
        "checked_files": len(read_checksums(folder)),
        "missing_index_files": list(missing),
        "versions": {
            "kenmesh_hf": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "datasets": datasets.__version__,
        },
    }
    if KenMeSHCandidates.is_saved_in(folder) and not missing:
        candidates = KenMeSHCandidates.from_pretrained(folder)
        result["indexed_articles"] = len(candidates.articles)
        result["labels_with_articles"] = int((candidates.label_counts > 0).sum())
        result["journals"] = len(candidates.journals)
    if (folder / THRESHOLDS_NAME).exists():
        thresholds = Thresholds.from_pretrained(folder)
        result["threshold"] = thresholds.global_threshold
        result["presets"] = thresholds.presets
    if (folder / RESULTS_FILE).exists():
        result["results"] = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
    return result


def info_lines(result: dict[str, Any]) -> list[str]:
    """The same for people."""
    lines = [
        f"{name.replace('_', ' ')}: {value}" for name, value in result.items() if not isinstance(value, dict)
    ]
    for name in ("presets", "results", "versions", "files"):
        if name in result:
            lines += [f"{name}:", *(f"  {key}: {value}" for key, value in _flat(result[name]))]
    return lines


def _flat(values: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in values.items():
        rows += _flat(value, f"{before}{key}.") if isinstance(value, dict) else [(before + key, value)]
    return rows
