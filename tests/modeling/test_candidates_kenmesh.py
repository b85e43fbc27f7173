"""Labels proposed for an article: sources, limits, numbers, reasons, saving."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import JOURNALS, TOPICS, tiny_articles, tiny_vocabulary

from kenmesh_hf.indexing import build_candidates, find_candidates
from kenmesh_hf.modeling import pruned_neighbours_kenmesh
from kenmesh_hf.modeling.candidates_kenmesh import CandidateBatch, KenMeSHCandidates
from kenmesh_hf.modeling.proposals_kenmesh import SOURCES, CandidateOptions
from kenmesh_hf.modeling.pruned_neighbours_kenmesh import PrunedNeighbours

ARTICLES = tiny_articles(120)
UNSEEN = tiny_articles(20, seed=3, first_pmid=7001)
VOCABULARY = tiny_vocabulary()
NAME = VOCABULARY.names[5]


@pytest.fixture(scope="module")
def built() -> KenMeSHCandidates:
    return build_candidates(ARTICLES, VOCABULARY)


@pytest.fixture
def candidates(built, monkeypatch) -> KenMeSHCandidates:
    """Candidates whose options a test may change."""
    monkeypatch.setattr(built, "options", replace(built.options))
    return built


def propose(candidates: KenMeSHCandidates, articles) -> CandidateBatch:
    fields = ([getattr(a, name) for a in articles] for name in ("title", "abstract", "journal", "pmid"))
    return candidates(*fields)


def labels_for(candidates: KenMeSHCandidates, title="", abstract="", journal=None) -> list[int]:
    return candidates([title], [abstract], [journal]).label_ids.tolist()


def test_every_candidate_has_its_numbers(candidates):
    batch = propose(candidates, UNSEEN)
    assert len(batch) == 20 and batch.offsets[0] == 0 and batch.offsets[-1] == len(batch.label_ids)
    assert batch.features.shape == (len(batch.label_ids), len(candidates.FEATURES))
    assert batch.features.dtype == np.float32 and batch.label_ids.dtype == np.int32
    assert np.isfinite(batch.features).all()
    for labels, features in batch.split():
        assert len(labels) == len(features) > 0
        assert np.all(np.diff(labels) > 0) and labels.max() < len(VOCABULARY)


def test_an_article_gets_the_same_alone_and_among_others(candidates):
    together = propose(candidates, UNSEEN)
    for row, article in enumerate(UNSEEN):
        labels, features = propose(candidates, [article]).row(0)
        assert np.array_equal(labels, together.row(row)[0])
        assert np.array_equal(features, together.row(row)[1])


@pytest.mark.parametrize("source", ["neighbours", "journal", "terms"])
def test_each_source_proposes_alone(candidates, source):
    candidates.options.sources = (source,)
    alone = labels_for(candidates, NAME, UNSEEN[0].abstract, JOURNALS[2])
    candidates.options.sources = SOURCES
    assert alone and set(alone) <= set(labels_for(candidates, NAME, UNSEEN[0].abstract, JOURNALS[2]))


def test_words_propose_the_labels_that_fit_best(candidates):
    candidates.options.sources, candidates.options.words = ("words",), 5
    batch = propose(candidates, UNSEEN)
    assert np.all(np.diff(batch.offsets) <= 5) and len(batch.label_ids)
    assert np.all(batch.features[:, candidates.FEATURES.index("words")] > 0)


def test_without_sources_nothing_is_proposed(candidates):
    candidates.options.sources = ()
    assert labels_for(candidates, NAME, UNSEEN[0].abstract, JOURNALS[2]) == []


def test_terms_propose_what_is_named(candidates):
    candidates.options.sources = ("terms",)
    assert labels_for(candidates, f"on {NAME.lower()}.") == [5]
    assert labels_for(candidates, "", VOCABULARY.entry_terms[6][0]) == [6]


def test_journals_propose_what_most_of_their_articles_carry(candidates):
    candidates.options.sources = ("journal",)
    assert 2 in labels_for(candidates, journal=JOURNALS[2].upper())
    candidates.options.journal_threshold = 1.0
    assert labels_for(candidates, journal=JOURNALS[2]) == []


def test_the_best_candidates_are_kept(candidates):
    everything = propose(candidates, UNSEEN)
    candidates.options.max_candidates = 4
    kept = propose(candidates, UNSEEN)
    gold = [{VOCABULARY.get(ui) for ui in a.descriptors} for a in UNSEEN]
    for row in range(len(UNSEEN)):
        assert len(kept.row(row)[0]) == 4
        assert set(kept.row(row)[0]) <= set(everything.row(row)[0])
    right = [len(own & set(labels)) for own, (labels, _) in zip(gold, kept.split(), strict=True)]
    assert np.mean(right) > 2


def test_frequent_labels_fill_up(candidates):
    candidates.options.sources, candidates.options.min_candidates = ("terms",), 4
    labels = labels_for(candidates, NAME)
    frequent = np.argsort(-candidates.label_counts, kind="stable")[:4]
    assert len(labels) == 4 and 5 in labels
    assert set(labels) - {5} <= set(frequent)


@pytest.mark.parametrize("journal", [None, "", [], "A Journal Nobody Knows"])
def test_fields_may_be_empty_or_unknown(candidates, journal):
    first = UNSEEN[0]
    batch = candidates(["", first.title, "", "?"], ["", "", first.abstract, "!"], [journal] * 4)
    sizes = np.diff(batch.offsets)
    assert sizes[0] == sizes[3] == 0 and sizes[1] > 0 and sizes[2] > 0
    assert np.isfinite(batch.features).all()


def test_candidates_survive_saving(candidates, tmp_path):
    candidates.save_pretrained(tmp_path / "one")
    loaded = KenMeSHCandidates.from_pretrained(tmp_path / "one")
    assert loaded.options == candidates.options
    before, after = propose(candidates, UNSEEN + ARTICLES[:5]), propose(loaded, UNSEEN + ARTICLES[:5])
    assert np.array_equal(before.label_ids, after.label_ids)
    assert np.array_equal(before.features, after.features)
    loaded.save_pretrained(tmp_path / "two")
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes(), file.name


def test_other_sources_propose_where_the_neighbours_are_not_shared(candidates, tmp_path):
    candidates.save_pretrained(tmp_path)
    (tmp_path / "neighbours.safetensors").unlink()
    loaded = KenMeSHCandidates.from_pretrained(tmp_path)
    batch = loaded([NAME], [""], [JOURNALS[2]])
    assert {5, 2} <= set(batch.label_ids.tolist())
    column = loaded.FEATURES.index("log_prior")
    expected = np.log((candidates.label_counts[batch.label_ids] + 0.5) / 121)
    assert np.allclose(batch.features[:, column], expected, atol=1e-5)
    assert not batch.features[:, loaded.FEATURES.index("vote_all")].any()


def test_other_numbers_than_those_computed_are_refused(candidates, tmp_path):
    candidates.save_pretrained(tmp_path)
    file = tmp_path / "candidates.json"
    file.write_text(file.read_text().replace('"vote_15"', '"vote_16"'))
    with pytest.raises(ValueError, match="build the candidates again"):
        KenMeSHCandidates.from_pretrained(tmp_path)


def test_reasons_name_neighbours_that_carry_the_label(candidates):
    carriers = {a.pmid: {VOCABULARY.get(ui) for ui in a.descriptors} for a in ARTICLES}
    article = ARTICLES[0]
    labels = propose(candidates, [article]).label_ids
    reasons = candidates.explain(article.title, article.abstract, None, article.pmid, labels, most=2)
    assert any(reason["neighbours"] for reason in reasons)
    for label, reason in zip(labels, reasons, strict=True):
        assert len(reason["neighbours"]) <= 2 and reason["journal"] is None
        similarities = [neighbour["similarity"] for neighbour in reason["neighbours"]]
        assert similarities == sorted(similarities, reverse=True)
        for neighbour in reason["neighbours"]:
            assert neighbour["pmid"] != article.pmid and label in carriers[neighbour["pmid"]]


def test_reasons_give_the_journals_share(candidates):
    own = [a for a in ARTICLES if a.journal == JOURNALS[1]]
    share = np.mean([VOCABULARY.uis[TOPICS] in a.descriptors for a in own])
    reasons = candidates.explain(journal=JOURNALS[1], labels=[1, TOPICS])
    assert [reason["journal"] for reason in reasons] == pytest.approx([1.0, share])
    assert candidates.explain(journal="unheard of", labels=[1])[0]["journal"] is None


def test_reasons_show_the_term_in_the_text(candidates):
    title, abstract = f"On “{NAME.upper()}”: naïve", f"The {VOCABULARY.entry_terms[6][0]}."
    for label, field, text in ((5, "title", title), (6, "abstract", abstract)):
        term = candidates.explain(title, abstract, labels=[label])[0]["term"]
        assert term["field"] == field
        assert term["text"] == text[term["start"] : term["end"]]
        assert term["text"].lower().startswith((NAME.lower(), VOCABULARY.entry_terms[6][0]))
    assert candidates.explain(title, abstract, labels=[7])[0]["term"] is None
    assert candidates.explain(title, abstract) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sources": ("neighbors",)}, "'neighbors'; choose from neighbours"),
        ({"neighbours": 0}, "`neighbours` is 0"),
        ({"max_candidates": 0}, "`max_candidates` is 0"),
        ({"index": "faiss"}, "'faiss'; choose from sparse"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        CandidateOptions(**options)


def test_a_pruned_index_is_saved_and_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The form that many articles have: loading finds it, and who reads it shares the file's pages."""
    monkeypatch.setattr(pruned_neighbours_kenmesh, "PRUNED_SIZE", 1)
    made = build_candidates(ARTICLES[:60], VOCABULARY)
    made.save_pretrained(tmp_path)
    read = KenMeSHCandidates.from_pretrained(tmp_path)
    assert type(read.index) is type(made.index) is PrunedNeighbours
    assert not any(array.flags.owndata for array in read.index.tensors.values())
    for one, other in zip(find_candidates(made, UNSEEN), find_candidates(read, UNSEEN), strict=True):
        assert np.array_equal(one[1].label_ids, other[1].label_ids)
        assert np.array_equal(one[1].features, other[1].features)
    # The same folder can be written while it is mapped.
    read.save_pretrained(tmp_path)
    assert KenMeSHCandidates.from_pretrained(tmp_path).index.size == read.index.size == 60
