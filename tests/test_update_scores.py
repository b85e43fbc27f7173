"""Old and new descriptors are scored apart, whichever year the model is of."""

import pytest
from tiny_model import UNSEEN

from kenmesh_hf.evaluation import evaluate
from kenmesh_hf.update_scores import score_update


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


def test_descriptors_that_the_model_lacks_are_missed(tiny_tagger):
    article = UNSEEN[0]
    renamed = article.from_dict(
        article.to_dict() | {"mesh": [{"ui": "D999999"}, {"ui": article.descriptors[0]}]}
    )
    assert score_update(tiny_tagger, [renamed], {"D999999"})["new_recall_at_10"] == 0
