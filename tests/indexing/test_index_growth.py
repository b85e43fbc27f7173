"""Articles that join an index: the same tables as if it had been built with them, as far as that can be."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_articles, tiny_vocabulary
from tiny_model import TRAINING, UNSEEN

from kenmesh_hf import load
from kenmesh_hf.errors import InputError
from kenmesh_hf.indexing.candidates import build_candidates
from kenmesh_hf.indexing.growth import Growth, add_articles, add_to_model_folder
from kenmesh_hf.modeling.candidates_kenmesh import NEIGHBOURS_FILE, KenMeSHCandidates
from kenmesh_hf.modeling.neighbours_kenmesh import SparseNeighbours, count_terms
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.modeling.terms_kenmesh import hash_words
from kenmesh_hf.modeling.text_kenmesh import content_words
from kenmesh_hf.reading.articles import Article, Heading, write_articles

NEW = tiny_articles(30, seed=5, first_pmid=8001)


@pytest.fixture(scope="module")
def grown(tiny_tagger) -> KenMeSHProcessor:
    processor, growth = add_articles(tiny_tagger.processor, NEW)
    assert growth == Growth(added=30, known=0, repeated=0, unlabelled=0)
    return processor


@pytest.fixture(scope="module")
def rebuilt():
    return build_candidates([*TRAINING, *NEW], tiny_vocabulary())


def search(index: SparseNeighbours, articles: list[Article], k: int) -> list[tuple[np.ndarray, np.ndarray]]:
    counts = count_terms(
        hash_words([article.title for article in articles]),
        hash_words([article.abstract for article in articles]),
    )
    return index.search(counts, k, [np.zeros(0, np.int64)] * len(articles))


def test_counts_are_those_of_an_index_built_with_all(grown, rebuilt):
    candidates = grown.candidates
    assert np.array_equal(candidates.label_counts, rebuilt.label_counts)
    assert candidates.num_articles == len(candidates.articles) == 150
    assert np.array_equal(candidates.lexicon.found, rebuilt.lexicon.found)
    assert np.array_equal(candidates.lexicon.assigned, rebuilt.lexicon.assigned)
    for name in ("keys", "sizes"):
        assert np.array_equal(candidates.journals.tensors[name], rebuilt.journals.tensors[name])
    for journal in {article.journal for article in NEW if article.journal}:
        for got, expected in zip(
            candidates.journals.counts_of(journal), rebuilt.journals.counts_of(journal), strict=True
        ):
            assert np.array_equal(got, expected)


def test_new_articles_are_found_among_the_old(grown):
    nearest = [found[0] for found, _ in search(grown.candidates.index, NEW, 1)]
    assert nearest == list(range(120, 150))
    assert [grown.candidates.articles.pmids[row] for row in nearest] == [int(a.pmid) for a in NEW]


def test_new_articles_weigh_as_in_an_index_built_with_all(grown, rebuilt):
    tables = []
    for index in (grown.candidates.index, rebuilt.index):
        tables.append(np.zeros((len(UNSEEN), 150)))
        for row, (found, similarities) in enumerate(search(index, UNSEEN, 150)):
            tables[-1][row, found] = similarities
    alike = [np.corrcoef(mine, theirs)[0, 1] for mine, theirs in zip(*tables, strict=True)]
    assert np.mean(alike) > 0.97
    # Between old and new articles, too, so that none is preferred for its age.
    shares = [table[:, 120:].sum() / table.sum() for table in tables]
    assert shares[0] == pytest.approx(shares[1], rel=0.05)


def test_words_that_are_new_join_articles(tiny_tagger):
    fresh = [
        Article(title=f"Zorvexin {word}", pmid=str(9000 + i), headings=(Heading("D900001"),))
        for i, word in enumerate(("alpha", "beta", "gamma"))
    ]
    assert not len(search(tiny_tagger.processor.candidates.index, [Article(title="zorvexin")], 5)[0][0])
    processor, _ = add_articles(tiny_tagger.processor, fresh)
    [(found, _)] = search(processor.candidates.index, [Article(title="zorvexin")], 5)
    assert sorted(found) == [120, 121, 122]


def test_old_articles_keep_their_weights(tiny_tagger, grown):
    old, new = tiny_tagger.processor.candidates.index, grown.candidates.index
    places = np.searchsorted(new.terms, old.terms)
    assert np.array_equal(new.terms[places], old.terms) and np.allclose(new.idf[places], old.idf)
    kept = new.documents < 120
    assert np.array_equal(new.weights[kept], old.weights)


def test_an_added_article_does_not_meet_itself(grown):
    article = NEW[0]
    named, unnamed = (
        grown.encode(article.title, article.abstract, article.journal, pmid)[0]
        for pmid in (article.pmid, None)
    )
    assert np.array_equal(named["candidate_features"], unnamed["candidate_features"])
    similarity = named["candidate_features"][:, grown.candidates.FEATURES.index("best_similarity")]
    assert similarity.max() < 0.9


def test_articles_already_there_repeated_or_unlabelled_are_left_out(tiny_tagger):
    articles = [
        NEW[0],
        replace(NEW[0], pmid="777"),
        replace(NEW[1], pmid=NEW[0].pmid),
        TRAINING[0],
        replace(TRAINING[1], pmid="778"),
        replace(NEW[2], headings=()),
        replace(NEW[3], headings=(Heading("D111111"),)),
    ]
    processor, growth = add_articles(tiny_tagger.processor, articles)
    assert growth == Growth(added=1, known=2, repeated=2, unlabelled=2)
    assert len(processor.candidates.articles) == 121
    assert len(tiny_tagger.processor.candidates.articles) == 120


def test_nothing_new_changes_nothing(tiny_tagger):
    processor, growth = add_articles(tiny_tagger.processor, TRAINING[:3])
    assert growth.added == 0 and processor.candidates is tiny_tagger.processor.candidates


def test_a_dense_index_grows_too_and_again_after_it_was_saved(tiny_tagger, tmp_path: Path):
    texts = (f"{article.title} {article.abstract}" for article in [*TRAINING, *NEW])
    words = sorted({word for text in texts for word in content_words(text)})
    vectors = words, np.random.default_rng(0).normal(size=(len(words), 16)).astype(np.float32)
    options = CandidateOptions(index="dense", neighbours=20, sources=("neighbours",))
    made = [
        build_candidates(articles, tiny_vocabulary(), options, word_vectors=vectors)
        for articles in (TRAINING, [*TRAINING, *NEW])
    ]
    first, _ = add_articles(tiny_tagger.processor.with_parts(candidates=made[0]), NEW[:20])
    first.candidates.save_pretrained(tmp_path)
    reloaded = tiny_tagger.processor.with_parts(candidates=KenMeSHCandidates.from_pretrained(tmp_path))
    grown, growth = add_articles(reloaded, NEW[20:])
    assert growth.added == 10 and grown.candidates.index.index.ntotal == 150
    assert [found[0] for found, _ in search(grown.candidates.index, NEW, 1)] == list(range(120, 150))
    # How rare a word is differs a little, for it is what the first articles told.
    pairs = zip(search(grown.candidates.index, UNSEEN, 20), search(made[1].index, UNSEEN, 20), strict=True)
    assert np.mean([np.isin(mine, theirs).mean() for (mine, _), (theirs, _) in pairs]) > 0.85


def test_a_model_shared_without_its_index_is_refused(tiny_model: Path, tmp_path: Path):
    bare = tmp_path / "bare"
    shutil.copytree(tiny_model, bare, ignore=shutil.ignore_patterns(NEIGHBOURS_FILE))
    write_articles(NEW, tmp_path / "new.jsonl")
    with pytest.raises(InputError, match="without its index"):
        add_to_model_folder(bare, [tmp_path / "new.jsonl"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_processor_without_candidates_is_refused(tiny_tagger):
    bare = KenMeSHProcessor(tiny_tagger.processor.tokenizer, vocabulary=tiny_vocabulary())
    with pytest.raises(InputError, match="no candidates"):
        add_articles(bare, NEW)


def test_a_saved_model_grows(tiny_model: Path, tmp_path: Path):
    write_articles([*NEW, TRAINING[0]], tmp_path / "new.jsonl")
    added, report = add_to_model_folder(tiny_model, [tmp_path / "new.jsonl"], tmp_path / "out")
    assert added == 30 and report.read == 31 and report.notes == {"already in the index": 1}
    tagger = load(tmp_path / "out")
    assert len(tagger.processor.candidates.articles) == 150
    neighbours = tagger(
        {"title": NEW[0].title, "abstract": NEW[0].abstract}, threshold=0.0, top_k=3, evidence=True
    )
    assert NEW[0].pmid not in {n["pmid"] for tag in neighbours for n in tag["evidence"]["neighbours"]}
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"modeling_kenmesh.py", "checksums.json"}
    with pytest.raises(InputError, match="already there"):
        add_to_model_folder(tiny_model, [tmp_path / "new.jsonl"], tmp_path / "out")


def test_card_and_figures_of_the_smaller_index_stay_behind(tiny_model: Path, tmp_path: Path):
    told = tmp_path / "told"
    shutil.copytree(tiny_model, told)
    (told / "README.md").write_text("# Figures\n")
    (told / "results.json").write_text("{}")
    write_articles(NEW, tmp_path / "new.jsonl")
    add_to_model_folder(told, [tmp_path / "new.jsonl"], tmp_path / "out")
    assert not {"README.md", "results.json"} & {path.name for path in (tmp_path / "out").iterdir()}


def test_thresholds_are_chosen_anew_where_articles_for_that_are_given(tiny_model: Path, tmp_path: Path):
    write_articles(NEW, tmp_path / "new.jsonl")
    write_articles(UNSEEN, tmp_path / "tune.jsonl")
    files = [tmp_path / "new.jsonl"], tmp_path / "out"
    _, report = add_to_model_folder(tiny_model, *files, tune=[tmp_path / "tune.jsonl"])
    assert report.read == len(NEW) + len(UNSEEN)
    before, after = (load(folder).processor.thresholds for folder in (tiny_model, tmp_path / "out"))
    assert after.held_out and after.global_threshold > before.global_threshold
