"""A model folder that version 0.1 saved: it loads, tags as it did, and can be carried on."""

import json
import tarfile
from pathlib import Path

import pytest
from new_year import NEW, new_year_articles, write_new_year
from places import DATA
from without_package import run_without_package

from kenmesh_hf import load
from kenmesh_hf.commands import main
from kenmesh_hf.reading import write_articles


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as it was saved, and beside it articles with the tags that it gave them then."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(DATA / "model-0.1.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def old_model(unpacked: Path) -> Path:
    return unpacked / "model-0.1"


@pytest.fixture(scope="module")
def tagged(unpacked: Path) -> list[dict]:
    return json.loads((unpacked / "tagged.json").read_text(encoding="utf-8"))


def assert_same_tags(given: list[list[dict]], expected: list[list[dict]]) -> None:
    for tags, before in zip(given, expected, strict=True):
        assert [tag["ui"] for tag in tags] == [tag["ui"] for tag in before]
        assert [tag["score"] for tag in tags] == pytest.approx([tag["score"] for tag in before], abs=1e-6)


def test_it_tags_as_it_did(old_model: Path, tagged: list[dict]):
    tags = load(old_model)([row["article"] for row in tagged], evidence=True)
    assert_same_tags(tags, [row["tags"] for row in tagged])
    for now, before in zip(tags, tagged, strict=True):
        for tag, old in zip(now, before["tags"], strict=True):
            near = [
                {name: neighbour[name] for name in ("pmid", "similarity")}
                for neighbour in tag["evidence"]["neighbours"]
            ]
            assert near == [pytest.approx(neighbour) for neighbour in old["evidence"]["neighbours"]]
            assert tag["evidence"]["term"] == old["evidence"]["term"]


def test_the_code_it_carries_still_works_without_the_package(
    old_model: Path, tagged: list[dict], tmp_path: Path
):
    rows = [row["article"] | {"pmid": None} for row in tagged]
    tags = run_without_package(old_model, rows, tmp_path)[0]
    assert_same_tags(tags, load(old_model)(rows, top_k=6))


def test_its_files_are_found_intact(old_model: Path, capsys: pytest.CaptureFixture):
    assert main(["info", "--model", str(old_model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["indexed_articles"] == 120


def test_it_goes_to_a_new_year_and_takes_in_articles(old_model: Path, tmp_path: Path):
    mesh = write_new_year(tmp_path / "mesh2025.tsv")
    write_articles(new_year_articles(20, 3, 20_001), tmp_path / "new.jsonl")
    updated, grown = tmp_path / "updated", tmp_path / "grown"
    assert main(["update-mesh", "--model", str(old_model), "--mesh", str(mesh), "--out", str(updated)]) == 0
    articles = ["--articles", str(tmp_path / "new.jsonl"), "--out", str(grown)]
    assert main(["index", "add", "--model", str(updated), *articles]) == 0
    processor = load(grown).processor
    assert NEW[0] in processor.vocabulary and len(processor.candidates.articles) == 140
