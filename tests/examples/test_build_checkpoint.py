"""The script that builds the bundled checkpoint, on invented articles in the place of the wheel's."""

import runpy
import sys
from pathlib import Path

import pytest
from places import EXAMPLES
from tiny import write_tiny_articles, write_tiny_mesh
from tiny_headings import OTHERS, TOLD

from kenmesh_hf import load
from kenmesh_hf.reading import write_articles
from kenmesh_hf.sharing import CARD

SCRIPT = EXAMPLES / "build_checkpoint.py"


class Wheel:
    """An installed wheel whose data files are a file of articles."""

    def __init__(self, name: str, articles: Path):
        self.name, self.articles = name, articles

    def locate(self) -> Path:
        return self.articles


def test_a_checkpoint_is_built_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (wheel,) = write_tiny_articles(tmp_path, 60, seed=8)
    for name, articles in (("train", TOLD), ("validation", OTHERS)):
        write_articles(articles, tmp_path / f"{name}.jsonl")
    given = {
        "mesh": write_tiny_mesh(tmp_path),
        "articles": tmp_path / "train.jsonl",
        "validation": tmp_path / "validation.jsonl",
        "work": tmp_path / "work",
        "out": tmp_path / "out",
    }
    names = ("pubmed20n0014.xml.gz", "pubmed21n1298.xml.gz")
    monkeypatch.setattr("importlib.metadata.files", lambda name: [Wheel(name, wheel) for name in names])
    monkeypatch.setattr(
        sys, "argv", [str(SCRIPT), *(w for name, value in given.items() for w in (f"--{name}", str(value)))]
    )
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert '"MiF"' in capsys.readouterr().out.splitlines()[-1]
    tagger = load(tmp_path / "out")
    assert len(tagger.processor.candidates.articles) == len(TOLD)
    assert tagger({"title": OTHERS[0].title, "abstract": OTHERS[0].abstract})
    assert "validation.jsonl (thresholds were chosen on it)" in (tmp_path / "out" / CARD).read_text()
    assert not list((tmp_path / "out").glob("*.py"))
