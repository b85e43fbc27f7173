"""The web server with a real, small network behind it: many clients get what the pipeline itself gives."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from tiny import tiny_articles, tiny_vocabulary
from tiny_headings import OTHERS

from kenmesh_hf.indexing import build_candidates
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds
from kenmesh_hf.serving.app import create_app
from kenmesh_hf.training import build_network
from kenmesh_hf.words import build_tokenizer, build_vocabulary_words


@pytest.fixture(scope="module")
def tagger():
    """An untrained network; candidates come from invented articles."""
    torch.manual_seed(0)
    articles, vocabulary = tiny_articles(120), tiny_vocabulary()
    words = build_vocabulary_words([f"{article.title} {article.abstract}" for article in articles])
    processor = KenMeSHProcessor(
        build_tokenizer(words),
        candidates=build_candidates(articles, vocabulary),
        vocabulary=vocabulary,
        thresholds=Thresholds(0.5, presets={"precision": 0.6, "recall": 0.3}),
    )
    vectors = np.random.default_rng(0).normal(size=(len(processor.word_ids), 8)).astype(np.float32)
    model = build_network(processor, vectors, evidence=True)
    return MeSHIndexingPipeline(model=model, processor=processor)


def fields_of(article):
    return {"title": article.title, "abstract": article.abstract, "journal": article.journal or ""}


@pytest.fixture(scope="module")
def client(tagger):
    with TestClient(create_app(tagger)) as client:
        yield client


def test_32_clients_at_once_get_what_the_pipeline_gives(tagger, client):
    articles = [fields_of(article) for article in tiny_articles(32, seed=7, first_pmid=9000)]
    expected = tagger(articles, top_k=5)
    with ThreadPoolExecutor(32) as pool:
        send = [pool.submit(client.post, "/api/tag", json=article | {"top_k": 5}) for article in articles]
        answers = [answer.result().json()["tags"] for answer in send]
    for found, direct in zip(answers, expected, strict=True):
        assert [tag["ui"] for tag in found] == [tag["ui"] for tag in direct]
        # Padding to the longest of a batch leaves a last bit or two of difference.
        assert [tag["score"] for tag in found] == pytest.approx([tag["score"] for tag in direct], abs=1e-5)


def test_evidence_of_a_real_model_points_into_the_text(client):
    article = fields_of(tiny_articles(1, seed=3, first_pmid=9500)[0])
    tags = client.post("/api/tag", json=article | {"top_k": 10, "evidence": True}).json()["tags"]
    assert len(tags) == 10
    for tag in tags:
        for word in tag["evidence"]["words"]:
            assert article[word["field"]][word["start"] : word["end"]] == word["word"]
        assert all(neighbour["pmid"].isdecimal() for neighbour in tag["evidence"]["neighbours"])


def test_presets_of_the_model_are_served(client):
    article = fields_of(tiny_articles(1)[0])
    number = {
        preset: len(client.post("/api/tag", json=article | {"preset": preset}).json()["tags"])
        for preset in ("precision", "recall")
    }
    assert number["precision"] <= number["recall"]
    assert client.get("/api/info").json()["descriptors"] == len(tiny_vocabulary())


def test_major_topics_and_qualifiers_are_served_with_their_reasons(telling_tagger):
    article = fields_of(OTHERS[1])
    with TestClient(create_app(telling_tagger)) as client:
        tags = client.post("/api/tag", json=article | {"evidence": True}).json()["tags"]
        bare = client.post("/api/tag", json=article | {"qualifiers": False}).json()["tags"]
    expected = telling_tagger(article, evidence=True)
    assert [(tag["ui"], tag["major"]) for tag in tags] == [(tag["ui"], tag["major"]) for tag in expected]
    assert any(tag["major"] and tag["qualifiers"] for tag in tags)
    for tag in tags:
        assert 0 <= tag["evidence"]["major"]["agreeing"] <= tag["evidence"]["major"]["carriers"]
        assert all({"carriers", "agreeing", "words"} == set(item["evidence"]) for item in tag["qualifiers"])
    assert all("qualifiers" not in tag and "major_score" in tag for tag in bare)


def test_a_model_that_does_not_tell_headings_says_nothing_of_them(client):
    [tag] = client.post("/api/tag", json=fields_of(tiny_articles(1)[0]) | {"top_k": 1}).json()["tags"]
    assert not {"major", "major_score", "qualifiers"} & set(tag)
