"""`kenmesh info`: what a model is, what it lacks, what is damaged."""

import json
import shutil

import pytest

from kenmesh_hf.commands import main
from kenmesh_hf.sharing import write_results


@pytest.fixture
def info(capsys):
    def info(folder, *options) -> tuple[int, str]:
        code = main(["info", "--model", str(folder), *options])
        return code, capsys.readouterr().out

    return info


@pytest.fixture
def folder(tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "model")
    return tmp_path / "model"


def test_everything_about_a_model_as_json(info, folder):
    metrics = {"MiF": 0.61, "candidate_recall": 0.97, "articles": 40}
    write_results(
        folder, {"training": {"articles": 120}, "evaluations": [{"name": "test", "metrics": metrics}]}
    )
    code, out = info(folder, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["mesh_year"], found["labels"], found["indexed_articles"]) == (2024, 26, 120)
    assert found["results"]["evaluations"][0]["metrics"] == metrics
    assert found["presets"] == {"precision": 0.7, "recall": 0.2}
    assert found["files"]["model.safetensors"] == (folder / "model.safetensors").stat().st_size
    assert set(found["versions"]) == {"kenmesh_hf", "torch", "transformers", "datasets"}
    assert (found["problems"], found["without"]) == ([], ["major topics and qualifiers"])


def test_the_same_for_people(info, folder):
    metrics = {"MiF": 0.61, "candidate_recall": 0.97}
    write_results(
        folder, {"training": {"articles": 120}, "evaluations": [{"name": "Validation", "metrics": metrics}]}
    )
    code, out = info(folder)
    assert code == 0
    rows = dict(line.split("  ", 1) for line in out.splitlines() if "  " in line)
    assert rows["mesh year"].strip() == "2024"
    assert rows["training articles"].strip() == "120"
    assert "Validation" in out and "0.6100" in out
    assert "All 6 listed files are as they were saved." in out


def test_a_model_that_tells_headings(info, telling_model, telling_tagger):
    found = json.loads(info(telling_model, "--json")[1])
    assert "major topics and qualifiers" not in found["without"]
    assert found["qualifiers"] == 76
    assert found["heading_thresholds"] == telling_tagger.processor.headings.thresholds
    assert 0 < found["articles_with_qualifiers"] <= found["articles_with_majors"] <= found["indexed_articles"]
    rows = dict(line.split("  ", 1) for line in info(telling_model)[1].splitlines() if "  " in line)
    assert rows["articles with majors"].strip() == str(found["articles_with_majors"])
    assert "threshold of a major" in rows and "threshold of a qualifier" in rows


def test_an_encoder_is_named(info, encoder_model):
    code, out = info(encoder_model, "--json")
    found = json.loads(out)
    assert code == 0 and found["text_encoder"] == "unnamed (bert, 2 layers of 16)"
    assert "text encoder" in info(encoder_model)[1]


def test_every_damaged_or_missing_file_is_named(info, folder):
    (folder / "tokenizer.json").write_text("{}")
    (folder / "mesh_vocabulary.tsv.gz").unlink()
    (folder / "neighbours.safetensors").unlink()
    code, out = info(folder)
    assert code == 1
    assert "tokenizer.json in" in out and "is not the file this model was saved with" in out
    assert "mesh_vocabulary.tsv.gz is missing" in out
    assert "neighbours.safetensors of the neighbour index is missing" in out
    code, out = info(folder, "--json")
    assert code == 1 and len(json.loads(out)["problems"]) == 3


def test_parts_that_a_model_does_without_are_named(info, folder):
    for path in [
        *folder.glob("candidates.*"),
        *folder.glob("neighbours.*"),
        folder / "thresholds.safetensors",
    ]:
        path.unlink()
    (folder / "checksums.json").unlink()
    code, out = info(folder)
    assert code == 0
    assert "candidate index, thresholds, measured results" in out
    assert "cannot be checked" in out
