"""Mapped arrays are those that were saved, and a damaged file is told."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from kenmesh_hf.modeling.tensors_kenmesh import map_tensors, save_tensors

ARRAYS = {
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3), np.uint32),
    "table": np.arange(6, dtype=np.float32).reshape(2, 3),
    "turned": np.arange(6, dtype=np.int64).reshape(2, 3).T,
    **{str(kind.__name__): np.array([1, 2, 3], kind) for kind in (np.uint8, np.int8, np.uint16, np.float16)},
    **{str(kind.__name__): np.array([1, 2, 3], kind) for kind in (np.uint64, np.int32, np.float64)},
}


def test_mapped_arrays_are_those_that_were_saved(tmp_path: Path):
    save_tensors(ARRAYS, tmp_path / "a.safetensors")
    mapped = map_tensors(tmp_path / "a.safetensors")
    assert mapped.keys() == ARRAYS.keys() == load_file(tmp_path / "a.safetensors").keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(mapped[name], array) and mapped[name].dtype == array.dtype, name
        assert mapped[name].shape == array.shape and not mapped[name].flags.writeable, name


def test_nothing_can_be_saved(tmp_path: Path):
    save_tensors({}, tmp_path / "a.safetensors")
    assert map_tensors(tmp_path / "a.safetensors") == {}


def test_who_maps_a_file_keeps_what_he_has_when_it_is_written_again(tmp_path: Path):
    path = tmp_path / "a.safetensors"
    save_tensors({"a": np.arange(10_000)}, path)
    mapped = map_tensors(path)["a"]
    save_tensors({"a": np.zeros(3)}, path)
    assert np.array_equal(mapped, np.arange(10_000))
    assert [item.name for item in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize("kept", [0, 5, 40, -8])
def test_a_file_that_ends_in_the_middle_is_told(tmp_path: Path, kept: int):
    path = tmp_path / "a.safetensors"
    save_tensors({"a": np.arange(100)}, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match="a.safetensors is not a whole safetensors file"):
        map_tensors(path)
