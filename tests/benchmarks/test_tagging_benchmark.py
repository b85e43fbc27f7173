"""The speed benchmark on a few invented articles: every figure is there and adds up."""

import json
from pathlib import Path

import pytest
import tagging as benchmark
import torch
from tiny_model import UNSEEN

from kenmesh_hf.reading import write_articles


@pytest.fixture
def articles_file(tmp_path: Path) -> Path:
    write_articles(UNSEEN, tmp_path / "articles.jsonl")
    return tmp_path / "articles.jsonl"


def test_prints_every_figure_as_a_json_line_last(
    articles_file: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    nothing = dict.fromkeys(benchmark.cold_processes(""), ["-c", "pass"])
    monkeypatch.setattr(benchmark, "cold_processes", lambda model: nothing)
    arguments = {
        "articles": 30,
        "repeats": 1,
        "bert-texts": 1,
        "bert-layers": 1,
        "bert-words": 8,
        "threads": 1,
    }
    sizes = [f"--{name}={value}" for name, value in arguments.items()]
    benchmark.main([f"--file={articles_file}", f"--model={tiny_model}", "--batch-size=2", *sizes])
    lines = capsys.readouterr().out.splitlines()
    result = json.loads(lines[-1])
    assert set(result["stage_shares"]) == set(benchmark.STAGES)
    assert sum(result["stage_shares"].values()) == pytest.approx(1, abs=0.01)
    assert result["encoder_share"] + result["stage_shares"]["labels"] == pytest.approx(
        result["network_share"]
    )
    for name in ("articles_per_second", "ratio", "peak_memory_mb", "cold_start_seconds", "cold_start_ratio"):
        assert result[name] > 0, name
    assert any(line.startswith("candidates ") for line in lines)


def test_a_stage_inside_another_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 3.0, 7.0, 8.0])
    monkeypatch.setattr(benchmark.time, "thread_time", lambda: next(clock))
    stages = benchmark.Stages()
    assert stages.run("labels", lambda: stages.run("encoder", lambda: 5)) == 5
    assert stages.seconds == {"other": 1.0, "labels": 2.0 + 1.0, "encoder": 4.0}


def test_stages_leave_threads_and_code_as_they_were(articles_file: Path, tiny_model: Path) -> None:
    forward, threads = benchmark.KenMeSHForMeSHIndexing.forward, torch.get_num_threads()
    seconds = benchmark.measure_stages(articles_file, 4, benchmark.LoadedOptions(str(tiny_model)))
    assert all(seconds[stage] > 0 for stage in benchmark.STAGES)
    assert benchmark.KenMeSHForMeSHIndexing.forward is forward
    assert torch.get_num_threads() == threads


def test_articles_are_strangers_to_any_index(articles_file: Path) -> None:
    found = list(benchmark.read_strangers(articles_file, 3))
    assert [article.pmid for article in found] == [None] * 3
    assert all(new.title != old.title for new, old in zip(found, UNSEEN, strict=False))
