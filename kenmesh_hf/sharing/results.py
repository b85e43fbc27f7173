"""What tells of a model or dataset in its folder: its card, and `results.json` with what was measured."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_json
from ..modeling.configuration_kenmesh import KenMeSHConfig

RESULTS_FILE = "results.json"
CARD = "README.md"


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


def describe_encoder(config: KenMeSHConfig) -> str | None:
    """Name, kind and size of the text encoder of a model; None where words and a biLSTM read the texts."""
    encoder: Any = config.text_encoder
    if encoder is None:
        return None
    name = encoder.name_or_path or "unnamed"
    return f"{name} ({encoder.model_type}, {encoder.num_hidden_layers} layers of {encoder.hidden_size})"


def write_results(folder: str | os.PathLike, results: Mapping[str, Any]) -> None:
    """Merges results into `results.json`; an evaluation replaces the one of the same name."""
    old = read_results(folder)
    evaluations = {evaluation["name"]: evaluation for evaluation in evaluations_of(old)}
    evaluations |= {evaluation["name"]: evaluation for evaluation in evaluations_of(results)}
    merged = {**old, **results, "evaluations": list(evaluations.values())}
    write_json(Path(folder) / RESULTS_FILE, merged)


def evaluations_of(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The evaluations among results; none may lack its name or the candidate recall beside its scores."""
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
