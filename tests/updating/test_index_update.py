"""`kenmesh index add`: a saved model with more articles in its index."""

import shutil
from pathlib import Path

import pytest
from tiny import tiny_articles
from tiny_model import TRAINING, UNSEEN

from kenmesh_hf import load
from kenmesh_hf.errors import InputError
from kenmesh_hf.modeling.candidates_kenmesh import NEIGHBOURS_FILE
from kenmesh_hf.reading import write_articles
from kenmesh_hf.updating import add_to_model_folder

NEW = tiny_articles(30, seed=5, first_pmid=8001)


def test_a_model_shared_without_its_index_is_refused(tiny_model: Path, tmp_path: Path):
    bare = tmp_path / "bare"
    shutil.copytree(tiny_model, bare, ignore=shutil.ignore_patterns(NEIGHBOURS_FILE))
    write_articles(NEW, tmp_path / "new.jsonl")
    with pytest.raises(InputError, match="without its index"):
        add_to_model_folder(bare, [tmp_path / "new.jsonl"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_saved_model_grows(tiny_model: Path, tmp_path: Path):
    write_articles([*NEW, TRAINING[0]], tmp_path / "new.jsonl")
    added, report = add_to_model_folder(tiny_model, [tmp_path / "new.jsonl"], tmp_path / "out")
    assert added == 30 and report.read == 31 and report.notes == {"already in the index": 1}
    tagger = load(tmp_path / "out")
    assert len(tagger.processor.candidates.articles) == 150
    neighbours = tagger(
        {"title": NEW[0].title, "abstract": NEW[0].abstract}, threshold=0.0, top_k=3, evidence=True
    )
    assert NEW[0].pmid not in {n["pmid"] for tag in neighbours for n in tag["evidence"]["neighbours"]}
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"modeling_kenmesh.py", "checksums.json"}
    with pytest.raises(InputError, match="already there"):
        add_to_model_folder(tiny_model, [tmp_path / "new.jsonl"], tmp_path / "out")


def test_card_and_figures_of_the_smaller_index_stay_behind(tiny_model: Path, tmp_path: Path):
    told = tmp_path / "told"
    shutil.copytree(tiny_model, told)
    (told / "README.md").write_text("# Figures\n")
    (told / "results.json").write_text("{}")
    write_articles(NEW, tmp_path / "new.jsonl")
    add_to_model_folder(told, [tmp_path / "new.jsonl"], tmp_path / "out")
    assert not {"README.md", "results.json"} & {path.name for path in (tmp_path / "out").iterdir()}


def test_thresholds_are_chosen_anew_where_articles_for_that_are_given(tiny_model: Path, tmp_path: Path):
    write_articles(NEW, tmp_path / "new.jsonl")
    write_articles(UNSEEN, tmp_path / "tune.jsonl")
    files = [tmp_path / "new.jsonl"], tmp_path / "out"
    _, report = add_to_model_folder(tiny_model, *files, tune=[tmp_path / "tune.jsonl"])
    assert report.read == len(NEW) + len(UNSEEN)
    before, after = (load(folder).processor.thresholds for folder in (tiny_model, tmp_path / "out"))
    assert after.held_out and after.global_threshold > before.global_threshold
