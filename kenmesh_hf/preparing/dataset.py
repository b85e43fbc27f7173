"""The training set: articles → rows of word, label and candidate ids, as a `datasets` builder and Parquet."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, Features, List, Value, concatenate_datasets, load_dataset
from datasets.exceptions import DatasetGenerationError
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ..errors import InputError
from ..evaluating import to_offsets
from ..modeling.pipeline_kenmesh import batches
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.qualifiers_kenmesh import QUALIFIERS_FILE, MeshQualifiers
from ..reading import Article, read_articles
from .row_stream import TOKEN_COLUMNS, RowGroup, RowStream, find_row_groups

DATA_FOLDER = "data"
ARTICLES_FOLDER = "articles"
PROCESSOR_FOLDER = "processor"
VECTORS_FILE = "word_vectors.safetensors"
REPORT_FILE = "report.json"
# Articles whose candidates are searched for at once, and rows of a Parquet row group.
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
# Candidate ids ascend within an article, so their differences are small numbers. A candidate's own numbers
# repeat in patterns, which zstd finds best in plain bytes.
PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": ["journal"],
    "column_encoding": {"candidate_ids.list.element": "DELTA_BINARY_PACKED"},
}


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


class KenMeSHBuilder(datasets.ArrowBasedBuilder):
    """Rows hold ids only. The candidates of an article never come from the article itself."""

    BUILDER_CONFIG_CLASS = KenMeSHBuilderConfig
    config: KenMeSHBuilderConfig

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=FEATURES)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        if not any(self.config.files.values()):
            raise InputError("The builder was given no article files; pass files={'train': [...], ...}.")
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"files": list(files)})
            for split, files in self.config.files.items()
        ]

    def _generate_tables(self, files: list[str]) -> Iterator[tuple[str, pa.Table]]:
        processor = KenMeSHProcessor.from_pretrained(self.config.processor)
        for file in files:
            for number, table in enumerate(encode_file(processor, file)):
                yield f"{Path(file).name}:{number}", table


def encode_file(processor: KenMeSHProcessor, file: str | Path) -> Iterator[pa.Table]:
    """Rows of the articles of a file, a batch at a time."""
    for batch in batches(read_articles(file, strict=True), BATCH):
        yield encode_articles(processor, batch)


def encode_articles(processor: KenMeSHProcessor, articles: Sequence[Article]) -> pa.Table:
    """Rows of labelled articles, in order."""
    rows = processor.encode(
        title=[article.title for article in articles],
        abstract=[article.abstract for article in articles],
        journal=[article.journal_names for article in articles],
        pmid=[article.pmid for article in articles],
    )
    labels = [[processor.vocabulary.get(ui) for ui in article.descriptors] for article in articles]
    known = [sorted(label for label in row if label is not None) for row in labels]
    unknown = [
        row.count(None) + len(article.unresolved) for row, article in zip(labels, articles, strict=True)
    ]
    columns = {
        "pmid": pa.array([article.pmid for article in articles], pa.string()),
        "journal": pa.array([article.journal for article in articles], pa.string()),
        "year": pa.array([article.year for article in articles], pa.int32()),
        **token_columns([row["title_input_ids"] for row in rows], [row["input_ids"] for row in rows]),
        "labels": _lists(known, np.int32),
        "unknown_labels": pa.array(unknown, pa.int32()),
        "candidate_ids": _lists([row["candidate_ids"] for row in rows], np.int32),
        "candidate_features": _lists([row["candidate_features"].ravel() for row in rows], np.float16),
    }
    return pa.table(columns, schema=FEATURES.arrow_schema)


def token_columns(titles: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]) -> dict[str, pa.Array]:
    """`TOKEN_COLUMNS` of the token ids of titles and abstracts."""
    lengths = [len(title) + len(text) for title, text in zip(titles, texts, strict=True)]
    columns = _lists(titles, np.int32), _lists(texts, np.int32), pa.array(lengths, pa.int32())
    return dict(zip(TOKEN_COLUMNS, columns, strict=True))


def _lists(rows: Sequence[Any], dtype: type) -> pa.ListArray:
    offsets = to_offsets(np.array([len(row) for row in rows], np.int64))
    flat = np.concatenate([np.empty(0, dtype), *(np.asarray(row, dtype) for row in rows)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat))


def write_rows(tables: Iterable[pa.Table], path: str | Path) -> None:
    """Writes rows as one compressed Parquet file, which plain `load_dataset` reads."""
    with pq.ParquetWriter(path, FEATURES.arrow_schema, **PARQUET) as writer:
        for table in tables:
            writer.write_table(table)


def column_bytes(path: str | Path, column: str) -> tuple[int, int]:
    """Values of a list column in a Parquet file, and the bytes they take there."""
    metadata = pq.ParquetFile(path).metadata
    parts = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    chunks = [part.column(i) for part in parts for i in range(part.num_columns)]
    chunks = [chunk for chunk in chunks if chunk.path_in_schema.startswith(f"{column}.")]
    return sum(chunk.num_values for chunk in chunks), sum(chunk.total_compressed_size for chunk in chunks)


@dataclass
class PreparedDataset:
    """A folder that `kenmesh prepare` finished; its parts are read when they are asked for.

    Attributes:
        folder: Of the dataset.
        tokens: Folder of the tokens of another tokenizer, which stand in for those of the rows.
    """

    folder: Path
    tokens: Path | None = None
    _loaded: dict[str, Dataset] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def processor(self) -> KenMeSHProcessor:
        """Tokenizer, candidates and vocabulary."""
        return KenMeSHProcessor.from_pretrained(self.folder / PROCESSOR_FOLDER)

    def with_tokens(self, folder: Path, processor: KenMeSHProcessor) -> "PreparedDataset":
        """The same dataset with the tokens of another processor, which are in a folder."""
        other = PreparedDataset(self.folder, folder)
        other.processor = processor
        return other

    def articles(self, split: str) -> Iterator[Article]:
        """The articles of a split with their texts and headings; none where the folder was sent without."""
        files = sorted((self.folder / ARTICLES_FOLDER).glob(f"{split}-*.jsonl.gz"))
        yield from read_articles(files, strict=True, every_version=True) if files else ()

    @cached_property
    def qualifiers(self) -> MeshQualifiers | None:
        """Which qualifiers a descriptor may have; None where the MeSH file did not tell."""
        folder = self.folder / PROCESSOR_FOLDER
        return MeshQualifiers.from_pretrained(folder) if (folder / QUALIFIERS_FILE).exists() else None

    @cached_property
    def word_vectors(self) -> np.ndarray:
        """First values of the embedding table, in the order of the tokenizer's ids, `(words, dim)`."""
        try:
            return load_file(self.folder / VECTORS_FILE)["vectors"]
        except (OSError, KeyError, SafetensorError) as error:
            raise InputError(
                f"{self.folder / VECTORS_FILE} cannot be read ({error}); prepare again."
            ) from error

    @cached_property
    def report(self) -> dict[str, Any]:
        """What `kenmesh prepare` found."""
        try:
            return json.loads((self.folder / REPORT_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.folder / REPORT_FILE} cannot be read ({error}); delete it and prepare again."
            ) from error

    def stream(self, name: str, batch_size: int, seed: int = 0) -> RowStream:
        """Rows of a split that must be there, in random order, few of them in memory at a time.

        Args:
            name: Of the split.
            batch_size: Rows of a batch of all processes together.
            seed: Random seed.
        """
        return RowStream(self.row_groups(name), batch_size, seed)

    def split(self, name: str) -> Dataset:
        """Rows of a split that must be there, given as NumPy arrays by their number.

        They are converted once, into the cache of `datasets`: 35 kB an article. The fingerprint makes sure
        that rows prepared again are not taken for those in the cache.
        """
        if name not in self._loaded:
            groups = self.row_groups(name)
            try:
                rows = self._load(name, sorted({str(group.file) for group in groups}))
                if self.tokens:
                    tokens = self._load(name, sorted({str(group.tokens) for group in groups}))
                    rows = concatenate_datasets([rows.remove_columns([*TOKEN_COLUMNS]), tokens], axis=1)
            except DatasetGenerationError as error:
                raise InputError(
                    f"{self.folder / DATA_FOLDER} has {name} articles that cannot be read "
                    f"({error.__cause__ or error}); delete their files and prepare again."
                ) from error
            self._loaded[name] = rows.with_format("numpy")
        return self._loaded[name]

    def _load(self, name: str, files: list[str]) -> Dataset:
        key = self.report.get("fingerprint", "")
        return load_dataset("parquet", data_files={name: files}, split=name, description=key)

    @property
    def splits(self) -> dict[str, int]:
        """The number of articles in each split."""
        return {split: figures["articles"] for split, figures in self.report["splits"].items()}

    def row_groups(self, name: str) -> list[RowGroup]:
        """The row groups of a split, all of them there."""
        counts = self.splits
        if name not in counts:
            raise InputError(
                f"{self.folder} has no {name} articles, only {', '.join(counts)}; prepare it with some."
            )
        groups = find_row_groups(sorted((self.folder / DATA_FOLDER).glob(f"{name}-*.parquet")), self.tokens)
        if (found := sum(map(len, groups))) != counts[name]:
            raise InputError(
                f"{self.folder / DATA_FOLDER} has {found} {name} articles instead of {counts[name]}: "
                "a file is missing or of another dataset; prepare again."
            )
        return groups

    train = property(lambda self: self.split("train"))
    validation = property(lambda self: self.split("validation"))
    test = property(lambda self: self.split("test"))


def load_prepared(folder: str | Path) -> PreparedDataset:
    """Opens what `kenmesh prepare` wrote.

    Raises:
        InputError: The folder is not a prepared dataset, or its preparation was not finished.
    """
    folder = Path(folder)
    if not (folder / REPORT_FILE).exists():
        raise InputError(
            f"{folder} is no finished dataset: it has no {REPORT_FILE}. "
            f"Run `kenmesh prepare` with --out {folder} (again, if it was interrupted)."
        )
    return PreparedDataset(folder)
