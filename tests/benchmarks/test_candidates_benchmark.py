"""The candidates benchmark on a few invented articles: both ways agree, and every figure is there."""

import json
from pathlib import Path

import candidates as benchmark
import numpy as np
import pytest
from tiny import tiny_articles, tiny_vocabulary

from kenmesh_hf.indexing import build_candidates, build_index
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.reading import write_articles
from kenmesh_hf.words import train_word_vectors


def test_both_ways_give_the_same_masks() -> None:
    articles, queries = tiny_articles(80), tiny_articles(20, seed=4, first_pmid=900)
    options = CandidateOptions(neighbours=5, index="dense")
    vectors = train_word_vectors((a.abstract for a in articles), dim=8, epochs=1, progress=False)
    candidates = build_candidates(articles, tiny_vocabulary(), CandidateOptions(neighbours=5))
    given = (vectors.words, vectors.matrix)
    candidates.index = build_index([benchmark.count_words(articles)], options, given)
    alone = benchmark.search_alone(candidates, articles)
    for ours, theirs in zip(
        benchmark.masks(candidates, queries),
        benchmark.masks_one_by_one(candidates, queries, alone),
        strict=True,
    ):
        assert len(ours) and np.array_equal(ours, theirs)


def test_prints_every_figure_as_a_json_line_last(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_articles(tiny_articles(120), tmp_path / "articles.jsonl")
    sizes = ["--queries=40", "--neighbours=5", "--vector-epochs=1"]
    benchmark.main([f"--file={tmp_path / 'articles.jsonl'}", f"--model={tiny_model}", *sizes])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["indexed"] == 80
    assert result["ratio"] > 0 and result["ratio_dense"] > 0
    assert 0 < result["bytes_per_candidate"]
    for index in ("sparse", "dense"):
        recall = {name: figures["recall"] for name, figures in result["recall"][index].items()}
        assert recall["together"] >= recall["neighbours"] and recall["best 500"] <= 1
