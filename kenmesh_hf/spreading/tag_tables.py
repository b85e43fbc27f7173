"""Tags as Arrow columns, the same in every file and block whether or not any tag has all of its parts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..modeling.pipeline_kenmesh import batches
from ..tagging import Tagged

QUALIFIER = pa.struct(
    [
        ("ui", pa.string()),
        ("name", pa.string()),
        ("major", pa.bool_()),
        ("score", pa.float64()),
        ("evidence", pa.string()),
    ]
)
TAG = pa.struct(
    [
        ("ui", pa.string()),
        ("name", pa.string()),
        ("score", pa.float64()),
        ("tree_numbers", pa.list_(pa.string())),
        # Null where a model does not tell them, or nobody asked.
        ("major", pa.bool_()),
        ("major_score", pa.float64()),
        ("qualifiers", pa.list_(QUALIFIER)),
        ("evidence", pa.string()),
    ]
)
SCHEMA = pa.schema([("pmid", pa.string()), ("tags", pa.list_(TAG))])
ROW_GROUP = 4096


def tag_column(tags_of_articles: Iterable[Sequence[Mapping[str, Any]]]) -> pa.Array:
    """A column of lists of tags; evidence, which has many forms, is JSON text."""
    rows = [[_as_told(tag) for tag in tags] for tags in tags_of_articles]
    return pa.array(rows, SCHEMA.field("tags").type)


def _as_told(part: Mapping[str, Any]) -> dict[str, Any]:
    """A tag or a qualifier of one with its evidence as text."""
    told = dict(part)
    if part.get("evidence") is not None:
        told["evidence"] = json.dumps(part["evidence"], ensure_ascii=False)
    if part.get("qualifiers") is not None:
        told["qualifiers"] = [_as_told(qualifier) for qualifier in part["qualifiers"]]
    return told


def write_parquet(results: Iterable[Tagged], path: Path) -> None:
    """Writes PMIDs and tags, a row for each article; few of them are in memory at a time."""
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for window in batches(results, ROW_GROUP):
            pmids = pa.array([article.pmid for article, _ in window], pa.string())
            writer.write_table(pa.table([pmids, tag_column(tags for _, tags in window)], schema=SCHEMA))
