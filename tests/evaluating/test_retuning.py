"""Thresholds chosen anew: a larger index moves the scores, and the tags are then as good as before."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit
from tiny import tiny_articles
from tiny_model import TRAINING

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.evaluating import evaluate, retune_thresholds, score_articles
from kenmesh_hf.evaluating.retuning import move_thresholds
from kenmesh_hf.indexing import add_articles
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds

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
    assert {"precision", "recall"} == tuned.presets.keys() and {"kept", "moved"} == tuned.held_out.keys()


def test_all_thresholds_move_alike_and_only_if_that_is_better(tiny_tagger):
    processor = tiny_tagger.processor
    raised = Thresholds(0.95, np.linspace(0.9, 0.99, len(processor.vocabulary)))
    tagger = MeSHIndexingPipeline(model=tiny_tagger.model, processor=processor.with_parts(thresholds=raised))
    tuned = retune_thresholds(tagger, TUNING)
    moves = logit(tuned.per_label) - logit(raised.per_label)
    assert moves.max() < -0.5 and np.ptp(moves) < 1e-3
    assert logit(tuned.global_threshold) - logit(0.95) == pytest.approx(moves[0], abs=1e-3)
    assert tuned.held_out["moved"] > tuned.held_out["kept"]
    tagger = MeSHIndexingPipeline(model=tiny_tagger.model, processor=processor.with_parts(thresholds=tuned))
    again = retune_thresholds(tagger, TUNING)
    assert again.held_out["moved"] < again.held_out["kept"]
    assert np.allclose(again.per_label, tuned.per_label)


def test_a_label_that_is_never_given_stays_so(tiny_tagger):
    scores = score_articles(tiny_tagger, TUNING, progress=False)
    never = np.full(len(tiny_tagger.processor.vocabulary), 0.9)
    never[3] = np.inf
    moved = move_thresholds(Thresholds(0.9, never), scores)
    assert moved.per_label[3] == np.inf and (np.delete(moved.per_label, 3) < 0.9).all()


def test_a_model_without_thresholds_gets_some(tiny_tagger):
    bare = MeSHIndexingPipeline(
        model=tiny_tagger.model, processor=tiny_tagger.processor.with_parts(thresholds=None)
    )
    assert "global" in retune_thresholds(bare, TUNING).held_out


def test_articles_of_the_index_are_refused(tiny_tagger):
    with pytest.raises(MismatchError, match="1 held-out articles are in the candidate index"):
        retune_thresholds(tiny_tagger, [*TUNING, TRAINING[0]])


def test_articles_without_descriptors_tell_nothing(tiny_tagger):
    unlabelled = [replace(article, headings=()) for article in TUNING[5:]]
    with pytest.raises(InputError, match="5 labelled articles are too few"):
        retune_thresholds(tiny_tagger, [*TUNING[:5], *unlabelled])
