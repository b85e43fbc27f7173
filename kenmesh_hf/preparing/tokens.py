"""The texts of a prepared dataset as another tokenizer cuts them: columns that are kept beside its rows."""

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from .._version import __version__
from ..errors import InputError, MismatchError
from ..files import unfinished
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.text_kenmesh import clear_tokenizer_state
from ..reading import Article, read_articles
from .articles import ARTICLES_FOLDER
from .dataset import PARQUET, PreparedDataset, token_columns
from .row_stream import RowGroup

TOKENS_FOLDER = "tokens"


def tokenize_anew(
    prepared: PreparedDataset, processor: KenMeSHProcessor, progress: bool = True
) -> PreparedDataset:
    """The dataset with the tokens of another processor; its candidates stay as they are.

    What was tokenized once is not tokenized again: the folder of the tokens is named by all they depend on,
    and a file that is in it is whole.

    Args:
        prepared: A prepared dataset that still has its articles.
        processor: Has another tokenizer, or other limits.
        progress: Show a bar.
    """
    folder = prepared.folder / TOKENS_FOLDER / _key(prepared, processor)
    files: dict[Path, list[RowGroup]] = {}
    for split in prepared.splits:
        for group in prepared.row_groups(split):
            files.setdefault(group.file, []).append(group)
    total = sum(prepared.splits.values())
    with tqdm(total=total, desc="Tokenizing", unit=" articles", disable=not progress) as bar:
        for file, groups in files.items():
            target = folder / file.name
            if not target.exists():
                _write_tokens(_articles_of(prepared, file), groups, processor, target)
            bar.update(sum(map(len, groups)))
    return prepared.with_tokens(folder, processor)


def _key(prepared: PreparedDataset, processor: KenMeSHProcessor) -> str:
    clear_tokenizer_state(processor.tokenizer)
    limits = [processor.max_title_tokens, processor.max_abstract_tokens]
    tokenizer = processor.tokenizer.backend_tokenizer.to_str()
    text = json.dumps([__version__, prepared.report.get("fingerprint"), limits, tokenizer])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _articles_of(prepared: PreparedDataset, file: Path) -> Path:
    articles = prepared.folder / ARTICLES_FOLDER / f"{file.stem}.jsonl.gz"
    if not articles.exists():
        raise InputError(
            f"{articles} is missing, and without texts nothing can be tokenized anew; prepare again."
        )
    return articles


def _write_tokens(source: Path, groups: list[RowGroup], processor: KenMeSHProcessor, target: Path) -> None:
    """Tokens of the articles of a file, in row groups like those of its rows."""
    articles = read_articles(source, strict=True)
    with unfinished(target) as path:
        with pq.ParquetWriter(
            path, _tokens(processor, []).schema, compression=PARQUET["compression"]
        ) as writer:
            for group in groups:
                writer.write_table(_tokens(processor, _same_articles(articles, group, source)))


def _same_articles(articles: Iterator[Article], group: RowGroup, source: Path) -> list[Article]:
    """The next articles of a file, which must be those of the row group."""
    found = list(islice(articles, len(group)))
    if [article.pmid for article in found] != group.read(["pmid"])["pmid"].to_pylist():
        raise MismatchError(f"{source} has not the articles of {group.file}; prepare the dataset again.")
    return found


def _tokens(processor: KenMeSHProcessor, articles: list[Article]) -> pa.Table:
    titles = processor.encode_texts([article.title for article in articles], processor.max_title_tokens)
    texts = processor.encode_texts([article.abstract for article in articles], processor.max_abstract_tokens)
    return pa.table(token_columns(titles, texts))
