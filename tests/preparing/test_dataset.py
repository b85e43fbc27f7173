"""Rows of a dataset: what they hold, through the builder, by several processes, as a stream."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny import TRAIN

from kenmesh_hf.errors import InputError
from kenmesh_hf.preparing import column_bytes, encode_articles, load_prepared, write_rows
from kenmesh_hf.preparing.dataset import KenMeSHBuilder
from kenmesh_hf.reading import Article, Heading, read_articles


def builder(prepared: Path, cache: Path, **files: list[Path]) -> KenMeSHBuilder:
    names = {split: [str(path) for path in paths] for split, paths in files.items()}
    return KenMeSHBuilder(cache_dir=str(cache), processor=str(prepared / "processor"), files=names)


@pytest.fixture
def files(tiny_prepared: Path) -> list[Path]:
    return sorted((tiny_prepared / "articles").glob("train-*.jsonl.gz"))


def test_rows_hold_ids_of_the_article(tiny_prepared: Path) -> None:
    processor = load_prepared(tiny_prepared).processor
    headings = (Heading("D900003"), Heading("D900003", major=True), Heading("D006801"), Heading("D999999"))
    article = Article("Patients and a word", "", "77", "Sopeti Letters", 1999, headings)
    (row,) = encode_articles(processor, [article]).to_pylist()
    assert row["labels"] == sorted(map(processor.vocabulary.label_of, ("D900003", "D006801")))
    assert row["unknown_labels"] == 1
    assert (row["pmid"], row["journal"], row["year"], row["input_ids"]) == ("77", "Sopeti Letters", 1999, [])
    assert row["length"] == len(row["title_input_ids"]) > 0
    assert len(row["candidate_features"]) == len(row["candidate_ids"]) * len(processor.candidates.FEATURES)


def test_nothing_known_is_a_row_too(tiny_prepared: Path) -> None:
    processor = load_prepared(tiny_prepared).processor
    (row,) = encode_articles(processor, [Article("")]).to_pylist()
    assert row["title_input_ids"] == row["input_ids"] == row["labels"] == []
    assert row["year"] is None


def test_training_row_equals_that_of_an_unseen_twin(tiny_prepared: Path, files: list[Path]) -> None:
    """Known by its words alone, an article still does not meet itself."""
    processor = load_prepared(tiny_prepared).processor
    article = next(iter(read_articles(files[0])))
    twin = Article(article.title.upper(), article.abstract, None, article.journal, headings=article.headings)
    known, unknown = encode_articles(processor, [article, twin]).to_pylist()
    assert known["candidate_ids"] == unknown["candidate_ids"]
    assert known["candidate_features"] == unknown["candidate_features"]


def test_builder_gives_the_prepared_rows(tiny_prepared: Path, files: list[Path], tmp_path: Path) -> None:
    made = builder(tiny_prepared, tmp_path, train=files)
    made.download_and_prepare(num_proc=2)
    rows = made.as_dataset(split="train")
    assert len(rows) == TRAIN
    expected = load_prepared(tiny_prepared).train.with_format(None)
    assert rows.features == expected.features
    assert [rows[i] for i in (0, TRAIN - 1)] == [expected[i] for i in (0, TRAIN - 1)]


def test_builder_streams(tiny_prepared: Path, files: list[Path], tmp_path: Path) -> None:
    stream = builder(tiny_prepared, tmp_path, train=files).as_streaming_dataset(split="train")
    first = next(iter(stream))
    assert first["pmid"] == next(iter(read_articles(files[0]))).pmid
    assert not list(tmp_path.rglob("*.arrow"))


def test_builder_without_files_is_refused(tiny_prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no article files"):
        builder(tiny_prepared, tmp_path).download_and_prepare()


def test_candidate_ids_take_little_room(tiny_prepared: Path, tmp_path: Path) -> None:
    processor = load_prepared(tiny_prepared).processor
    table = encode_articles(processor, [Article("word", "word", headings=(Heading("D900000"),))] * 8)
    draw = np.random.default_rng(0)
    ids = [np.sort(draw.choice(30_000, 500, replace=False)).astype(np.int32) for _ in range(8)]
    place = table.schema.get_field_index("candidate_ids")
    column = pa.array([row.tolist() for row in ids], pa.list_(pa.int32()))
    table = table.set_column(place, table.schema.field(place), column)
    write_rows([table], tmp_path / "rows.parquet")
    values, size = column_bytes(tmp_path / "rows.parquet", "candidate_ids")
    assert values == 8 * 500
    assert size < 2 * values
    assert pq.read_table(tmp_path / "rows.parquet")["candidate_ids"].to_pylist() == [
        row.tolist() for row in ids
    ]


def test_prepared_parts(tiny_prepared: Path) -> None:
    prepared = load_prepared(tiny_prepared)
    assert len(prepared.word_vectors) == len(prepared.processor.word_ids)
    row = prepared.validation[0]
    assert isinstance(row["candidate_features"], np.ndarray)
    assert len(prepared.test) > 0
    with pytest.raises(InputError, match="no dev articles"):
        prepared.split("dev")


def test_folder_without_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="kenmesh prepare"):
        load_prepared(tmp_path)
