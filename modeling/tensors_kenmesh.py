"""Arrays in safetensors files that are mapped, not read: processes on a machine share one copy."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

_TYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8, "U16": np.uint16, "U32": np.uint32, "U64": np.uint64,
    "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
    "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip


def save_tensors(tensors: Mapping[str, np.ndarray], path: str | os.PathLike) -> None:
    """Writes arrays; the same arrays give the same bytes.

    The file gets its name when it is whole. Whoever maps an older one of that name keeps what he has.
    """
    temporary = Path(f"{os.fspath(path)}.unfinished")
    try:
        save_file({name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}, temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def map_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Arrays of a file, which the system reads as they are looked at, and only those parts."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        # A file of no arrays, or of empty ones, has nothing that could be mapped.
        some = path.stat().st_size > 8 + length
        data = np.asarray(np.memmap(path, np.uint8, "r", 8 + length)) if some else np.zeros(0, np.uint8)
        return {name: _array(data, **entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(
            f"{path} is not a whole safetensors file ({error}); get or save it again."
        ) from error


def id_type(count: int) -> type:
    """Smallest type that holds each number below `count`."""
    return np.uint16 if count <= 1 << 16 else np.uint32


def narrow(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers, none negative, of the smallest type that holds them all."""
    return numbers.astype(id_type(int(numbers.max(initial=0)) + 1))


def _array(data: np.ndarray, dtype: str, shape: list[int], data_offsets: list[int]) -> np.ndarray:
    start, end = data_offsets
    return data[start:end].view(_TYPES[dtype]).reshape(shape)
