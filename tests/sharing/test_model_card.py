"""Cards say what was measured, in a form the Hub can read, and nothing else."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard
from places import ROOT

import kenmesh_hf
from kenmesh_hf.errors import InputError
from kenmesh_hf.evaluating import HeadingScores, LabelSets, ScoredLabels, score_predictions
from kenmesh_hf.reading import Article, Heading, Qualifier
from kenmesh_hf.sharing import card_template, read_results, render_model_card, write_results
from kenmesh_hf.sharing.model_card import METRICS
from kenmesh_hf.sharing.pushing import _model_card
from kenmesh_hf.showing import has_results_blocks

CARD = (ROOT / "model_card.md").read_text(encoding="utf-8")
RESULTS = {
    "model_name": "kenmesh-test",
    "mesh_year": 2021,
    "num_labels": 29917,
    "num_parameters": 12345678,
    "training": {
        "articles": 11832,
        "index_articles": 40697,
        "sources": ["pubmed20n0014"],
        "split_rule": "By PMID.",
    },
    "evaluations": [
        {
            "name": "newest 1,500 articles",
            "dataset": "pubmed20n0014",
            "split": "test",
            "metrics": {
                "MiF": 0.55617,
                "P@5": 0.74,
                "candidate_recall": 0.912,
                "candidate_size": 406.4,
                "articles": 1500.0,
            },
        },
        {
            "name": "1990–2022",
            "metrics": {"MiF": 0.5, "candidate_recall": 0.9},
            "weak_spots": [{"what": "check tag Aged", "F1": 0.25974, "gold": 1046.0}],
        },
    ],
}


def block(card, name):
    return re.search(rf"<!-- results: {name} -->\n(.*?)<!-- /results -->", card, re.DOTALL)[1]


def test_bundled_card_agrees_with_the_bundled_results():
    results = read_results(Path(kenmesh_hf.__file__).parent / "checkpoint")
    assert render_model_card(results, CARD) == CARD
    assert card_template() == CARD


def test_metadata_is_what_the_hub_reads():
    data = ModelCard(render_model_card(RESULTS, CARD)).data
    assert (data.license, data.library_name, data.pipeline_tag) == (
        "apache-2.0",
        "transformers",
        "mesh-indexing",
    )
    assert (
        data.datasets == ["ncbi/pubmed"]
        and "mesh" in data.tags
        and data.metrics == ["f1", "precision", "recall"]
    )
    found = {(result.dataset_name, result.metric_name): result.metric_value for result in data.eval_results}
    assert found == {
        ("newest 1,500 articles", "micro F1"): 0.5562,
        ("newest 1,500 articles", "precision at 5"): 0.74,
        ("newest 1,500 articles", "candidate recall"): 0.912,
        ("newest 1,500 articles", "candidates an article"): 406.4,
        ("1990–2022", "micro F1"): 0.5,
        ("1990–2022", "candidate recall"): 0.9,
    }


def test_tables_show_the_figures():
    card = render_model_card(RESULTS, CARD)
    rows = [row.strip("|").split("|") for row in block(card, "evaluation").strip().splitlines()]
    table = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in rows}
    assert table["micro F1 (`MiF`)"] == ["0.556", "0.500"]
    assert table["candidate recall (`candidate_recall`)"] == ["0.912", "0.900"]
    assert table["candidates an article (`candidate_size`)"] == ["406", ""]
    assert "| check tag Aged | 0.260 | 1,046 |" in block(card, "weak_spots")
    assert "29,917" in block(card, "model") and "2021" in block(card, "model")
    assert "40,697" in block(card, "training") and "By PMID." in block(card, "training")


def test_the_card_of_a_model_with_encoder_names_it(encoder_model):
    card = _model_card(encoder_model, "library/tagger")
    assert "| text encoder | unnamed (bert, 2 layers of 16) |" in block(card, "model")
    assert "text encoder" not in CARD and "biLSTM" not in CARD


def test_card_is_its_own_template():
    filled = render_model_card(RESULTS, CARD, repo_id="library/tagger")
    assert render_model_card({}, filled) == render_model_card({}, CARD)
    assert render_model_card(RESULTS, filled, repo_id="library/tagger") == filled
    worse = json.loads(json.dumps(RESULTS))
    worse["evaluations"][0]["metrics"]["MiF"] = 0.1
    assert render_model_card(worse, filled) != filled


def test_nothing_is_claimed_without_results():
    card = render_model_card({}, CARD)
    assert ModelCard(card).data.eval_results is None
    assert block(card, "evaluation").strip() == "Not measured yet."


def test_usage_is_five_lines_of_python():
    code = block(render_model_card(RESULTS, CARD, repo_id="library/tagger"), "usage")
    code = code.removeprefix("```python\n").strip("`\n")
    ast.parse(code)
    assert len([line for line in code.splitlines() if line]) == 5
    assert '"library/tagger"' in code


def test_card_has_what_a_reader_needs():
    headings = set(re.findall(r"^## (.+)$", CARD, re.MULTILINE))
    assert {"How to use", "Intended use", "Limits", "Training data", "Evaluation", "Citation"} <= headings
    assert "10.18653/v1/2022.acl-long.210" in CARD


def test_every_metric_of_a_card_is_computed_by_the_package():
    scored = ScoredLabels.from_lists([[0, 1]], [[0.9, 0.1]])
    gold = LabelSets.from_lists([[0]], num_labels=2)
    scores = score_predictions(scored, gold, np.array([True, False]), ancestors=lambda label: [])
    headings = HeadingScores()
    tag = {"ui": "D1", "name": "One", "major": True, "qualifiers": []}
    headings.add([tag], Article(headings=(Heading("D1", None, True, (Qualifier("Q000097"),)),)))
    assert set(METRICS) <= {*scores, *headings.figures()}


@pytest.mark.parametrize(
    ("results", "sentence"),
    [
        ({"evaluations": [{"name": "test", "metrics": {"MiF": 0.5}}]}, "'test' has no candidate recall"),
        ({"evaluations": [{"metrics": {"candidate_recall": 0.5}}]}, "needs a `name`"),
        ({"evaluations": [{"name": "test"}]}, "needs a `name` and `metrics`"),
    ],
)
def test_incomplete_results_are_refused(results, sentence):
    with pytest.raises(InputError, match=sentence):
        render_model_card(results, CARD)


def test_unknown_blocks_and_unreadable_results_are_refused(tmp_path):
    with pytest.raises(InputError, match="block 'weather'"):
        render_model_card({}, "<!-- results: weather -->\n<!-- /results -->\n")
    assert not has_results_blocks("# by hand\n")
    assert read_results(tmp_path) == {}
    (tmp_path / "results.json").write_text("[1]")
    with pytest.raises(InputError, match="one JSON object"):
        read_results(tmp_path)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_results(tmp_path)


def test_results_are_merged_by_the_name_of_the_evaluation(tmp_path):
    write_results(tmp_path, RESULTS)
    better = {"name": "1990–2022", "metrics": {"MiF": 0.6, "candidate_recall": 0.95}}
    write_results(tmp_path, {"mesh_year": 2024, "evaluations": [better]})
    results = read_results(tmp_path)
    assert results["mesh_year"] == 2024 and results["num_labels"] == RESULTS["num_labels"]
    assert results["evaluations"] == [RESULTS["evaluations"][0], better]
    with pytest.raises(InputError, match="no candidate recall"):
        write_results(tmp_path, {"evaluations": [{"name": "leak", "metrics": {"MiF": 0.9}}]})
    assert read_results(tmp_path) == results
