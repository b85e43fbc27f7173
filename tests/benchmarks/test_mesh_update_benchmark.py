"""The benchmark of a new MeSH year: what the old model must not know, and a whole run that is resumed."""

import json
import subprocess
import sys
from pathlib import Path

import mesh_update
import pytest
from new_year import NEW, new_year_articles, write_new_year
from patience import PATIENCE
from tiny import tiny_articles, write_tiny_mesh

from kenmesh_hf.reading import Article, Heading, write_articles

SCRIPT = Path(mesh_update.__file__)
OLD_UI, NEW_UI = "D000001", "D000002"


def article(number: int, year: int | None, *uis: str) -> Article:
    return Article(title=str(number), pmid=str(number), year=year, headings=tuple(map(Heading, uis)))


@pytest.fixture
def parts() -> dict[str, set[str]]:
    early = [article(number, 2018, OLD_UI) for number in range(40)]
    undated = [article(number, None, OLD_UI) for number in range(40, 60)]
    later = [article(number, 2020, OLD_UI) for number in range(100, 116)]
    fresh = [article(number, 2018 + number % 3, OLD_UI, NEW_UI) for number in range(200, 220)]
    held_out = [article(300, 2010, OLD_UI), article(301, 2021, OLD_UI), article(302, 2021, NEW_UI)]
    given = [*fresh, *later, *early, *undated]
    divided = mesh_update.divide(given, held_out, frozenset([NEW_UI]), 2019, validation=10)
    return {name: {item.pmid for item in part} for name, part in divided.items()}


def numbers(*ranges: range) -> set[str]:
    return {str(number) for part in ranges for number in part}


def test_the_old_model_sees_nothing_later_and_nothing_new(parts):
    assert parts["train"] | parts["validation"] == numbers(range(60))
    assert len(parts["validation"]) == 10 and not parts["train"] & parts["validation"]
    # From both sources, which stand one after the other.
    assert parts["validation"] & numbers(range(40)) and parts["validation"] & numbers(range(40, 60))


def test_articles_with_new_descriptors_are_fine_tuned_on_or_tagged_never_both(parts):
    learned = parts["finetune"] | parts["tune"]
    assert parts["new"] == numbers(range(201, 220, 2)) | {"302"}
    assert learned == numbers(range(200, 220, 2), range(100, 116))
    assert not parts["finetune"] & parts["tune"] and parts["tune"]
    assert parts["old"] == {"300", "301"}


def test_sizes_are_limited():
    given = [article(number, 2018, OLD_UI) for number in range(50)]
    held_out = [article(number, 2018, OLD_UI) for number in range(100, 120)]
    parts = mesh_update.divide(given, held_out, frozenset([NEW_UI]), 2019, 5, most=7, tested=3)
    assert [len(parts[name]) for name in ("train", "validation", "old")] == [7, 5, 3]


def run(folder: Path) -> tuple[dict, str]:
    options = {"old-mesh": folder / "mesh2024.tsv", "new-mesh": folder / "mesh2025.tsv"}
    options |= {"articles": folder / "articles.jsonl", "held-out": folder / "held_out.jsonl"}
    options |= {"work": folder / "work", "validation": 30, "vector-epochs": 1}
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *given], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stdout


def test_a_whole_run_tells_every_figure_and_is_not_done_again(tmp_path: Path) -> None:
    write_tiny_mesh(tmp_path)
    write_new_year(tmp_path / "mesh2025.tsv")
    write_articles([*tiny_articles(150), *new_year_articles(220, 3, 20_001)], tmp_path / "articles.jsonl")
    write_articles(new_year_articles(40, 4, 40_001), tmp_path / "held_out.jsonl")
    figures, told = run(tmp_path)
    assert f"{NEW[0]} {NEW[1]}" in told
    assert figures["new_recall_at_10_before"] == 0 < figures["all"]["updated"]["new"]["new_candidate_recall"]
    assert figures["new_recall_at_10_finetuned"] > max(0.5, figures["new_recall_at_10_updated"])
    assert figures["old_MiF_after"] > figures["old_MiF_before"] - 0.05
    assert figures["new_recall_behind"] == {"articles": 75, "labels": 75}
    assert figures["old_MiF_behind"]["articles"] == 20
    again, told = run(tmp_path)
    assert again == figures and not any(NEW[0] in line for line in told.splitlines()[:-1])
