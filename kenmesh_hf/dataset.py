"""The `datasets` builder: articles → rows of word ids, label ids and candidate ids with their numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from datasets import Features, List, Value

from .articles import read_articles
from .errors import InputError
from .modeling.pipeline_kenmesh import batches
from .modeling.processing_kenmesh import KenMeSHProcessor
from .records import Article

SPLITS = ("train", "validation", "test")
# Articles whose candidates are searched for at once.
BATCH = 256

FEATURES = Features(
    {
        "pmid": Value("string"),
        "journal": Value("string"),
        "year": Value("int32"),
        "title_input_ids": List(Value("int32")),
        "input_ids": List(Value("int32")),
        "length": Value("int32"),
        "labels": List(Value("int32")),
        "unknown_labels": Value("int32"),
        "candidate_ids": List(Value("int32")),
        "candidate_features": List(Value("float16")),
    }
)


@dataclass
class KenMeSHBuilderConfig(datasets.BuilderConfig):
    """What the rows are made from; every value is part of the cache's key.

    Attributes:
        processor: Folder of the processor that encodes the articles and finds their candidates.
        fingerprint: Changes with the processor's files, which the path alone does not tell.
        files: Article files of each split. Several files can be worked on by several processes.
    """

    processor: str = ""
    fingerprint: str = ""
    files: dict[str, list[str]] = field(default_factory=dict)


class KenMeSHBuilder(datasets.GeneratorBasedBuilder):
    """Rows hold ids only. The candidates of an article never come from the article itself."""

    BUILDER_CONFIG_CLASS = KenMeSHBuilderConfig
    DEFAULT_WRITER_BATCH_SIZE = 1000
    config: KenMeSHBuilderConfig

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=FEATURES)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        if not self.config.files:
            raise InputError("The builder was given no article files; pass files={'train': [...], ...}.")
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"files": list(files)})
            for split, files in self.config.files.items()
        ]

    def _generate_examples(self, files: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        processor = KenMeSHProcessor.from_pretrained(self.config.processor)
        for file in files:
            for number, batch in enumerate(batches(read_articles(file, strict=True), BATCH)):
                for position, row in enumerate(encode_articles(processor, batch)):
                    yield f"{Path(file).name}:{number * BATCH + position}", row


def encode_articles(processor: KenMeSHProcessor, articles: Sequence[Article]) -> Iterator[dict[str, Any]]:
    """Rows of labelled articles, in order."""
    encoded = processor.encode(
        title=[article.title for article in articles],
        abstract=[article.abstract for article in articles],
        journal=[article.journal for article in articles],
        pmid=[article.pmid for article in articles],
    )
    for article, row in zip(articles, encoded, strict=True):
        labels = {processor.vocabulary.get(ui) for ui in article.descriptors}
        known = sorted(label for label in labels if label is not None)
        yield row | {
            "pmid": article.pmid,
            "journal": article.journal,
            "year": article.year,
            "length": len(row["title_input_ids"]) + len(row["input_ids"]),
            "labels": known,
            "unknown_labels": sum(ui not in processor.vocabulary for ui in set(article.descriptors)),
            "candidate_ids": np.asarray(row["candidate_ids"], np.int32),
            "candidate_features": np.asarray(row["candidate_features"], np.float16).ravel(),
        }
