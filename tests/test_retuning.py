"""Thresholds chosen anew: a larger index moves the scores, and the tags are then as good as before."""

from dataclasses import replace

import pytest
from tiny import tiny_articles
from tiny_model import TRAINING

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.evaluation import evaluate
from kenmesh_hf.index_growth import add_articles
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.retuning import retune_thresholds

TUNING = tiny_articles(60, seed=21, first_pmid=50_001)
HELD_OUT = tiny_articles(100, seed=22, first_pmid=60_001)


def test_a_larger_index_tags_as_well_as_the_smaller_one_did(tiny_tagger):
    processor, _ = add_articles(tiny_tagger.processor, tiny_articles(60, seed=3, first_pmid=20_001))
    grown = MeSHIndexingPipeline(model=tiny_tagger.model, processor=processor)
    before, after = (evaluate(tagger, HELD_OUT, progress=False) for tagger in (tiny_tagger, grown))
    # The order of the labels stays, so that only the thresholds are to blame.
    assert after["MiF"] < before["MiF"] - 0.03
    assert after["P@3"] > before["P@3"] - 0.02
    processor = processor.with_parts(thresholds=retune_thresholds(grown, TUNING))
    retuned = MeSHIndexingPipeline(model=tiny_tagger.model, processor=processor)
    assert evaluate(retuned, HELD_OUT, progress=False)["MiF"] > before["MiF"] - 0.02


def test_the_model_keeps_its_thresholds_until_told(tiny_tagger):
    thresholds = tiny_tagger.processor.thresholds
    tuned = retune_thresholds(tiny_tagger, TUNING)
    assert tiny_tagger.processor.thresholds is thresholds and tuned is not thresholds
    assert {"precision", "recall"} == tuned.presets.keys() and "global" in tuned.held_out


def test_articles_of_the_index_are_refused(tiny_tagger):
    with pytest.raises(MismatchError, match="1 held-out articles are in the candidate index"):
        retune_thresholds(tiny_tagger, [*TUNING, TRAINING[0]])


def test_articles_without_descriptors_tell_nothing(tiny_tagger):
    with pytest.raises(InputError, match="no labelled article"):
        retune_thresholds(tiny_tagger, [replace(article, headings=()) for article in TUNING])
