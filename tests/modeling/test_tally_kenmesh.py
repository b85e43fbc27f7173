"""Counting in parts is counting at once."""

import numpy as np
import pytest

from kenmesh_hf.modeling import tally_kenmesh
from kenmesh_hf.modeling.tally_kenmesh import Tally


@pytest.mark.parametrize("waiting", [1, 50, 1 << 20])
def test_counts_are_those_of_all_keys_together(monkeypatch, waiting):
    monkeypatch.setattr(tally_kenmesh, "_WAITING", waiting)
    parts = np.split(np.random.default_rng(0).integers(60, size=500).astype(np.uint64), [0, 7, 90, 91, 400])
    tally = Tally()
    for part in parts:
        tally.add(part)
    keys, counts = tally.result()
    expected_keys, expected = np.unique(np.concatenate(parts), return_counts=True)
    assert np.array_equal(keys, expected_keys) and np.array_equal(counts, expected)
    assert keys.dtype == np.uint64 and np.array_equal(tally.result()[1], expected)


def test_nothing_counts_nothing():
    assert [len(part) for part in Tally().result()] == [0, 0]
