"""The examples for other people's code, run as their readers would run them, with a tiny model."""

import ast
import runpy
import sys

import pytest
from places import EXAMPLES
from tiny_model import UNSEEN

from kenmesh_hf.reading import write_articles
from kenmesh_hf.spreading import RayOptions, connected


@pytest.fixture
def run(monkeypatch, capsys, tiny_model):
    """Runs an example with the tiny model as its first argument; gives what it printed."""

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, str(tiny_model), *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_tag_a_list(run):
    first, second = run("tag_a_list.py").splitlines()
    assert first.startswith("1 ") and second.startswith("2 ")
    assert max(first.count(";"), second.count(";")) <= 4
    source = (EXAMPLES / "tag_a_list.py").read_text(encoding="utf-8")
    assert len([line for line in source.splitlines()[1:] if line]) <= 10
    assert ast.get_docstring(ast.parse(source))


def test_tag_a_dataset(run, tmp_path, tiny_tagger):
    write_articles(UNSEEN[:5], tmp_path / "articles.jsonl")
    lines = run("tag_a_dataset.py", tmp_path / "articles.jsonl").splitlines()
    rows = [{"title": a.title, "abstract": a.abstract, "journal": a.journal} for a in UNSEEN[:5]]
    expected = [[tag["ui"] for tag in tags] for tags in tiny_tagger(rows)]
    assert lines == [f"{row['title']} {uis}" for row, uis in zip(rows, expected, strict=True)]
    assert len(run("tag_a_dataset.py").splitlines()) == 2


def test_sklearn_style(run, monkeypatch, tiny_model, tiny_tagger):
    assert run("sklearn_style.py").startswith("Insulin glargine in type 2 diabetes [")
    names = runpy.run_path(str(EXAMPLES / "sklearn_style.py"))
    classifier = names["MeshClassifier"](str(tiny_model), threshold=0.5).fit()
    texts = [article.abstract for article in UNSEEN]
    found = classifier.predict(texts)
    assert found.shape == (len(texts), 26)
    for row, tags in zip(found, tiny_tagger(texts, threshold=0.5), strict=True):
        assert {classifier.classes_[label] for label in row.indices} == {tag["ui"] for tag in tags}
    assert classifier.predict(["", "…"]).shape == (2, 26)
    assert classifier.get_params() == {"model": str(tiny_model), "threshold": 0.5}


def test_demo(run):
    out = run("demo.py")
    assert out.count("\n\n") >= 3
    assert "kenmesh serve" in out.splitlines()[-1]


def test_tag_on_ray(run, tmp_path, tiny_tagger):
    write_articles(UNSEEN[:5], tmp_path / "articles.jsonl")
    with connected(RayOptions(workers=2)):
        lines = run("tag_on_ray.py", tmp_path / "articles.jsonl").splitlines()
    expected = tiny_tagger([article.as_input() for article in UNSEEN[:5]], top_k=5)
    names = [[tag["name"] for tag in tags] for tags in expected]
    rows = zip(UNSEEN[:5], names, strict=True)
    assert sorted(lines) == sorted(f"{article.pmid} {article.title} {tags}" for article, tags in rows)
