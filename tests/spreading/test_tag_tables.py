"""Tags as Arrow columns: whatever a tag tells is kept, and what it does not tell is null."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from kenmesh_hf.reading import Article
from kenmesh_hf.spreading.tag_tables import SCHEMA, write_parquet

PLAIN = {"ui": "D015032", "name": "Zinc", "score": 0.9, "tree_numbers": ["D01.268"]}
QUALIFIER = {
    "ui": "Q000627",
    "name": "therapeutic use",
    "major": True,
    "score": 0.8,
    "evidence": {"carriers": 3},
}
FULL = PLAIN | {"major": True, "major_score": 0.7, "qualifiers": [QUALIFIER], "evidence": {"words": []}}


def test_every_part_of_a_tag_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "tags.parquet"
    write_parquet([(Article(pmid="1"), [FULL]), (Article(), [PLAIN]), (Article(pmid="3"), [])], path)
    table = pq.read_table(path)
    assert table.schema.equals(SCHEMA)
    full, plain, none = table.to_pylist()
    [tag] = full["tags"]
    assert json.loads(tag.pop("evidence")) == FULL["evidence"]
    [qualifier] = tag.pop("qualifiers")
    assert qualifier | {"evidence": json.loads(qualifier["evidence"])} == QUALIFIER
    assert tag == {name: FULL[name] for name in tag}
    [tag] = plain["tags"]
    assert {name: value for name, value in tag.items() if value is not None} == PLAIN
    assert plain["pmid"] is None and none == {"pmid": "3", "tags": []}


def test_no_articles_are_an_empty_file(tmp_path: Path) -> None:
    write_parquet([], tmp_path / "tags.parquet")
    assert pq.read_table(tmp_path / "tags.parquet").num_rows == 0
