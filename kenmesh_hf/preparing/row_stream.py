"""Rows of a split as a stream: some Parquet row groups at a time, shuffled, rows of like length together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from torch.utils.data import IterableDataset, get_worker_info

from ..errors import InputError

Row = dict[str, Any]
# What a network is trained on, and the length by which rows are put together.
TOKEN_COLUMNS = ("title_input_ids", "input_ids", "length")
COLUMNS = (*TOKEN_COLUMNS, "labels", "candidate_ids", "candidate_features")
# Rows that are in memory at once, about 150 MB.
POOL = 4096
# Batches among whose rows those of like length are looked for, as `Trainer` does: more would pad less, and
# make the batches less random.
NEIGHBOURHOOD = 50
# Row groups are read for so many times the rows of a sample: those beside each other are of one time.
SPREAD = 4


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file.

    Attributes:
        file: The Parquet file.
        number: Of the group in the file.
        wanted: Numbers of the rows that are wanted, a byte each if the group has no more than 256.
        tokens: A file of the same row groups from which `TOKEN_COLUMNS` are taken, if not from this one.
    """

    file: Path
    number: int
    wanted: np.ndarray
    tokens: Path | None = None

    def __len__(self) -> int:
        return len(self.wanted)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of the wanted rows."""
        found: dict[str, pa.ChunkedArray] = {}
        for file, here in self._files_of(columns).items():
            with _opened(file) as parquet:
                # Threads would not survive the fork of a loader's worker.
                table = parquet.read_row_group(self.number, columns=here, use_threads=False)
            found |= {name: table[name] for name in here}
        table = pa.table({name: found[name] for name in columns})
        return table if len(self) == len(table) else table.take(self.wanted)

    def _files_of(self, columns: Sequence[str]) -> dict[Path, list[str]]:
        """Which columns are in which file."""
        files: dict[Path, list[str]] = {}
        for name in columns:
            file = self.tokens if self.tokens and name in TOKEN_COLUMNS else self.file
            files.setdefault(file, []).append(name)
        return files


def find_row_groups(files: Sequence[Path], tokens: Path | None = None) -> list[RowGroup]:
    """The row groups of Parquet files, all of their rows wanted.

    Args:
        files: The Parquet files.
        tokens: Folder of files of the same names from which the tokens are taken.
    """
    return [group for file in files for group in _groups_of(file, tokens and tokens / file.name)]


def _groups_of(file: Path, tokens: Path | None) -> list[RowGroup]:
    with _opened(file) as parquet:
        sizes = [parquet.metadata.row_group(number).num_rows for number in range(parquet.num_row_groups)]
    return [
        RowGroup(file, number, np.arange(size).astype(np.min_scalar_type(max(size - 1, 0))), tokens)
        for number, size in enumerate(sizes)
    ]


@contextmanager
def _opened(file: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(file) as parquet:
            yield parquet
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{file} cannot be read ({reason}); delete it and prepare again.") from error


class _Columns:
    """The columns of a row group as NumPy arrays."""

    def __init__(self, table: pa.Table):
        self.lists: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.values: dict[str, np.ndarray] = {}
        for name in table.column_names:
            column = table[name].combine_chunks()
            if pa.types.is_list(column.type):
                self.lists[name] = column.values.to_numpy(), column.offsets.to_numpy()
            else:
                self.values[name] = column.to_numpy(zero_copy_only=False)

    def row(self, number: int) -> Row:
        """A copy of a row: a part would keep its whole row group in memory for as long as someone has it."""
        lists = {
            name: values[offsets[number] : offsets[number + 1]].copy()
            for name, (values, offsets) in self.lists.items()
        }
        return lists | {name: values[number] for name, values in self.values.items()}


# A row that is in memory, but not yet cut out of its columns.
_Place = tuple[_Columns, int]


class RowStream(IterableDataset[Row]):
    """Rows of Parquet files, each once, in an order that seed and epoch decide.

    Row groups come in random order, a pool of them at a time. A pool's rows are shuffled, and those of like
    length put into batches that come in random order. Only the last batch may be smaller than the others.

    The workers of a `DataLoader` share the batches: each reads all row groups and gives every n-th batch. The
    loader then gives the same batches in the same order whatever the number of its workers, and as many as it
    says it has, which is what an exact resume needs. Of several processes each gets its part of every batch
    from accelerate, if it is told not to dispatch batches and `batch_size` counts the rows of all processes.

    Args:
        groups: Row groups, from `find_row_groups`.
        batch_size: Rows of a batch of all processes together.
        seed: Random seed.
        columns: What a row holds; `length` must be among it.
    """

    def __init__(
        self, groups: Sequence[RowGroup], batch_size: int, seed: int = 0, columns: Sequence[str] = COLUMNS
    ):
        self.groups = groups
        self.batch_size = batch_size
        self.seed = seed
        self.columns = columns
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of another epoch; workers of a loader learn of it when they start."""
        self.epoch = epoch

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def __iter__(self) -> Iterator[Row]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for number, batch in enumerate(self._batches()):
            if number % step == first:
                yield from (columns.row(row) for columns, row in batch)
            # The next pool is read only when nothing holds this one any more.
            batch.clear()

    def where(self, columns: Sequence[str], passes: Callable[[pa.Table], np.ndarray]) -> "RowStream":
        """The stream of those rows that pass a test.

        Args:
            columns: What the test looks at; nothing else is read.
            passes: Tells of each row of a table whether it passes.
        """
        tested = (replace(group, wanted=group.wanted[passes(group.read(columns))]) for group in self.groups)
        return RowStream([group for group in tested if len(group)], self.batch_size, self.seed, self.columns)

    def sample(self, count: int, seed: int = 0) -> Iterator[Row]:
        """So many random rows, or all if there are fewer; of a large set only some row groups are read."""
        draw = np.random.default_rng(seed)
        order = draw.permutation(len(self.groups))
        ends = np.cumsum([len(self.groups[place]) for place in order])
        groups = [self.groups[place] for place in order[: np.searchsorted(ends, SPREAD * count) + 1]]
        chosen = np.zeros(ends[len(groups) - 1], bool)
        chosen[draw.permutation(len(chosen))[:count]] = True
        parts = np.split(chosen, ends[: len(groups) - 1])
        for group, mine in zip(groups, parts, strict=True):
            if mine.any():
                columns = _Columns(group.read(self.columns))
                yield from map(columns.row, np.flatnonzero(mine).tolist())

    def _batches(self) -> Iterator[list[_Place]]:
        draw = np.random.default_rng([self.seed, self.epoch])
        for pool in self._pools(draw):
            lengths = np.array([columns.values["length"][row] for columns, row in pool])
            for batch in _group_by_length(lengths, self.batch_size, draw):
                yield [pool[place] for place in batch]
            pool.clear()

    def _pools(self, draw: np.random.Generator) -> Iterator[list[_Place]]:
        """Whole batches of rows; what is left over goes with the next pool."""
        pool: list[_Place] = []
        for place in draw.permutation(len(self.groups)):
            columns = _Columns(self.groups[place].read(self.columns))
            pool += [(columns, row) for row in range(len(self.groups[place]))]
            if len(pool) >= max(POOL, self.batch_size):
                whole = len(pool) - len(pool) % self.batch_size
                full, pool = pool[:whole], pool[whole:]
                del columns
                yield full
        if pool:
            yield pool


def _group_by_length(lengths: np.ndarray, size: int, draw: np.random.Generator) -> list[np.ndarray]:
    """Places in batches of rows of like length, in random order; what fills no batch comes last."""
    order = draw.permutation(len(lengths))
    whole = len(order) - len(order) % size
    span = size * max(1, min(NEIGHBOURHOOD, whole // (4 * size)))
    parts = [order[start : min(start + span, whole)] for start in range(0, whole, span)]
    alike = [part[np.argsort(lengths[part], kind="stable")] for part in parts]
    batches = draw.permutation(np.concatenate([order[:0], *alike]).reshape(-1, size))
    return [*batches, *([order[whole:]] if whole < len(order) else [])]
