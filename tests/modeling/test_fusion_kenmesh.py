"""Evidence beside the score of the network."""

import pytest
import torch
from kenmesh_networks import EVIDENCE_ON, build_batch, build_network, score

from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing


def test_evidence_moves_candidates_only_and_must_be_given():
    model = build_network(**EVIDENCE_ON)
    inputs = build_batch(model)
    before = score(model, inputs)
    inputs["candidate_features"] = inputs["candidate_features"] + 1
    moved = score(model, inputs) != before
    for row in range(4):
        candidates = inputs["candidate_ids"][row][inputs["candidate_mask"][row]]
        assert set(moved[row].nonzero().flatten().tolist()) == set(candidates.tolist())
    del inputs["candidate_features"]
    with pytest.raises(ValueError, match="candidate_features"):
        model(**inputs)


def test_fresh_evidence_leaves_the_network_alone():
    inputs = build_batch(build_network(**EVIDENCE_ON))
    fresh = KenMeSHForMeSHIndexing(build_network(**EVIDENCE_ON).config).eval()
    before = score(fresh, inputs)
    inputs["candidate_features"] = inputs["candidate_features"] * 100
    assert torch.equal(score(fresh, inputs), before)
