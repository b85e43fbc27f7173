"""Commands of a model's later life, as people run them: push, a new MeSH year, a larger index, on the Hub."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, HubServer
from new_year import NEW, write_new_year
from patience import PATIENCE
from tiny import tiny_articles
from tiny_model import TRAINING, UNSEEN

from kenmesh_hf import load
from kenmesh_hf.commands import main
from kenmesh_hf.reading import write_articles

NAME = "library/mesh-tagger"
Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def new_articles(tmp_path: Path) -> Path:
    """Thirty articles that the model does not know, one that it does."""
    write_articles([*tiny_articles(30, 5, 8001), TRAINING[0]], tmp_path / "new.jsonl")
    return tmp_path / "new.jsonl"


@pytest.fixture
def server() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


@pytest.fixture
def kenmesh(server: HubServer, tmp_path: Path) -> Run:
    """Runs the command in a process of its own, with the test double for the Hub and a token to write."""
    settings = {
        "HF_ENDPOINT": server.url,
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": TOKEN,
        "HF_HUB_DISABLE_XET": "1",
        "OMP_NUM_THREADS": "1",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}

    def run(*arguments: object, code: int = 0, **changes: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "kenmesh_hf", *map(str, arguments)]
        done = subprocess.run(
            command, env=inherited | settings | changes, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == code, done.stderr
        return done

    return run


def test_update_mesh_says_what_happened_and_writes_a_model(tiny_model: Path, tmp_path: Path, capsys) -> None:
    mesh, out = write_new_year(tmp_path / "mesh2025.tsv"), tmp_path / "out"
    command = ["update-mesh", "--model", str(tiny_model), "--mesh", str(mesh), "--out", str(out)]
    assert main(command) == 0
    assert f"{NEW[0]} {NEW[1]}" in capsys.readouterr().out
    assert load(out).processor.vocabulary.year == 2025
    assert main(command) == 1
    assert "already there" in capsys.readouterr().err


def test_index_add_tells_how_many_joined(
    tiny_model: Path, tmp_path: Path, new_articles: Path, capsys
) -> None:
    write_articles(UNSEEN, tmp_path / "tune.jsonl")
    out = tmp_path / "out"
    command = ["index", "add", "--model", tiny_model, "--articles", new_articles, "--out", out]
    assert main([*map(str, command), "--tune", str(tmp_path / "tune.jsonl")]) == 0
    assert capsys.readouterr().out == f"30 articles added → {out}\n"
    grown = load(out).processor
    assert len(grown.candidates.articles) == 150
    assert grown.thresholds.global_threshold != load(tiny_model).processor.thresholds.global_threshold


def test_articles_to_tune_on_must_not_join(
    tiny_model: Path, tmp_path: Path, new_articles: Path, capsys
) -> None:
    out = tmp_path / "out"
    command = ["index", "add", "--model", tiny_model, "--articles", new_articles, "--tune", new_articles]
    assert main([*map(str, command), "--out", str(out)]) == 1
    assert "31 held-out articles are in the candidate index" in capsys.readouterr().err
    assert not out.exists()


def test_a_model_on_the_hub_is_tagged_with_updated_and_grown(
    tiny_model: Path, tmp_path: Path, new_articles: Path, server: HubServer, kenmesh: Run
) -> None:
    planned = kenmesh("push", tiny_model, NAME, "--dry-run").stdout
    assert "neighbours.safetensors" in planned and not server.requests
    sent = kenmesh("push", tiny_model, NAME, "--private", "--revision", "mesh-2024").stdout
    assert sent.splitlines()[:-1] == [
        line.replace("(main)", "(mesh-2024)") for line in planned.splitlines()
    ] and sent.splitlines()[-1].startswith(server.url)
    assert set(server.files(NAME, "mesh-2024")) >= {path.name for path in tiny_model.iterdir()}
    hub = ("--model", NAME, "--revision", "mesh-2024")

    refused = kenmesh("info", *hub, code=1, HF_TOKEN="").stderr
    assert "private" in refused and "Traceback" not in refused
    tags = kenmesh("tag", *hub, "--title", UNSEEN[0].title, "--format", "jsonl", "--token", TOKEN).stdout
    local = load(tiny_model)(UNSEEN[0].title)
    assert [tag["ui"] for tag in json.loads(tags)["tags"]] == [tag["ui"] for tag in local]

    mesh = write_new_year(tmp_path / "mesh2025.tsv")
    kenmesh("update-mesh", *hub, "--mesh", mesh, "--out", tmp_path / "updated")
    assert load(tmp_path / "updated").processor.vocabulary.year == 2025
    kenmesh("index", "add", *hub, "--articles", new_articles, "--out", tmp_path / "grown")
    assert len(load(tmp_path / "grown").processor.candidates.articles) == 150
    assert not any(path.is_symlink() for path in (tmp_path / "grown").iterdir())


def test_the_index_may_stay_at_home(tiny_model: Path, server: HubServer, kenmesh: Run) -> None:
    kenmesh("push", tiny_model, NAME, "--without-index")
    assert "neighbours.safetensors" not in server.files(NAME)
    one = ("--title", UNSEEN[0].title, "--top-k", 3, "--format", "jsonl")
    done = kenmesh("tag", "--model", NAME, *one)
    assert len(json.loads(done.stdout)["tags"]) == 3 and "without its neighbour index" in done.stderr


def test_a_prepared_dataset_is_pushed(tiny_prepared: Path, server: HubServer, kenmesh: Run) -> None:
    planned = kenmesh("push-dataset", tiny_prepared, NAME, "--dry-run").stdout
    assert "data/train-00000-of-" in planned and not server.requests
    kenmesh("push-dataset", tiny_prepared, NAME, "--private")
    files = server.files(NAME, kind="dataset")
    assert {path.split("-")[0] for path in files if path.startswith("data/")} == {
        "data/train",
        "data/validation",
        "data/test",
    }
    assert "MeSH 2024" in files["README.md"].decode()
    wrong = kenmesh("push-dataset", tiny_prepared.parent / "none", NAME, code=1).stderr
    assert wrong.strip().splitlines()[-1].startswith("kenmesh: error: ")
