"""The benchmark of the desk on a few articles: every figure is there, and nothing is lost."""

import json
from pathlib import Path

import desk as benchmark
import pytest
from tiny_model import UNSEEN

from kenmesh_hf.reading import write_articles


def test_prints_every_figure_as_a_json_line_last(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_articles(UNSEEN, tmp_path / "articles.jsonl")
    sizes = {"records": 30, "people": 4, "decisions": 40, "kills": 1, "lists": 16}
    given = [f"--{name}={value}" for name, value in sizes.items()]
    benchmark.main([*given, f"--file={tmp_path / 'articles.jsonl'}", f"--model={tiny_model}"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["records"] == 30 and result["lost"] == 0 and result["kills"] == 1
    for name in ("open_10k_records_s", "decisions_per_s", "list_ms_p99", "list_while_tagging_ms_p99"):
        assert result[name] > 0, name
