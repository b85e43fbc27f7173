"""Articles that join an index: the same tables as if it had been built with them, as far as that can be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_articles, tiny_vocabulary
from tiny_model import TRAINING, UNSEEN

from kenmesh_hf.errors import InputError
from kenmesh_hf.indexing import add_articles, build_candidates
from kenmesh_hf.indexing.growth import Growth
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.modeling.neighbours_kenmesh import SparseNeighbours
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions
from kenmesh_hf.modeling.terms_kenmesh import hash_words
from kenmesh_hf.modeling.text_kenmesh import content_words
from kenmesh_hf.modeling.word_counts_kenmesh import count_terms
from kenmesh_hf.reading import Article, Heading

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


def test_a_processor_without_candidates_is_refused(tiny_tagger):
    bare = KenMeSHProcessor(tiny_tagger.processor.tokenizer, vocabulary=tiny_vocabulary())
    with pytest.raises(InputError, match="no candidates"):
        add_articles(bare, NEW)
