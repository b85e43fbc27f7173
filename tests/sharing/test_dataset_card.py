"""A prepared dataset: splits found, candidates measured, the card as the Hub reads it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict
from huggingface_hub import DatasetCard

from kenmesh_hf import sharing
from kenmesh_hf.errors import InputError
from kenmesh_hf.sharing import render_dataset_card
from kenmesh_hf.sharing.dataset_card import measure_candidates, parquet_files

ROWS = {
    "pmid": ["1", "2"],
    "labels": [[1, 2, 3], [4]],
    "unknown_labels": [1, 0],
    "candidate_ids": [[1, 2, 9, 8, 7], [5]],
}


def write(path, rows=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), path)
    return path


def test_candidate_recall_counts_unknown_descriptors_as_missed(tmp_path):
    paths = [write(tmp_path / "train-0.parquet"), write(tmp_path / "train-1.parquet")]
    assert measure_candidates(paths) == {"articles": 4, "candidate_recall": 2 / 5, "candidate_size": 3.0}


def test_rows_without_candidates_are_counted_only(tmp_path):
    assert measure_candidates([write(tmp_path / "train.parquet", {"pmid": ["1"]})]) == {"articles": 1}


def test_splits_are_found_by_name(tmp_path):
    names = (
        "kenmesh-train-00000-of-00002.parquet",
        "kenmesh-train-00001-of-00002.parquet",
        "deep/test.parquet",
    )
    for name in (*names, "latest.parquet", "training.parquet", ".stages/test.parquet"):
        write(tmp_path / name)
    with parquet_files(tmp_path) as splits:
        found = {split: [path.name for path in paths] for split, paths in splits.items()}
    assert found == {"train": list(names[:2]), "test": ["test.parquet"]}


def test_saved_datasets_become_parquet(tmp_path):
    DatasetDict({"train": Dataset.from_dict(ROWS), "validation": Dataset.from_dict(ROWS)}).save_to_disk(
        tmp_path
    )
    with parquet_files(tmp_path) as splits:
        assert {split: pq.read_table(paths[0]).num_rows for split, paths in splits.items()} == {
            "train": 2,
            "validation": 2,
        }
    planned = sharing.push_dataset(tmp_path, "library/prepared", dry_run=True)
    assert list(planned.files) == [
        "README.md",
        "data/train-00000-of-00001.parquet",
        "data/validation-00000-of-00001.parquet",
    ]


def test_folder_without_splits_is_refused(tmp_path):
    write(tmp_path / "articles.parquet")
    with pytest.raises(InputError, match="no Parquet file named after a split"), parquet_files(tmp_path):
        pass


def test_card_tells_sources_year_licence_split_and_recall():
    results = {
        "mesh_year": 2021,
        "sources": ["pubmed20n0014.xml.gz"],
        "split_rule": "Newest 1,500 articles by PMID are the test set.",
        "candidates": {"train": {"candidate_recall": 0.9123, "candidate_size": 431.2}},
    }
    card = DatasetCard(render_dataset_card(results, {"train": 11832, "test": 1500}, "library/prepared"))
    assert card.data.license == "other" and card.data.license_name == "nlm-terms-and-conditions"
    assert card.data.size_categories == ["10K<n<100K"]
    assert card.data.configs[0]["data_files"][1] == {"split": "test", "path": "data/test-*.parquet"}
    assert "| train | 11,832 | 0.912 | 431 |" in card.text and "| test | 1,500 |  |  |" in card.text
    for text in (
        "pubmed20n0014.xml.gz",
        "MeSH 2021",
        "Newest 1,500 articles",
        "National Library of",
        "# prepared",
    ):
        assert text in card.text


def test_card_of_the_folder_is_sent_as_it_is(tmp_path):
    write(tmp_path / "data" / "train-00000.parquet")
    (tmp_path / "README.md").write_text("# Prepared\n")
    assert sharing.push_dataset(tmp_path, "library/prepared", dry_run=True).files["README.md"] == 11
