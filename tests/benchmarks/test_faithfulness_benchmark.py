"""The check of reasons by erasure: words are taken out everywhere, and the figures follow."""

import json
import random

import faithfulness
import pytest
from tiny_model import TRAINING, UNSEEN

from kenmesh_hf.reading import write_articles

ARTICLE = {
    "title": "Zinc, ZINC-finger",
    "abstract": "Of zincs and zinc; the end.",
    "journal": None,
    "pmid": None,
}


def test_words_are_taken_out_wherever_they_stand():
    assert faithfulness.distinct_words(ARTICLE) == ["zinc", "finger", "zincs", "end"]
    shorter = faithfulness.without(ARTICLE, {"zinc", "end"})
    assert (shorter["title"], shorter["abstract"]) == (", -finger", "Of zincs and ; the .")
    assert ARTICLE["title"] == "Zinc, ZINC-finger"


def test_the_best_words_cost_a_tag_at_least_as_much_as_random_ones(tiny_tagger):
    rng = random.Random(0)
    rows = [
        row
        for article in UNSEEN[:8]
        for row in faithfulness.erase(tiny_tagger, article.as_input() | {"pmid": None}, rng)
    ]
    drops = {name: sum(row[name] for row in rows) for name in ("shown", "random", "best")}
    assert len(rows) > 10 and drops["best"] > drops["random"] and drops["shown"] > drops["random"]
    for row in rows:
        assert len(row["weights"]) == len(row["falls"]) >= faithfulness.SHOWN


def test_figures_are_the_last_line(tiny_model, tmp_path, capsys):
    write_articles(UNSEEN[:6], tmp_path / "articles.jsonl")
    options = ["--file", tmp_path / "articles.jsonl", "--model", tiny_model, "--articles", 5, "--repeats", 1]
    faithfulness.main(list(map(str, options)))
    lines = capsys.readouterr().out.splitlines()
    figures = json.loads(lines[-1])
    assert figures["articles"] == 5 and figures["tags"] > 5
    assert figures["share"] == pytest.approx(figures["drop_shown"] / figures["drop_best"], abs=1e-3)
    assert {"drop_random", "correlation", "time_ratio"} <= figures.keys()
    assert any(line.startswith("shown") for line in lines)


def test_articles_of_the_index_are_passed_over(tiny_tagger, tmp_path):
    write_articles([*TRAINING[:3], *UNSEEN[:2]], tmp_path / "articles.jsonl")
    found = list(faithfulness.held_out_articles(tiny_tagger, tmp_path / "articles.jsonl"))
    assert [article["pmid"] for article in found] == [article.pmid for article in UNSEEN[:2]]
