"""The benchmark of tagging on Ray on a few articles: every figure is there, and nothing is lost."""

import gzip
import json
from pathlib import Path

import cluster as benchmark
import pytest
from places import DATA

from kenmesh_hf.reading import read_articles

KEYS = {"scaling", "overhead", "identical", "lost", "peak_driver_mb", "ceiling"}


@pytest.fixture
def pubmed_file(tmp_path: Path) -> Path:
    """A PubMed file of many records: those of a small one, again and again."""
    content = (DATA / "citations.xml").read_bytes()
    records = [match[0] for match in benchmark.RECORD.finditer(content)] * 100
    path = tmp_path / "pubmed26n0001.xml.gz"
    path.write_bytes(gzip.compress(b"<PubmedArticleSet>" + b"".join(records) + b"</PubmedArticleSet>"))
    return path


def test_a_file_is_cut_into_files(pubmed_file: Path, tmp_path: Path) -> None:
    pieces = benchmark.cut(pubmed_file, tmp_path, 10, 4)
    found = [[article.pmid for article in read_articles(piece, every_version=True)] for piece in pieces]
    assert [len(pmids) for pmids in found] == [3, 3, 3, 1]
    whole = [article.pmid for article in read_articles(pubmed_file, every_version=True)]
    assert sum(found, []) == whole[:10]


def test_runs_are_compared_row_by_row(tmp_path: Path) -> None:
    rows = [
        {"pmid": str(n), "tags": [{"ui": "D1", "score": 0.5}, {"ui": "D2", "score": 0.4}]} for n in range(3)
    ]
    for name in ("one", "other", "short"):
        (tmp_path / name).mkdir()
        kept = rows[:2] if name == "short" else rows
        text = "".join(json.dumps(row) + "\n" for row in kept)
        (tmp_path / name / "a.jsonl").write_text(text.replace("0.5", "0.25") if name == "other" else text)
    assert benchmark.compare(tmp_path / "one", tmp_path / "other") == (True, 0.25)
    assert benchmark.compare(tmp_path / "one", tmp_path / "short") == (False, 0.0)


@pytest.mark.ray
def test_prints_every_figure_as_a_json_line_last(
    pubmed_file: Path, tiny_model: Path, capsys: pytest.CaptureFixture
) -> None:
    sizes = ["--articles", "200", "--files", "4", "--repeats", "1"]
    benchmark.main([f"--file={pubmed_file}", f"--model={tiny_model}", *sizes])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert KEYS <= set(result)
    assert result["identical"] is True and result["lost"] == 0
    assert result["scaling"] > 0 and result["overhead"] > 0 and result["ceiling"] > 0
    assert result["peak_driver_mb"] > 100
