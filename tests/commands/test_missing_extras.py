"""What a person meets whose installation lacks an optional library: a sentence, before any work is done."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_vocabulary
from tiny_model import TRAINING, UNSEEN

from kenmesh_hf import KenMeSHProcessor
from kenmesh_hf.commands import main
from kenmesh_hf.indexing import build_candidates
from kenmesh_hf.modeling import dense_neighbours_kenmesh
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.modeling.text_kenmesh import content_words
from kenmesh_hf.reading import write_articles


@pytest.mark.parametrize(
    "library, extra, options",
    [
        ("matplotlib", "train", []),
        ("gensim", "train", []),
        ("faiss", "cpu", ["--index", "dense", "--word-vectors", "{vectors}"]),
    ],
)
def test_preparing(library, extra, options, tiny_sources, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, library, None)
    given = [option.format(vectors=tiny_sources["word_vectors"]) for option in options]
    files = ["--mesh", tiny_sources["mesh"], "--articles", *tiny_sources["articles"]]
    assert main(["prepare", *files, "--out", str(tmp_path / "data"), *given]) == 1
    assert f"needs {library}. Install it: pip install 'kenmesh-hf[{extra}]'" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_training(tiny_prepared, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["train", str(tiny_prepared), "--out", str(tmp_path / "model")]) == 1
    assert "needs matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_spreading(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in [name for name in sys.modules if name.startswith("kenmesh_hf.spreading")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["tag", str(tmp_path), "--out", str(tmp_path / "tags"), "--engine", "ray"]) == 1
    assert "needs ray. Install it: pip install 'kenmesh-hf[ray]'" in capsys.readouterr().err


def test_evaluating(tiny_model, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_articles(UNSEEN, tmp_path / "test.jsonl")
    command = ["evaluate", "--model", str(tiny_model), "--articles", str(tmp_path / "test.jsonl"), "--quiet"]
    assert main([*command, "--out", str(tmp_path / "figures")]) == 1
    assert "needs matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "figures").exists()
    assert main(command) == 0


def test_a_model_with_a_dense_index(tiny_model: Path, tmp_path: Path, monkeypatch, capsys):
    words = sorted({word for article in TRAINING for word in content_words(article.abstract)})
    vectors = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    options = CandidateOptions(index="dense")
    candidates = build_candidates(TRAINING, tiny_vocabulary(), options, word_vectors=(words, vectors))
    folder = shutil.copytree(tiny_model, tmp_path / "dense")
    KenMeSHProcessor.from_pretrained(tiny_model).with_parts(candidates=candidates).save_pretrained(folder)
    command = ["tag", "--model", str(folder), "--title", UNSEEN[0].title, "--quiet"]
    assert main(command) == 0
    monkeypatch.setattr(dense_neighbours_kenmesh, "faiss", None)
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "kenmesh-hf[cpu]" in said and "Traceback" not in said
