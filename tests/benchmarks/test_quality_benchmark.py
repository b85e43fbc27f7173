"""The comparison of methods on an invented corpus: all of them run, by the same rules, and are kept."""

import importlib.util
import json
import os
from collections.abc import Iterator

import numpy as np
import pytest
import quality
from baselines import BASELINES, PECOS_PYTHON, Ranking
from tiny_encoder import write_tiny_encoder

from kenmesh_hf.evaluating import LabelSets, ScoredLabels
from kenmesh_hf.preparing import load_prepared

INSTALLED = {
    "omikuji": importlib.util.find_spec("omikuji") is not None,
    "pecos": bool(os.environ.get(PECOS_PYTHON)),
}


@pytest.fixture(scope="module")
def comparison(
    tmp_path_factory: pytest.TempPathFactory, tiny_sources: dict[str, object]
) -> Iterator[quality.Comparison]:
    with pytest.MonkeyPatch.context() as patch:
        # So many neighbours have every label of so small a vocabulary.
        patch.setitem(quality.PAPER_DATA, "neighbours", 3)
        encoder = write_tiny_encoder(tmp_path_factory.mktemp("encoder"))
        work = tmp_path_factory.mktemp("quality")
        yield quality.Comparison(work, dict(tiny_sources), epochs=1, encoder=str(encoder))


@pytest.fixture(scope="module")
def result(comparison: quality.Comparison) -> dict:
    return comparison.run(quality.METHODS)


def test_every_method_runs_or_says_why_not(result: dict) -> None:
    missing = {name for name, there in INSTALLED.items() if not there}
    assert set(result["left_out"]) == missing
    assert set(result["methods"]) == set(quality.METHODS) - missing
    for name, figures in result["methods"].items():
        assert set(quality.FIGURES) <= set(figures), name
        assert 0 < figures["MiF"] <= 1, name
    json.dumps(result)


def test_margin_is_over_the_best_method_of_others(result: dict) -> None:
    figures = result["methods"]
    others = max(figures[name]["MiF"] for name in BASELINES if name in figures)
    assert result["margin"] == pytest.approx(figures["kenmesh"]["MiF"] - others)
    assert quality.margin({"omikuji": {"MiF": 0.5}, "leak": {"MiF": 0.9}}) is None


def test_only_the_leak_holds_every_gold_label(result: dict) -> None:
    honest, leaking = result["methods"]["kenmesh"], result["methods"]["leak"]
    assert leaking["candidate_recall"] == pytest.approx(1.0)
    assert leaking["MiF"] > honest["MiF"]


def test_the_papers_candidates_come_from_neighbours_and_journal(comparison: quality.Comparison) -> None:
    candidates = load_prepared(comparison.work / "dataset_paper").processor.candidates
    assert candidates.options.sources == ("neighbours", "journal")


def test_all_methods_are_judged_on_the_same_articles(result: dict, comparison: quality.Comparison) -> None:
    corpus = comparison.corpus
    for name in ("dataset", "dataset_paper"):
        prepared = load_prepared(comparison.work / name)
        for rows, part in ((prepared.validation, corpus.validation), (prepared.test, corpus.test)):
            assert list(rows["pmid"]) == [article.pmid for article in part.articles]
            gold = quality.networks.gold_of(rows)
            assert np.array_equal(gold.label_ids, part.gold.label_ids)
            assert np.array_equal(gold.offsets, part.gold.offsets)


def test_what_is_done_is_not_done_again(
    result: dict, comparison: quality.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality.networks, "train", None)
    monkeypatch.setattr(quality, "decide_and_score", None)
    again = quality.Comparison(comparison.work, comparison.sources, epochs=1)
    assert again.run(["dictionary", "kenmesh", "leak"])["methods"]["leak"] == result["methods"]["leak"]
    with np.load(comparison.work / "methods" / "kenmesh.npz") as kept:
        assert len(kept["test_scores"]) == len(kept["test_label_ids"]) > 0


def test_a_method_that_lacks_its_encoder_is_left_out(comparison: quality.Comparison) -> None:
    without = quality.Comparison(comparison.work, comparison.sources, epochs=1)
    (comparison.work / "methods" / "encoder.json").unlink(missing_ok=True)
    assert "--encoder" in without.run(["encoder"])["left_out"]["encoder"]


def test_decision_comes_from_validation_articles() -> None:
    # On validation two labels each are right whatever their score, so a number of labels beats any threshold.
    scored = ScoredLabels.from_lists([[0, 1, 2], [0, 1, 2]], [[0.9, 0.8, 0.7], [0.3, 0.2, 0.1]])
    validation = LabelSets.from_lists([[0, 1], [0, 1]], 3)
    test = LabelSets.from_lists([[0, None], [0]], 3)
    figures = quality.decide_and_score(Ranking(scored, scored, 1.0), validation, test)
    assert (figures["decision"], figures["validation_MiF"]) == ("best 2", 1.0)
    # Two hits among four tags, and three gold labels, one of which is no label of the vocabulary.
    assert figures["MiF"] == pytest.approx(2 * 2 / (4 + 3))
    assert figures["candidate_recall"] is None


def test_main_prints_a_json_line_last(
    comparison: quality.Comparison,
    result: dict,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setattr(quality, "Comparison", lambda *_: comparison)
    quality.main(
        ["--work", str(comparison.work), "--mesh", "mesh.tsv", "--pubmed", "x.xml", "--methods", "tfidf_knn"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1])["methods"]["tfidf_knn"] == result["methods"]["tfidf_knn"]
    assert any(line.startswith("tfidf_knn ") for line in lines)
