"""Counts for the progress bar: right for regular files, none where parsing would be needed."""

import gzip

import pytest
from tiny import tiny_articles

from kenmesh_hf.reading import count_records, record_counts, write_articles

RECORD = (
    b'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID>1</PMID></MedlineCitation></PubmedArticle>\n'
)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.ris"])
def test_counts_are_those_of_the_articles(tmp_path, name):
    write_articles(tiny_articles(37), tmp_path / name)
    assert count_records([tmp_path / name]) == 37
    assert count_records([tmp_path, tmp_path / name]) == 74


def test_pubmed_records_are_counted_across_blocks(tmp_path):
    path = tmp_path / "pubmed.xml.gz"
    path.write_bytes(gzip.compress(b"<PubmedArticleSet>\n" + RECORD * 30_000 + b"</PubmedArticleSet>"))
    assert count_records([path]) == 30_000


def test_medline_records_are_counted(tmp_path):
    (tmp_path / "a.nbib").write_text("PMID- 1\nTI  - One\n\nPMID- 2\nTI  - Two\n")
    assert count_records([tmp_path / "a.nbib"]) == 2


def test_what_cannot_be_counted_cheaply_has_no_count(tmp_path, monkeypatch):
    write_articles(tiny_articles(5), tmp_path / "a.csv")
    assert count_records([tmp_path / "a.csv"]) is None
    assert count_records(["-"]) is None
    (tmp_path / "odd").write_text("what is this?")
    assert count_records([tmp_path / "odd"]) == 0
    write_articles(tiny_articles(5), tmp_path / "a.jsonl")
    monkeypatch.setattr(record_counts, "LARGEST", 100)
    assert count_records([tmp_path / "a.jsonl"]) is None
