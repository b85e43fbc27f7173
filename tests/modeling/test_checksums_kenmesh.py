"""Checksums: every damaged, missing or foreign artefact is named; a missing index is no damage."""

import json

import pytest

from kenmesh_hf.modeling.checksums_kenmesh import check_checksums, read_checksums, write_checksums


@pytest.fixture
def folder(tmp_path):
    files = {
        "model.safetensors": b"weights " * 100,
        "mesh_vocabulary.tsv.gz": b"vocabulary",
        "neighbours.safetensors": b"index" * 50,
        "tokenizer.json": b"{}",
        "config.json": b"{}",
        "modeling_kenmesh.py": b"",
        "README.md": b"card",
        "optimizer.pt": b"not ours",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "checkpoint-10").mkdir()
    write_checksums(tmp_path)
    return tmp_path


def test_lists_artefacts_and_nothing_else(folder):
    assert set(read_checksums(folder)) == {
        "mesh_vocabulary.tsv.gz",
        "model.safetensors",
        "neighbours.safetensors",
        "tokenizer.json",
    }
    assert check_checksums(folder) == ()


def test_digest_is_the_sha256_of_the_bytes(folder):
    (folder / "tokenizer.json").write_bytes(b"abc")  # the example of FIPS 180-2
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert write_checksums(folder)["tokenizer.json"] == digest


def test_same_files_give_the_same_bytes(folder):
    first = (folder / "checksums.json").read_bytes()
    write_checksums(folder)
    assert (folder / "checksums.json").read_bytes() == first
    write_checksums(folder, ["tokenizer.json"])
    assert (folder / "checksums.json").read_bytes() == first


@pytest.mark.parametrize(
    "content", [b"weights " * 99, b"weights " * 99 + b"Weights ", b""], ids=["cut", "changed", "empty"]
)
def test_damaged_file_is_named_with_a_way_out(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors.*cut short.*again"):
        check_checksums(folder)
    assert check_checksums(folder, ["tokenizer.json"]) == ()


def test_part_of_another_model_is_refused(folder, tmp_path):
    (folder / "neighbours.safetensors").write_bytes(b"another index")
    with pytest.raises(ValueError, match=r"neighbours\.safetensors.*another model"):
        check_checksums(folder)
    write_checksums(folder, ["neighbours.safetensors"])
    assert check_checksums(folder) == ()


def test_missing_index_is_reported_and_missing_vocabulary_refused(folder):
    (folder / "neighbours.safetensors").unlink()
    assert check_checksums(folder) == ("neighbours.safetensors",)
    assert check_checksums(folder, ["model.safetensors"]) == ()
    (folder / "mesh_vocabulary.tsv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"mesh_vocabulary\.tsv\.gz is missing.*again"):
        check_checksums(folder)


def test_new_listing_forgets_files_that_are_gone(folder):
    (folder / "neighbours.safetensors").unlink()
    write_checksums(folder)
    assert check_checksums(folder) == ()


def test_folder_without_listing_passes(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert check_checksums(tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        ("[]", "must map"),
        ('{"model.safetensors": 3}', "must map"),
        (json.dumps({"../elsewhere/model.safetensors": "0"}), "not a file of this folder"),
    ],
)
def test_unusable_listing_is_refused(folder, text, sentence):
    (folder / "checksums.json").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        check_checksums(folder)
