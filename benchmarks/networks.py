"""KenMeSH in its forms: with evidence, as in the paper, without its parts, with the authors' leak."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from baselines import TOP_LABELS, Ranking
from datasets import Dataset

from kenmesh_hf.evaluating import LabelSets, ScoredLabels, find_hits
from kenmesh_hf.indexing import add_articles
from kenmesh_hf.modeling.evidence_kenmesh import FEATURES
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.modeling.pipeline_kenmesh import batches
from kenmesh_hf.preparing import encode_articles, load_prepared
from kenmesh_hf.reading import Article
from kenmesh_hf.training import (
    SUMMARY_FILE,
    KenMeSHCollator,
    TrainingOptions,
    options_for,
    start_network,
    tokens_for,
    train,
    training_rows,
)

Row = Mapping[str, Any]
BATCH = 64
# Without evidence there is more to learn: titles alone teach, too, more epochs are needed, and the mean of
# the weights over the last thousand steps is better than any of them.
ALONE: dict[str, Any] = {
    "evidence": False,
    "title_only": True,
    "dropout": 0.4,
    "epochs": 6,
    "patience": 6,
    "decay": 0.85,
    "average": 0.999,
}
ABLATIONS: dict[str, dict[str, Any]] = {
    "a": {"two_channels": False},
    "b": {"convolutions": False},
    "c": {"label_graph": False},
    # A loss over candidates alone would be a mask again. Every label looks at every word then: a step takes
    # ten times as long, so one epoch must do.
    "d": {"mask": False, "loss_labels": "all", "epochs": 1, "title_only": False},
}
# A pretrained encoder is slow without a GPU: it reads the beginning of a text, and every text once.
ENCODER: dict[str, Any] = {"epochs": 1, "encoder_tokens": 128, "bf16": True}


def evidence(data: Path) -> Ranking:
    """The numbers of each candidate alone, read by the small network that KenMeSH starts from."""
    prepared = load_prepared(data)
    options = options_for("small")
    rows = training_rows(prepared, options)
    started = time.process_time()
    model = start_network(prepared, rows, options).eval()
    seconds = time.process_time() - started

    @torch.no_grad()
    def score(row: Row) -> tuple[np.ndarray, np.ndarray]:
        numbers = torch.from_numpy(row["candidate_features"].astype(np.float32))
        numbers = numbers.reshape(1, -1, model.config.num_evidence_features)
        logits = model.evidence(torch.zeros(1, numbers.shape[1]), numbers)[0]
        best = logits.topk(min(TOP_LABELS, len(logits))).indices.numpy()
        return row["candidate_ids"][best], logits.sigmoid().numpy()[best]

    def rank(rows: Iterable[Row]) -> ScoredLabels:
        labels, scores = zip(*map(score, rows), strict=True)
        return ScoredLabels.from_lists(labels, scores)

    return Ranking(
        rank(prepared.validation), rank(prepared.test), seconds, figures=candidate_figures(prepared.test)
    )


def kenmesh(data: Path, model: Path, options: TrainingOptions) -> Ranking:
    """A network, trained or trained on in the folder `model`, on the dataset in the folder `data`."""
    prepared = tokens_for(load_prepared(data), options, None, progress=False)
    seconds = trained(options, data, model)
    ranking = score_splits(prepared.validation, prepared.test, model)
    ranking.seconds, ranking.settings = seconds, asdict(options)
    return ranking


def leak(data: Path, model: Path, validation: Sequence[Article], test: Sequence[Article]) -> Ranking:
    """A trained network whose held-out articles are in the index and meet themselves there.

    The authors search each article in an index that holds it: it is its own nearest neighbour.
    """
    leaky, _ = add_articles(load_prepared(data).processor, [*validation, *test])
    index = leaky.candidates.articles
    index.find = lambda pmids, hashes: [np.zeros(0, np.int64)] * len(hashes)
    parts = [
        Dataset(pa.concat_tables(encode_articles(leaky, batch) for batch in batches(articles, BATCH)))
        for articles in (validation, test)
    ]
    return score_splits(*(part.with_format("numpy") for part in parts), model)


def trained(options: TrainingOptions, data: Path, model: Path) -> float | None:
    """Trains unless it is done; gives the processor time, None if training was ever interrupted."""
    finished = model / SUMMARY_FILE
    clock = model / "processor_seconds.json"
    if not finished.exists():
        whole = not model.exists()
        started = time.process_time()
        train(options, data, model, resume=True, disable_tqdm=True)
        clock.write_text(json.dumps(time.process_time() - started if whole else None), encoding="utf-8")
    return json.loads(clock.read_text(encoding="utf-8")) if clock.exists() else None


def score_splits(validation: Dataset, test: Dataset, folder: Path) -> Ranking:
    """Scores held-out rows with a saved network."""
    model = KenMeSHForMeSHIndexing.from_pretrained(folder).eval()
    parts = [validation, test]
    if model.evidence is None:
        parts = [rows.remove_columns("candidate_features") for rows in parts]
    rankings = [score_rows(model, list(rows)) for rows in parts]
    return Ranking(*rankings, None, figures=candidate_figures(test))


@torch.no_grad()
def score_rows(model: KenMeSHForMeSHIndexing, rows: list[Row]) -> ScoredLabels:
    """The best labels of each row with their probabilities; rows of like length share a batch."""
    collate, order = (
        KenMeSHCollator(len(FEATURES)),
        np.argsort([row["length"] for row in rows], kind="stable"),
    )
    ids = np.empty((len(rows), min(TOP_LABELS, model.config.num_labels)), np.int64)
    scores = np.empty(ids.shape, np.float32)
    for start in range(0, len(rows), BATCH):
        places = order[start : start + BATCH]
        inputs = collate([rows[place] for place in places])
        inputs.pop("labels")
        best = model(**inputs).logits.float().topk(ids.shape[1], dim=1)
        ids[places], scores[places] = best.indices.numpy(), best.values.sigmoid().numpy()
    return ScoredLabels.from_padded(ids, scores)


def gold_of(rows: Iterable[Row]) -> LabelSets:
    """Gold labels of rows; descriptors that are no labels are missed by every method."""
    kept = [(row["labels"], int(row["unknown_labels"])) for row in rows]
    offsets = np.cumsum([0, *(len(labels) for labels, _ in kept)])
    flat = np.concatenate([np.empty(0, np.int32), *(labels for labels, _ in kept)])
    return LabelSets(offsets, flat, np.array([unknown for _, unknown in kept], np.int64))


def candidate_figures(rows: Iterable[Row]) -> dict[str, float]:
    """Share of gold labels among the candidates, and how many candidates there are."""
    rows = list(rows)
    gold = gold_of(rows)
    proposed = ScoredLabels.from_lists(
        [row["candidate_ids"] for row in rows], [np.ones(len(row["candidate_ids"])) for row in rows]
    )
    return {
        "candidate_recall": float(find_hits(proposed, gold).sum()) / max(1, gold.total),
        "candidate_size": len(proposed.label_ids) / max(1, len(rows)),
    }
