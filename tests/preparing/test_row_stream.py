"""The stream of rows: each once, in an order that seed and epoch decide, shared by workers and processes."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from accelerate.data_loader import prepare_data_loader, skip_first_batches
from tiny import TRAIN
from torch.utils.data import DataLoader

from kenmesh_hf.errors import InputError
from kenmesh_hf.preparing import RowStream, load_prepared, write_rows
from kenmesh_hf.preparing import row_stream as module
from kenmesh_hf.preparing.dataset import FEATURES
from kenmesh_hf.preparing.row_stream import find_row_groups

GROUP, ROWS, BATCH = 16, 310, 8
COLUMNS = ("pmid", "length", "labels")


def make_table(first: int, count: int) -> pa.Table:
    """Rows whose number is their PMID, of random lengths."""
    draw = np.random.default_rng(first)
    numbers = range(first, first + count)
    words = [[1] * int(size) for size in draw.integers(1, 200, count)]
    columns: dict[str, list] = {name: [[number] for number in numbers] for name in FEATURES}
    columns |= {"pmid": list(map(str, numbers)), "journal": [None] * count, "unknown_labels": [0] * count}
    columns |= {"year": [1990 + number % 30 for number in numbers], "input_ids": words}
    columns |= {"length": list(map(len, words)), "candidate_features": [np.ones(2, np.float16)] * count}
    return pa.table(columns, schema=FEATURES.arrow_schema)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parquet")
    paths = [folder / f"train-{number}.parquet" for number in range(3)]
    starts = np.array_split(np.arange(0, ROWS, GROUP), len(paths))
    for path, mine in zip(paths, starts, strict=True):
        write_rows((make_table(int(start), min(GROUP, ROWS - int(start))) for start in mine), path)
    return paths


@pytest.fixture(autouse=True)
def _small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POOL", 70)


def stream(files: list[Path], seed: int = 0, batch_size: int = BATCH) -> RowStream:
    return RowStream(find_row_groups(files), batch_size, seed, COLUMNS)


def pmids(rows: Iterator[dict]) -> list[int]:
    return [int(row["pmid"]) for row in rows]


def load(rows: RowStream, workers: int = 0) -> DataLoader:
    return DataLoader(rows, BATCH, collate_fn=pmids, num_workers=workers)


def test_each_row_comes_once_in_an_order_of_seed_and_epoch(files: list[Path]) -> None:
    rows = stream(files)
    first = pmids(iter(rows))
    assert len(rows) == ROWS and sorted(first) == list(range(ROWS))
    assert pmids(iter(stream(files))) == first != pmids(iter(stream(files, seed=1)))
    rows.set_epoch(1)
    second = pmids(iter(rows))
    assert sorted(second) == sorted(first) and second != first
    # Batches are made anew, too, not only put into another order.
    made = [{frozenset(order[i : i + BATCH]) for i in range(0, ROWS, BATCH)} for order in (first, second)]
    assert len(made[0] & made[1]) < 3


def test_rows_are_arrays_of_their_own(files: list[Path]) -> None:
    row = next(iter(stream(files)))
    assert row["labels"].tolist() == [int(row["pmid"])]
    assert row["labels"].dtype == np.int32 and row["labels"].base is None


def test_rows_are_those_of_the_dataset(tiny_prepared: Path) -> None:
    prepared = load_prepared(tiny_prepared)
    rows = list(prepared.stream("train", BATCH))
    known = {tuple(row["title_input_ids"]) + tuple(row["input_ids"]): row for row in prepared.train}
    assert len(rows) == TRAIN
    for row in rows:
        same = known[tuple(row["title_input_ids"]) + tuple(row["input_ids"])]
        assert all(np.array_equal(row[name], same[name]) for name in row)


def test_rows_of_like_length_share_a_batch(files: list[Path]) -> None:
    lengths = np.array([row["length"] for row in stream(files)])
    whole = lengths[: ROWS // BATCH * BATCH].reshape(-1, BATCH)
    apart = np.random.default_rng(0).permutation(whole.ravel()).reshape(whole.shape)
    assert np.ptp(whole, axis=1).mean() < 0.6 * np.ptp(apart, axis=1).mean()
    # Long and short batches take turns.
    assert abs(np.corrcoef(np.arange(len(whole)), whole.mean(1))[0, 1]) < 0.5


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_change_nothing(files: list[Path], workers: int) -> None:
    rows = stream(files)
    alone, shared = load(rows), load(rows, workers)
    for epoch in range(2):
        rows.set_epoch(epoch)
        batches = list(alone)
        assert [len(batch) for batch in batches] == [BATCH] * (ROWS // BATCH) + [ROWS % BATCH]
        assert list(shared) == batches and len(shared) == len(batches)


@pytest.mark.parametrize("workers", [0, 2])
def test_two_processes_share_each_batch(files: list[Path], workers: int) -> None:
    rows = stream(files, batch_size=2 * BATCH)
    whole = pmids(iter(rows))
    parts = [
        prepare_data_loader(
            load(rows, workers),
            num_processes=2,
            process_index=index,
            dispatch_batches=False,
            put_on_device=True,
        )
        for index in range(2)
    ]
    first = [list(part) for part in parts]
    together = [pmid for both in zip(*first, strict=True) for batch in both for pmid in batch]
    # The last batch is filled with rows of the first one, so that both processes have as many.
    assert together[:ROWS] == whole and len(together) == -(-ROWS // (2 * BATCH)) * 2 * BATCH
    assert len(parts[0]) == len(first[0])
    # Each pass is another epoch, without being told.
    assert list(parts[0]) != first[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_goes_on_within_an_epoch(files: list[Path], workers: int) -> None:
    loader = prepare_data_loader(load(stream(files), workers), num_processes=1, dispatch_batches=False)
    loader.set_epoch(3)
    batches = list(loader)
    rest = skip_first_batches(loader, 20)
    rest.set_epoch(3)
    assert list(rest) == batches[20:]


def test_only_rows_that_pass(files: list[Path]) -> None:
    recent = stream(files).where(["year"], lambda table: pc.greater_equal(table["year"], 2010).to_numpy())
    wanted = {number for number in range(ROWS) if 1990 + number % 30 >= 2010}
    short = recent.where(["length"], lambda table: table["length"].to_numpy() < 50)
    assert sorted(pmids(iter(recent))) == sorted(wanted) and len(recent) == len(wanted)
    assert 0 < len(short) < len(recent)
    assert all(row["length"] < 50 and int(row["pmid"]) in wanted for row in short)


def test_sample_of_a_small_set_is_of_all_its_rows(files: list[Path]) -> None:
    drawn = [pmids(stream(files).sample(ROWS // 3, seed)) for seed in range(12)]
    assert {len(set(sample)) for sample in drawn} == {ROWS // 3}
    assert pmids(stream(files).sample(ROWS // 3, 0)) == drawn[0] != drawn[1]
    counts = np.bincount(np.concatenate(drawn), minlength=ROWS)
    assert (counts > 0).mean() > 0.97
    assert sorted(pmids(stream(files).sample(2 * ROWS))) == list(range(ROWS))


def test_sample_of_a_large_set_reads_some_row_groups(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    plain = module.RowGroup.read
    monkeypatch.setattr(
        module.RowGroup, "read", lambda group, c: read.append(group.number) or plain(group, c)
    )
    assert len(pmids(stream(files).sample(10))) == 10
    assert len(read) <= 4


def test_a_damaged_or_missing_file_is_named(files: list[Path], tiny_prepared: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "train-0.parquet"
    damaged.write_bytes(files[0].read_bytes()[:-100])
    with pytest.raises(InputError, match=r"train-0\.parquet cannot be read .* delete it and prepare again"):
        stream([damaged])
    blank = bytearray(files[0].read_bytes())
    blank[4:2000] = bytes(1996)
    damaged.write_bytes(blank)
    with pytest.raises(InputError, match=r"train-0\.parquet cannot be read"):
        list(stream([damaged]))
    rows = stream([shutil.copy(files[0], damaged)])
    damaged.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        list(rows)
    shutil.copytree(tiny_prepared, tmp_path / "data")
    sorted((tmp_path / "data" / "data").glob("train-*"))[0].unlink()
    with pytest.raises(InputError, match=f"train articles instead of {TRAIN}.*prepare again"):
        load_prepared(tmp_path / "data").stream("train", BATCH)
    assert len(load_prepared(tmp_path / "data").validation)


def cached(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.arrow")}


def test_only_the_split_asked_for_is_converted(
    tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    prepared = load_prepared(tiny_prepared)
    assert len(list(prepared.stream("train", BATCH))) == TRAIN and not cached(tmp_path)
    assert prepared.validation is prepared.validation
    assert cached(tmp_path) == {"parquet-validation.arrow"}


def test_rows_prepared_again_are_not_taken_from_the_cache(tiny_prepared: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_prepared, copy)
    before = list(load_prepared(copy).test["pmid"])
    [file] = (copy / "data").glob("test-*.parquet")
    stat = file.stat()
    write_rows([make_table(9000, len(before))], file)
    report = json.loads((copy / "report.json").read_text(encoding="utf-8"))
    (copy / "report.json").write_text(json.dumps(report | {"fingerprint": "another"}), encoding="utf-8")
    # Not even if the files look as old as they were.
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert list(load_prepared(copy).test["pmid"])[0] == "9000"
