"""`kenmesh headings`, `evaluate --headings` and `tag --no-qualifiers`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_headings import OTHERS, TOLD

import kenmesh_hf
from kenmesh_hf.commands.cli import main
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.reading import Heading, write_articles


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Articles without and with their headings, as JSONL."""
    folder = tmp_path_factory.mktemp("headings")
    sets = {"told": TOLD, "others": OTHERS}
    for name, articles in list(sets.items()):
        plain = [tuple(Heading(h.ui, h.name) for h in article.headings) for article in articles]
        sets[f"plain-{name}"] = [replace(a, headings=h) for a, h in zip(articles, plain, strict=True)]
    for name, articles in sets.items():
        write_articles(articles, folder / f"{name}.jsonl")
    return {name: str(folder / f"{name}.jsonl") for name in sets}


@pytest.fixture(scope="module")
def plain_model(telling_tagger, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose index knows nothing of headings, as all did before."""
    processor = telling_tagger.processor
    bare = processor.candidates.articles
    bare = bare.with_headings(bare.headings.unknown(len(bare), len(bare.labels)))
    candidates = type(processor.candidates).__new__(type(processor.candidates))
    candidates.__dict__ = processor.candidates.__dict__ | {"articles": bare}
    folder = tmp_path_factory.mktemp("plain-model")
    plain = processor.with_parts(candidates=candidates, headings=None)
    MeSHIndexingPipeline(model=telling_tagger.model, processor=plain).save_pretrained(folder)
    return str(folder)


def test_a_model_is_taught_headings_from_files_joined_by_pmid(plain_model, files, tmp_path: Path, capsys):
    out = tmp_path / "told"
    given = ["--headings", files["told"], files["others"], "--validation", files["plain-others"], "--quiet"]
    line = ["headings", "--model", plain_model, "--articles", files["plain-told"], *given, "--out", str(out)]
    assert main(line) == 0
    assert f"Headings of {len(TOLD):,} indexed articles" in capsys.readouterr().out
    assert not any("major" in tag for tag in kenmesh_hf.load(plain_model)(OTHERS[0].as_input()))
    line = ["evaluate", "--model", str(out), "--articles", files["plain-others"], "--json", "--quiet"]
    assert main([*line, "--headings", files["others"]]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["major_MiF"] > 0.75 and figures["qualifier_MiF"] > 0.7
    assert main(line) == 0
    assert "major_MiF" not in json.loads(capsys.readouterr().out)


def test_what_cannot_be_taught_is_said_in_a_sentence(plain_model, files, tmp_path: Path, capsys):
    start = ["headings", "--model", plain_model, "--quiet", "--out", str(tmp_path / "told"), "--articles"]
    for articles, sentence in (
        ([files["others"]], "None of these articles is in the model's index"),
        ([files["plain-told"]], "knows no headings"),
        ([files["told"], "--headings", "missing.jsonl"], "missing.jsonl"),
    ):
        assert main([*start, *articles]) != 0
        assert sentence in capsys.readouterr().err
        assert not (tmp_path / "told").exists()


def test_tags_without_qualifiers_on_the_command_line(telling_model: Path, files, tmp_path: Path):
    line = ["tag", files["others"], "--model", str(telling_model), "--quiet", "--out"]
    assert main([*line, str(tmp_path / "all.jsonl")]) == 0
    assert main([*line, str(tmp_path / "few.jsonl"), "--no-qualifiers"]) == 0
    both = [(tmp_path / name).read_text(encoding="utf-8") for name in ("all.jsonl", "few.jsonl")]
    assert '"qualifiers": [{"ui": "Q0' in both[0] and '"major": true' in both[0]
    assert "qualifiers" not in both[1] and '"major": true' in both[1]
    assert main([*line, str(tmp_path / "tags.nbib")]) == 0
    assert "/*" in (tmp_path / "tags.nbib").read_text(encoding="utf-8")
