"""Which of two models is better, and when that cannot be told."""

import numpy as np
import pytest
from tiny_model import UNSEEN

from kenmesh_hf.evaluating import compare_models, comparing
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds


def with_threshold(tagger, threshold):
    processor = tagger.processor.with_parts(thresholds=Thresholds(threshold))
    return MeSHIndexingPipeline(model=tagger.model, processor=processor)


def test_a_model_beside_itself_cannot_be_told(tiny_tagger):
    found = compare_models(tiny_tagger, tiny_tagger, UNSEEN)
    assert found["verdict"] == "can't be told" and found["difference"] == 0 and found["interval"] == (0, 0)
    assert found["before"] == found["after"] and 0 < found["before"]["MiF"] < 1


def test_a_spoiled_model_is_worse_and_the_other_way_round_better(tiny_tagger):
    spoiled = with_threshold(tiny_tagger, 0.0)
    worse, better = compare_models(tiny_tagger, spoiled, UNSEEN), compare_models(spoiled, tiny_tagger, UNSEEN)
    assert worse["verdict"] == "worse" and better["verdict"] == "better"
    assert worse["difference"] == pytest.approx(-better["difference"])
    assert worse["interval"][0] <= worse["difference"] <= worse["interval"][1] < 0


def test_few_articles_tell_nothing(tiny_tagger):
    assert (
        compare_models(tiny_tagger, with_threshold(tiny_tagger, 0.0), UNSEEN[:9])["verdict"]
        == "can't be told"
    )
    assert compare_models(tiny_tagger, tiny_tagger, []) == {"articles": 0, "verdict": "can't be told"}


def test_the_interval_holds_what_chance_does():
    draw = np.random.default_rng(3)
    right = draw.integers(0, 10, 200)
    before = np.stack([right, np.full(200, 12), np.full(200, 11)], 1)
    after = before + np.stack([draw.integers(-1, 2, 200), np.zeros(200, int), np.zeros(200, int)], 1)
    difference, (low, high) = comparing._bootstrap(before, after)
    assert low < difference < high and high - low < 0.02
    assert difference == pytest.approx(2 * (after[:, 0].sum() - right.sum()) / (200 * 23))
