"""What limits whole headings: each way knows more of the answer than being told, and scores better."""

import json

import headings
import pytest
from tiny_headings import OTHERS

from kenmesh_hf.reading import write_articles


def measure(capsys, *options) -> dict:
    headings.main(list(map(str, options)))
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_part_of_the_answer_never_makes_it_worse(telling_model, tmp_path, capsys):
    write_articles(OTHERS, tmp_path / "articles.jsonl")
    found = measure(capsys, "--articles", tmp_path / "articles.jsonl", "--model", telling_model)
    assert found["major_articles"] == sum(any(h.major for h in a.headings) for a in OTHERS)
    for kind in headings.KINDS:
        told, right = found["told"][kind], found["right_headings"][kind]
        assert 0.2 < told["MiF"] <= found["right_tags"][kind]["MiF"] <= right["MiF"]
        assert right["MiP"] == 1.0 and right["MiR"] >= told["MiR"]
        assert told["MiF"] <= found["right_descriptors"][kind]["MiF"]


def test_headings_of_another_file_are_joined(telling_model, tmp_path, capsys):
    articles = [article.to_dict() for article in OTHERS[:20]]
    plain = [row | {"mesh": [{"ui": item["ui"]} for item in row["mesh"]]} for row in articles]
    for name, rows in (("plain", plain), ("headings", articles)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--articles", tmp_path / "plain.jsonl", "--model", telling_model]
    with pytest.raises(SystemExit, match="give --headings"):
        measure(capsys, *options)
    assert measure(capsys, *options, "--headings", tmp_path / "headings.jsonl")["qualifier_articles"] > 5


def test_a_model_without_headings_is_refused(tiny_model, tmp_path):
    write_articles(OTHERS[:2], tmp_path / "articles.jsonl")
    with pytest.raises(SystemExit, match="tells no major topics"):
        headings.main(["--articles", str(tmp_path / "articles.jsonl"), "--model", str(tiny_model)])
