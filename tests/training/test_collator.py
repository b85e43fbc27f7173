"""Rows of a prepared dataset become the model's inputs."""

import numpy as np
import torch

from kenmesh_hf.training import KenMeSHCollator


def row(words: int, candidates: int, labels: int) -> dict[str, object]:
    return {
        "pmid": "1",
        "year": 2000,
        "input_ids": np.arange(2, 2 + words, dtype=np.int32),
        "title_input_ids": [5],
        "labels": np.arange(labels, dtype=np.int32),
        "candidate_ids": np.arange(candidates, dtype=np.int32),
        "candidate_features": np.arange(2 * candidates, dtype=np.float16),
        "length": words + 1,
    }


def test_pads_to_the_longest_and_leaves_other_columns_out() -> None:
    batch = KenMeSHCollator(num_features=2)([row(3, 4, 1), row(0, 2, 3)])
    assert set(batch) == {
        "input_ids",
        "attention_mask",
        "title_input_ids",
        "title_attention_mask",
        "candidate_ids",
        "candidate_mask",
        "candidate_features",
        "labels",
    }
    assert batch["input_ids"].tolist() == [[2, 3, 4], [0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[True] * 3, [False] * 3]
    assert batch["candidate_mask"].tolist() == [[True] * 4, [True, True, False, False]]
    assert batch["labels"].tolist() == [[0, -100, -100], [0, 1, 2]]


def test_numbers_stay_with_their_candidate() -> None:
    batch = KenMeSHCollator(num_features=2)([row(1, 3, 1), row(1, 1, 1)])
    assert batch["candidate_features"].dtype == torch.float32
    assert batch["candidate_features"][0].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert batch["candidate_features"][1].tolist() == [[0, 1], [0, 0], [0, 0]]


def test_articles_without_candidates_or_labels() -> None:
    batch = KenMeSHCollator(num_features=2)([row(1, 0, 0), row(1, 0, 0)])
    assert not batch["candidate_mask"].any()
    assert (batch["labels"] == -100).all()
