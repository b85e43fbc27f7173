"""Old and new descriptors are scored apart, whichever year the model is of."""

import pytest
from tiny_model import UNSEEN

from kenmesh_hf.evaluating import evaluate
from kenmesh_hf.updating import score_each, score_update


def test_without_new_descriptors_it_is_the_usual_micro_f(tiny_tagger):
    figures = score_update(tiny_tagger, UNSEEN, frozenset())
    assert figures["old_MiF"] == pytest.approx(evaluate(tiny_tagger, UNSEEN, progress=False)["MiF"])
    assert figures["new_recall_at_10"] == figures["new_candidate_recall"] == 0


def test_new_descriptors_are_counted_apart(tiny_tagger):
    added = {"D900000", "D900001"}
    figures = score_update(tiny_tagger, UNSEEN, added)
    tags = tiny_tagger(
        [{"title": a.title, "abstract": a.abstract, "journal": a.journal, "pmid": a.pmid} for a in UNSEEN],
        threshold=0.0,
        top_k=10,
    )
    wanted = [(row, ui) for row, article in enumerate(UNSEEN) for ui in article.descriptors if ui in added]
    found = sum(ui in {tag["ui"] for tag in tags[row]} for row, ui in wanted)
    assert figures["new_recall_at_10"] == pytest.approx(found / len(wanted))
    assert figures["old_MiF"] != score_update(tiny_tagger, UNSEEN, frozenset())["old_MiF"]


def test_the_counts_behind_the_figures_are_told(tiny_tagger):
    added = {"D900000", "D900001"}
    figures = score_update(tiny_tagger, UNSEEN, added)
    carried = [ui for article in UNSEEN for ui in article.descriptors]
    assert figures["articles"] == len(UNSEEN)
    assert figures["new_labels"] == sum(ui in added for ui in carried)
    assert figures["old_labels"] == len(carried) - figures["new_labels"]


def test_the_most_frequent_new_descriptors_are_told_one_by_one(tiny_tagger):
    added = {"D900000", "D900001", "D999999"}
    each = score_each(tiny_tagger, UNSEEN, added, 5)
    carried = [ui for article in UNSEEN for ui in article.descriptors]
    assert {ui: told["articles"] for ui, told in each.items()} == {
        ui: carried.count(ui) for ui in added - {"D999999"}
    }
    assert list(each) == sorted(each, key=carried.count, reverse=True)
    figures = score_update(tiny_tagger, UNSEEN, added)
    found = sum(told["found"] for told in each.values())
    assert found / figures["new_labels"] == pytest.approx(figures["new_recall_at_10"])
    assert len(score_each(tiny_tagger, UNSEEN, added, 1)) == 1


def test_descriptors_that_the_model_lacks_are_missed(tiny_tagger):
    article = UNSEEN[0]
    renamed = article.from_dict(
        article.to_dict() | {"mesh": [{"ui": "D999999"}, {"ui": article.descriptors[0]}]}
    )
    assert score_update(tiny_tagger, [renamed], {"D999999"})["new_recall_at_10"] == 0
    assert score_each(tiny_tagger, [renamed], {"D999999"}, 5) == {"D999999": {"articles": 1, "found": 0}}
