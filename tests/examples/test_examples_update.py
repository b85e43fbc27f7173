"""The example of a new MeSH year on invented articles: the new descriptor is learned, the old ones stay."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub_server import TOKEN, HubServer
from new_year import new_year_articles, write_new_year
from patience import PATIENCE
from places import EXAMPLES
from reviewed_desk import reviewed

from kenmesh_hf import load
from kenmesh_hf.desk import Desk
from kenmesh_hf.reading import write_articles

SCRIPT = EXAMPLES / "finetune_new_mesh_year.py"


def run(options: dict[str, object], hub: str, folder: Path) -> subprocess.CompletedProcess:
    """The script with the test double for the Hub."""
    settings = {"HF_ENDPOINT": hub, "HF_HOME": str(folder / "home"), "HF_TOKEN": TOKEN}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return subprocess.run(
        [sys.executable, str(SCRIPT), *given],
        env=inherited | settings | {"HF_HUB_DISABLE_XET": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("kind", ["tiny_model", "encoder_model"])
def test_a_new_year_is_learned_and_the_old_one_kept(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    tiny_model: Path = request.getfixturevalue(kind)
    mesh = write_new_year(tmp_path / "mesh2025.tsv")
    write_articles(new_year_articles(60, 3, 20_001), tmp_path / "new.jsonl")
    write_articles(new_year_articles(40, 4, 30_001), tmp_path / "held_out.jsonl")
    write_articles(new_year_articles(40, 5, 40_001), tmp_path / "tune.jsonl")
    options = {"model": tiny_model, "mesh": mesh, "articles": tmp_path / "new.jsonl"}
    options |= {"tune": tmp_path / "tune.jsonl", "held-out": tmp_path / "held_out.jsonl"}
    options |= {"out": tmp_path / "out", "epochs": 12, "learning-rate": 1e-3, "push": "library/new-year"}
    with HubServer() as server:
        done = run(options, server.url, tmp_path)
        pushed = server.files("library/new-year")
    assert done.returncode == 0, done.stderr
    assert "60 articles joined the index, 0 were in it" in done.stdout
    told = done.stdout[done.stdout.index('{\n  "before"') :]
    figures = json.JSONDecoder().raw_decode(told)[0]
    assert figures["before"]["new_recall_at_10"] == 0
    assert 0 < figures["updated"]["new_candidate_recall"] <= 0.5
    assert figures["finetuned"]["new_recall_at_10"] > max(0.7, figures["updated"]["new_recall_at_10"])
    assert figures["updated"]["old_MiF"] > figures["before"]["old_MiF"] - 0.02
    assert figures["finetuned"]["old_MiF"] > figures["before"]["old_MiF"] - 0.02
    saved = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert set(pushed) == saved | {"README.md", ".gitattributes"} and server.url in told
    tagger = load(tmp_path / "out")
    assert len(tagger.processor.candidates.articles) == 180 and tagger.processor.vocabulary.year == 2025


def test_what_was_decided_at_a_desk_is_learned(tiny_model: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path / "review.sqlite")
    reviewed(desk, new_year_articles(150, 3, 20_001))
    mesh = write_new_year(tmp_path / "mesh2025.tsv")
    options = {"model": tiny_model, "mesh": mesh, "articles": desk.path, "out": tmp_path / "out", "epochs": 1}
    done = run(options, "http://127.0.0.1:9", tmp_path)
    desk.close()
    assert done.returncode == 0, done.stderr
    figures = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index('{\n  "before"') :])[0]
    assert 20 < figures["finetuned"]["articles"] < 60
    assert len(load(tmp_path / "out").processor.candidates.articles) > 180
    half = run(options | {"tune": desk.path}, "http://127.0.0.1:9", tmp_path)
    assert half.returncode == 2 and "give both --tune and --held-out, or neither" in half.stderr
