"""What a model learns from a desk, and how honestly that is told."""

import json
from contextlib import closing

import pytest
from reviewed_desk import reviewed
from tiny import tiny_articles
from tiny_model import TRAINING

import kenmesh_hf
from kenmesh_hf.commands import main
from kenmesh_hf.desk import (
    Desk,
    decided,
    learn,
    learning_lines,
    list_learning,
    share_out,
)
from kenmesh_hf.errors import InputError
from kenmesh_hf.indexing import indexed


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A desk of 150 new articles and some that the model was made of; tests must not change it."""
    with closing(Desk(tmp_path_factory.mktemp("desk") / "review.sqlite")) as desk:
        reviewed(desk, [*tiny_articles(150, seed=5, first_pmid=7001), *TRAINING[:20]])
        yield desk


def test_each_article_is_always_for_the_same():
    articles = tiny_articles(400, seed=5, first_pmid=7001)
    parts, fewer = share_out(articles), share_out(articles[:100])
    assert 150 < len(parts.voting) < 270 and 50 < len(parts.tuning) < 110 and 70 < len(parts.judging) < 130
    for name in ("voting", "tuning", "judging"):
        assert set(map(id, getattr(fewer, name))) <= set(map(id, getattr(parts, name)))


def test_a_model_learns_beside_the_old_one(desk, tiny_model, tmp_path):
    before = sorted(path.read_bytes() for path in tiny_model.iterdir() if path.is_file())
    report = learn(desk, tiny_model, tmp_path / "new")
    assert sorted(path.read_bytes() for path in tiny_model.iterdir() if path.is_file()) == before
    assert report["joined"] > 50 and report["already_known"] > 0
    assert report["joined"] + report["already_known"] == report["voting"]
    # What the old model was made of says nothing about either.
    new_ones = share_out(tiny_articles(150, seed=5, first_pmid=7001))
    assert (report["tuning"], report["judging"]) == (len(new_ones.tuning), len(new_ones.judging))
    assert report["verdict"] in ("better", "worse", "can't be told")
    assert report["after"]["MiF"] - report["before"]["MiF"] == pytest.approx(report["difference"])
    assert report["interval"][0] <= report["interval"][1]
    old, new = kenmesh_hf.load(tiny_model), kenmesh_hf.load(tmp_path / "new")
    grown = len(new.processor.candidates.articles) - len(old.processor.candidates.articles)
    assert grown == report["joined"]
    assert new.processor.thresholds.global_threshold == pytest.approx(report["thresholds"]["after"], abs=1e-4)
    # Those to judge by never joined, so that they can judge again.
    assert not any(indexed(new.processor.candidates, new_ones.judging))


def test_what_was_learned_is_told_and_kept(desk, tiny_model, tmp_path, capsys):
    assert main(["learn", str(desk.path), "--model", str(tiny_model), "--out", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    assert "decided articles vote now" in printed and "thresholds" in printed
    assert "micro F1" in printed and "95 % between" in printed
    assert "favours the model that proposed, usually the old one" in printed
    assert list_learning(desk)[0]["out"] == str(tmp_path / "new")
    told = ["learn", str(desk.path), "--model", str(tiny_model), "--out", str(tmp_path / "other"), "--json"]
    assert main(told) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["judging"] > 10


def test_nothing_is_replaced(desk, tiny_model, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine")
    assert main(["learn", str(desk.path), "--model", str(tiny_model), "--out", str(tmp_path / "there")]) == 1
    assert "already there" in capsys.readouterr().err
    assert main(["learn", str(desk.path), "--model", str(tiny_model), "--out", str(tiny_model)]) == 1


def test_with_few_articles_thresholds_stay_and_nothing_is_claimed(tiny_model, tmp_path):
    with closing(Desk(tmp_path / "small.sqlite")) as small:
        with pytest.raises(InputError, match="Too little is done"):
            learn(small, tiny_model, tmp_path / "new")
        reviewed(small, tiny_articles(12, seed=8, first_pmid=8001))
        report = learn(small, tiny_model, tmp_path / "new")
        assert report["thresholds"] is None and report["verdict"] == "can't be told"
        lines = "\n".join(learning_lines(report))
        assert "thresholds stay" in lines and "can't be told" in lines
    assert not (tmp_path / "none").exists()


def test_an_article_in_two_collections_counts_once(tmp_path):
    with closing(Desk(tmp_path / "twice.sqlite")) as desk:
        articles = tiny_articles(3)
        reviewed(desk, [*articles, articles[0]])
        assert len(decided(desk)) == 3
        [first, *_] = decided(desk)
        assert set(first.descriptors) == set(articles[0].descriptors)


def test_a_missing_desk_is_told(tmp_path, capsys):
    assert main(["learn", str(tmp_path / "none.sqlite"), "--out", str(tmp_path / "new")]) == 1
    assert "There is no desk" in capsys.readouterr().err
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize(
    ("thresholds", "said"),
    [
        (None, "thresholds stay: 30 articles are for choosing them"),
        ({"before": 0.31, "after": 0.31}, "thresholds stay: moving them is no better on 30 others"),
        ({"before": 0.31, "after": 0.35}, "thresholds chosen on 30 others: 0.310 → 0.350"),
        ({"after": 0.35}, "thresholds chosen on 30 others: 0.350"),
    ],
)
def test_thresholds_that_stay_are_not_called_chosen(thresholds, said):
    counts = {"joined": 50, "already_known": 0, "out": "new", "tuning": 30, "judging": 0}
    assert said in "\n".join(learning_lines(counts | {"thresholds": thresholds}))
