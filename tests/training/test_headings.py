"""Major topics and qualifiers: learned from articles, told of tags, never by what one says of itself."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_vocabulary, write_tiny_mesh, write_tiny_vectors
from tiny_headings import OTHERS, TOLD, tiny_headings
from tiny_model import TRAINING, build_tagger

import kenmesh_hf
from kenmesh_hf.errors import InputError
from kenmesh_hf.evaluating import evaluate
from kenmesh_hf.indexing import build_candidates, know_headings, label_ids, learn_qualifiers
from kenmesh_hf.mesh import MeshQualifiers
from kenmesh_hf.modeling.heading_counts_kenmesh import Tags
from kenmesh_hf.modeling.heading_numbers_kenmesh import MAJOR_NUMBERS, PAIR_NUMBERS, HeadingNumbers
from kenmesh_hf.modeling.headings_kenmesh import HEADINGS_FILE
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.preparing import PrepareOptions, prepare
from kenmesh_hf.reading import Article, Heading, Qualifier, write_articles
from kenmesh_hf.training import fit_headings, options_for, train
from kenmesh_hf.training.aspects import fit_aspects

VOCABULARY = tiny_vocabulary()
INPUTS = [article.as_input() for article in OTHERS]


def test_unseen_articles_are_told_their_major_topics_and_qualifiers(telling_tagger):
    figures = evaluate(telling_tagger, tiny_headings(60, seed=5, first_pmid=9001), progress=False)
    assert figures["major_MiF"] > 0.75
    assert figures["qualifier_MiF"] > 0.7


def test_tags_tell_scores_and_agree_with_themselves(telling_tagger):
    tags = [tag for row in telling_tagger(INPUTS) for tag in row]
    assert all(0 <= tag["major_score"] <= tag["score"] for tag in tags)
    pairs = [(tag, item) for tag in tags for item in tag["qualifiers"]]
    assert {item["name"] for _, item in pairs} == {"drug therapy", "blood"}
    assert all(0 < item["score"] <= tag["score"] for tag, item in pairs)
    assert all(tag["major"] for tag, item in pairs if item["major"])
    assert any(item["major"] for _, item in pairs)
    json.dumps(tags)


def test_a_batch_tells_what_each_article_alone_is_told(telling_tagger):
    together = telling_tagger(INPUTS[:10])
    for article, tags in zip(INPUTS[:10], together, strict=True):
        for alone, tag in zip(telling_tagger(article), tags, strict=True):
            assert alone["major_score"] == pytest.approx(tag["major_score"], abs=1e-4)
            assert [q["ui"] for q in alone["qualifiers"]] == [q["ui"] for q in tag["qualifiers"]]


def test_no_pair_is_proposed_that_is_not_allowed(telling_tagger):
    table = telling_tagger.processor.headings.qualifiers
    for tag in (tag for row in telling_tagger(INPUTS, threshold=0.05) for tag in row):
        allowed = {item.ui for item in table.allowed(tag["ui"], tag["tree_numbers"])}
        assert {item["ui"] for item in tag["qualifiers"]} <= allowed
        if tag["name"] in ("Humans", "Animals"):
            assert not allowed


def test_qualifiers_may_be_left_out(telling_tagger):
    tags = telling_tagger(INPUTS[0], qualifiers=False)
    assert all("qualifiers" not in tag and "major" in tag for tag in tags)


def test_a_saved_model_tells_the_same(telling_tagger, telling_model: Path):
    again = kenmesh_hf.load(telling_model)
    assert again.processor.headings.thresholds == telling_tagger.processor.headings.thresholds
    for loaded, told in zip(again(INPUTS[:5]), telling_tagger(INPUTS[:5]), strict=True):
        assert [(tag["ui"], tag["major"]) for tag in loaded] == [(tag["ui"], tag["major"]) for tag in told]
        for one, other in zip(loaded, told, strict=True):
            assert one["major_score"] == pytest.approx(other["major_score"], abs=1e-5)
            assert [q["ui"] for q in one["qualifiers"]] == [q["ui"] for q in other["qualifiers"]]


def test_the_same_headings_are_saved_as_the_same_bytes(telling_tagger, telling_model: Path, tmp_path: Path):
    telling_tagger.processor.headings.save_pretrained(tmp_path)
    assert (tmp_path / HEADINGS_FILE).read_bytes() == (telling_model / HEADINGS_FILE).read_bytes()


def test_models_without_headings_tell_none(tiny_tagger):
    [tag, *_] = tiny_tagger(TRAINING[0].as_input(), top_k=1)
    assert set(tag) == {"ui", "name", "score", "tree_numbers"}


def test_a_model_without_its_index_tells_none(telling_model: Path, tmp_path: Path):
    processor = KenMeSHProcessor.from_pretrained(telling_model)
    assert processor.tells_headings
    candidates = build_candidates(TRAINING, VOCABULARY)
    assert not processor.with_parts(candidates=candidates).tells_headings
    assert not processor.with_parts(candidates=None).tells_headings


def test_an_index_that_knows_no_headings_is_refused():
    with pytest.raises(InputError, match="knows no headings"):
        fit_headings(build_tagger(), lambda: TRAINING)


def other_headings(article: Article) -> Article:
    """The same article, every heading of it major and with a qualifier that it did not have."""
    odd = (Qualifier("Q000662", "veterinary", True), Qualifier("Q000097", "blood"))
    return replace(article, headings=tuple(Heading(h.ui, h.name, True, odd) for h in article.headings))


def numbers_of(articles: list[Article], query: Article, qualifiers: MeshQualifiers) -> tuple[np.ndarray, ...]:
    """Numbers of an article's own descriptors in an index of articles."""
    candidates = build_candidates(articles, VOCABULARY)
    fields = query.as_input()
    found = candidates(*([fields[k]] for k in ("title", "abstract", "journal", "pmid")), keep_neighbours=True)
    tags = Tags.of([label_ids(query, VOCABULARY)], list(found.split()), candidates.ranker)
    recent = candidates.articles.since(0)
    counted = HeadingNumbers(candidates.articles, recent, VOCABULARY, qualifiers)
    of_tags, pairs, of_pairs = counted(tags, found.findings, np.zeros((1, 76)))
    return of_tags, np.column_stack([pairs.tags, pairs.qualifiers]), of_pairs


@pytest.mark.parametrize("number", [0, 70])
@pytest.mark.parametrize("known_by", ["pmid", "text"])
def test_what_the_index_knows_of_an_article_does_not_move_its_own_numbers(number, known_by):
    articles, qualifiers = TOLD[:120], learn_qualifiers(TOLD, VOCABULARY)
    changed = [other_headings(a) if place == number else a for place, a in enumerate(articles)]
    query = articles[number] if known_by == "pmid" else replace(articles[number], pmid=None)
    before, after = (numbers_of(rows, query, qualifiers) for rows in (articles, changed))
    for one, other in zip(before, after, strict=True):
        assert np.allclose(one, other, atol=1e-5)


def test_an_indexed_article_gets_the_numbers_of_an_unseen_one():
    articles, qualifiers = TOLD[:120], learn_qualifiers(TOLD, VOCABULARY)
    inside, outside = (
        numbers_of(rows, articles[5], qualifiers) for rows in (articles, articles[:5] + articles[6:])
    )
    assert np.array_equal(inside[1], outside[1])
    for names, part in ((MAJOR_NUMBERS, 0), (PAIR_NUMBERS, 2)):
        for name in ("prior", "recent_prior", "branch_prior", "known"):
            column = names.index(name)
            assert np.allclose(inside[part][:, column], outside[part][:, column], atol=1e-5), name


def test_a_pair_that_only_the_article_itself_has_is_not_proposed_to_it():
    article = replace(TOLD[3], headings=other_headings(TOLD[3]).headings)
    articles = [article if one.pmid == article.pmid else one for one in TOLD[:120]]
    veterinary = MeshQualifiers().find("veterinary")
    places = {item.ui: number for number, item in enumerate(MeshQualifiers().qualifiers)}
    for query, proposed in ((article, False), (replace(article, pmid=None, title="Other"), True)):
        pairs = numbers_of(articles, query, learn_qualifiers(articles, VOCABULARY))[1]
        assert (places[veterinary.ui] in pairs[:, 1]) == proposed


def test_what_words_say_about_an_article_was_fitted_without_it():
    tagger = build_tagger(articles=TOLD[:150])
    processor, query = tagger.processor, TOLD[20]
    fields = query.as_input()
    found = processor.candidates(
        *([fields[k]] for k in ("title", "abstract", "journal", "pmid")), keep_neighbours=True
    ).findings
    own = [(found[0].own, processor.candidates.articles.hashes[found[0].own])]
    said = []
    for articles in (TOLD[:150], [other_headings(a) if a.pmid == query.pmid else a for a in TOLD[:150]]):
        model = fit_aspects(processor, articles)
        nothing = np.zeros(0, np.int64)
        inputs = model.inputs([found[0].words], nothing, nothing, nothing)
        said.append(
            (model.predict(inputs, own), model.predict(inputs, [(nothing, nothing.astype(np.uint64))]))
        )
    assert np.allclose(said[0][0], said[1][0], atol=1e-6)
    assert not np.allclose(said[0][1], said[1][1], atol=1e-3)


def silenced(article: Article) -> Article:
    """Another article of the same words, of whose headings only the descriptors are known."""
    headings = tuple(Heading(heading.ui, heading.name) for heading in article.headings)
    return replace(article, pmid=f"5{article.pmid:0>4}", title=f"{article.title} again", headings=headings)


def test_unknown_headings_do_not_count_as_negative(telling_tagger):
    silent = [silenced(article) for article in TOLD[:100]]
    both = build_candidates([*TOLD[:100], *silent], VOCABULARY).articles
    alone = build_candidates(TOLD[:100], VOCABULARY).articles
    qualifiers = telling_tagger.processor.headings.qualifiers
    counts = [HeadingNumbers(a, a.since(0), VOCABULARY, qualifiers).counts for a in (both, alone)]
    for one, other in zip(counts[0].all, counts[1].all, strict=True):
        assert np.array_equal(one, other)


def test_an_index_learns_the_headings_of_articles_that_it_has():
    processor = build_tagger().processor
    told = tiny_headings(120)
    assert processor.candidates.articles.headings is None
    known, count = know_headings(processor, [*told[:50], *OTHERS[:3]])
    assert count == 50
    more, count = know_headings(known, told[50:60])
    assert count == 10
    tells = [any(h.major or h.qualifiers for h in article.headings) for article in told]
    assert (more.candidates.articles.headings.known > 0).tolist() == tells[:60] + [False] * 60
    assert processor.candidates.articles.headings is None


def test_training_on_prepared_articles_learns_headings(tmp_path: Path):
    write_articles(TOLD, tmp_path / "articles.jsonl")
    plain = [replace(a, headings=silenced(a).headings) for a in TOLD]
    write_articles(plain, tmp_path / "plain.jsonl")
    for name, headings in (("told", []), ("joined", [str(tmp_path / "articles.jsonl")])):
        options = PrepareOptions(
            mesh=str(write_tiny_mesh(tmp_path)),
            out=str(tmp_path / name),
            articles=[str(tmp_path / ("plain.jsonl" if headings else "articles.jsonl"))],
            headings=headings,
            validation_size=40,
            test_size=10,
            min_count=1,
            word_vectors=str(write_tiny_vectors(tmp_path)),
        )
        prepare(options, progress=False)
    train(options_for("small", max_steps=2), tmp_path / "joined", tmp_path / "model", report_to=[])
    tagger = kenmesh_hf.load(tmp_path / "model")
    assert tagger.processor.tells_headings
    assert all("major" in tag and "qualifiers" in tag for tag in tagger(INPUTS[0], top_k=5))
    tables = [
        KenMeSHProcessor.from_pretrained(tmp_path / name / "processor").candidates.articles.headings.tensors
        for name in ("told", "joined")
    ]
    assert all(np.array_equal(tables[0][key], tables[1][key]) for key in tables[0])
