"""The numbers of candidates, worked out by hand for a few labels."""

import numpy as np
import pytest

from kenmesh_hf.modeling.evidence_kenmesh import FEATURES, Evidence, LabelGraph
from kenmesh_hf.modeling.lexicon_kenmesh import ABSTRACT, INSIDE, TITLE

# Label 0 is the parent of 1 and 2; 3 stands alone and is no candidate.
EDGES = np.array([[0, 0], [1, 2]])
PRIOR = np.array([0.4, 0.1, 0.2, 0.3])
RECENT = np.array([0.4, 0.2, 0.1, 0.3])


@pytest.fixture
def evidence() -> Evidence:
    return Evidence(np.array([0, 1, 2]), PRIOR, RECENT, LabelGraph.from_edges(EDGES, 4))


def test_a_label_may_be_given_more_often_than_before(evidence):
    assert evidence["recent_log_prior"] == pytest.approx(np.log([0.4, 0.2, 0.1]))
    assert evidence["recent_lift"] == pytest.approx(np.log([1, 2, 0.5]), abs=1e-6)


def test_votes_weigh_by_the_square_of_the_similarity(evidence):
    evidence.add_votes(np.array([1, 3, 1, 2]), np.array([2, 0, 2]), np.array([0.8, 0.7, 0.4]))
    total = 0.64 + 0.49 + 0.16
    assert evidence["vote_all"] == pytest.approx([0, 0.8 / total, 0.16 / total])
    assert evidence["vote_5"] == pytest.approx(evidence["vote_all"])
    assert evidence["vote_count"] == pytest.approx(np.log1p([0, 2, 1]))
    assert evidence["best_similarity"] == pytest.approx([0, 0.8, 0.4])
    assert evidence["best_rank"] == pytest.approx([0, 1, 1 / np.sqrt(3)])
    assert evidence["child_vote"] == pytest.approx([0.8 / total, 0, 0])
    assert evidence["parent_vote"] == pytest.approx([0, 0, 0])


def test_the_nearest_vote_apart(evidence):
    labels = np.array([1] * 5 + [2] * 45 + [0] * 50)
    evidence.add_votes(labels, np.ones(100, int), np.full(100, 0.5))
    assert evidence["vote_5"] == pytest.approx([0, 1, 0])
    assert evidence["vote_15"] == pytest.approx([0, 1 / 3, 2 / 3])
    assert evidence["vote_50"] == pytest.approx([0, 0.1, 0.9])
    assert evidence["vote_all"] == pytest.approx([0.5, 0.05, 0.45])


def test_no_neighbours_leave_no_votes(evidence):
    evidence.add_votes(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    assert not evidence["vote_all"].any() and not evidence["best_rank"].any()
    assert np.isfinite(evidence.table).all()


def test_a_journals_share_is_drawn_to_the_prior(evidence):
    evidence.add_journal(np.array([1, 3]), np.array([40, 2]), 72)
    assert evidence["journal_share"] == pytest.approx([3.2 / 80, 40.8 / 80, 1.6 / 80])
    evidence.add_journal(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    assert evidence["journal_share"] == pytest.approx(PRIOR[:3])
    assert evidence["journal_lift"] == pytest.approx(np.zeros(3), abs=1e-6)
    assert not evidence["journal_known"].any()


def test_the_most_telling_term_counts(evidence):
    evidence.add_terms(
        labels=np.array([1, 1, 1, 2, 3]),
        places=np.array([TITLE, ABSTRACT, ABSTRACT, INSIDE, TITLE]),
        precisions=np.array([0.3, 0.6, 0.2, 0.9, 0.8]),
        counts=np.array([1, 2, 1, 4, 1]),
        is_name=np.array([False, True, False, True, True]),
        lengths=np.array([1, 2, 1, 1, 1]),
    )
    assert evidence["term_title"] == pytest.approx([0, 0.3, 0])
    assert evidence["term_abstract"] == pytest.approx([0, 0.6, 0])
    assert evidence["term_inside"] == pytest.approx([0, 0, 0.9])
    assert evidence["term_count"] == pytest.approx(np.log1p([0, 4, 0]))
    assert evidence["term_in_title"].tolist() == evidence["term_is_name"].tolist() == [0, 1, 0]
    assert evidence["term_words"] == pytest.approx([0, 0.5, 0])
    assert evidence["child_term"] == pytest.approx([0.6, 0, 0])


def test_there_is_one_row_for_each_candidate(evidence):
    evidence.add_words(np.array([0.5, -0.1, 2.0, 0.3]))
    features = evidence.table.T
    assert features.shape == (3, len(FEATURES)) and features.dtype == np.float32
    assert features[:, FEATURES.index("words")] == pytest.approx([0.5, -0.1, 2.0])
    assert features[:, FEATURES.index("words_log")] == pytest.approx(np.log([0.51, 0.01, 1.01]))
    assert features[:, FEATURES.index("log_prior")] == pytest.approx(np.log(PRIOR[:3]))


def test_no_candidates_make_no_rows():
    evidence = Evidence(np.zeros(0, np.int64), PRIOR, RECENT, LabelGraph.from_edges(EDGES, 4))
    evidence.add_votes(np.array([3]), np.array([1]), np.array([0.5]))
    evidence.add_journal(np.array([3]), np.array([1]), 1)
    assert evidence.table.shape == (len(FEATURES), 0)
