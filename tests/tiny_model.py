"""A tiny tagger over the invented MeSH: evidence learned, network left as it started. Made in a second."""

from collections.abc import Sequence

import numpy as np
import torch
from tiny import tiny_articles, tiny_vocabulary
from tiny_encoder import tiny_bert_config, tiny_tokenizer
from transformers import BertModel

from kenmesh_hf.indexing import build_candidates, find_candidates, label_ids
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds
from kenmesh_hf.reading import Article
from kenmesh_hf.training import build_network, start_evidence
from kenmesh_hf.words import build_tokenizer, build_vocabulary_words

TRAINING = tiny_articles(120)
UNSEEN = tiny_articles(40, seed=9, first_pmid=5001)


def build_tagger(
    encoder: bool = False, articles: Sequence[Article] = TRAINING, **settings: object
) -> MeSHIndexingPipeline:
    """A tagger that gives mostly right tags, with words or with a tiny BERT; `settings` go to the network."""
    torch.manual_seed(0)
    vocabulary = tiny_vocabulary()
    words = build_vocabulary_words([f"{article.title} {article.abstract}" for article in articles])
    processor = KenMeSHProcessor(
        tiny_tokenizer() if encoder else build_tokenizer(words),
        **({"max_title_tokens": 24, "max_abstract_tokens": 40} if encoder else {}),
        candidates=build_candidates(articles, vocabulary),
        vocabulary=vocabulary,
        thresholds=Thresholds(
            0.4, np.linspace(0.3, 0.5, len(vocabulary)), presets={"precision": 0.7, "recall": 0.2}
        ),
    )
    vectors = np.random.default_rng(0).normal(size=(len(processor.word_ids), 8)).astype(np.float32)
    settings = {"loss_labels": "candidates", "label_bias": True} | settings
    if encoder:
        settings["text_encoder"] = BertModel(tiny_bert_config())
    model = build_network(processor, vectors, evidence=True, **settings)
    start_evidence(model, _rows(processor, articles), epochs=150)
    with torch.no_grad():
        # An untrained network would drown the evidence.
        model.evidence.score_scale.fill_(0.002)
    return MeSHIndexingPipeline(model=model, processor=processor)


def _rows(processor: KenMeSHProcessor, articles: Sequence[Article]) -> list[dict[str, np.ndarray]]:
    return [
        {
            "candidate_ids": ids,
            "candidate_features": numbers,
            "labels": label_ids(article, processor.vocabulary),
        }
        for batch, found in find_candidates(processor.candidates, articles)
        for article, (ids, numbers) in zip(batch, found.split(), strict=True)
    ]
