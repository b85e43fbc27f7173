"""A new MeSH year on real articles: tags that the model never trained on, before, after, and fine-tuned.

The model is trained with the old year's descriptors on articles that are no younger than that year and carry
none of the later descriptors: nothing is stripped, since an article about COVID-19 without its descriptor
would teach that there is none. Later articles with a new descriptor are divided in turn: one for fine-tuning,
one to be tagged, with those of `--held-out`. Later articles without one are for fine-tuning, too; of all
these every eighth is kept for the thresholds. Old descriptors are measured on the articles of `--held-out`
without a new one. What is finished is not done again.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _measure import print_table

from kenmesh_hf import load
from kenmesh_hf.files import unfinished, write_json
from kenmesh_hf.mesh import diff_vocabularies, read_vocabulary
from kenmesh_hf.preparing import PrepareOptions, Stages, file_state, prepare
from kenmesh_hf.reading import Article, read_articles, write_articles
from kenmesh_hf.training import options_for, train
from kenmesh_hf.updating import score_each, score_update, update_model_folder

EXAMPLE = Path(__file__).parent.parent / "examples" / "finetune_new_mesh_year.py"
RESULTS = "mesh_update.json"
PARTS = ("train", "validation", "finetune", "tune", "new", "old")
TUNING = 8
SHOWN = 5


def divide(
    given: Sequence[Article],
    held_out: Sequence[Article],
    added: frozenset[str],
    year: int,
    validation: int,
    most: int | None = None,
    tested: int | None = None,
) -> dict[str, list[Article]]:
    """Articles by use.

    Args:
        given: Articles to train on.
        held_out: Articles to measure on.
        added: Descriptors of the new year.
        year: The old one.
        validation: Articles that choose the old model's thresholds.
        most: Articles of the old year, at most.
        tested: Articles that old descriptors are measured on, at most.
    """

    def is_new(article: Article) -> bool:
        return not added.isdisjoint(article.descriptors)

    fresh = [article for article in given if is_new(article)]
    earlier = [article for article in given if not is_new(article) and (article.year or 0) <= year]
    later = [article for article in given if not is_new(article) and (article.year or 0) > year]
    recent = fresh[::2] + later
    # The file may be sorted by where its articles are from; every part gets some of each source.
    step = max(len(earlier) // max(validation, 1), 1)
    chosen = earlier[::step][:validation]
    kept = {id(article) for article in chosen}
    return {
        "train": [article for article in earlier if id(article) not in kept][:most],
        "validation": chosen,
        "finetune": [article for row, article in enumerate(recent) if row % TUNING],
        "tune": recent[::TUNING],
        "new": fresh[1::2] + [article for article in held_out if is_new(article)],
        "old": [article for article in held_out if not is_new(article)][:tested],
    }


def train_old_year(chosen: argparse.Namespace, work: Path) -> dict[str, Any]:
    """The model of the old year."""
    prepare(
        PrepareOptions(
            mesh=chosen.old_mesh,
            out=str(work / "prepared"),
            articles=[str(work / "train.jsonl")],
            validation=str(work / "validation.jsonl"),
            human_only=False,
            vector_epochs=chosen.vector_epochs,
        )
    )
    options = options_for("small", epochs=chosen.epochs)
    return train(options, work / "prepared", work / "before", resume=True)["best"]


def update(chosen: argparse.Namespace, work: Path) -> dict[str, Any]:
    """The same model with the new year's descriptors."""
    with unfinished(work / "updated") as out:
        print(update_model_folder(work / "before", chosen.new_mesh, out, limit=5))
    return {}


def finetune(chosen: argparse.Namespace, work: Path) -> dict[str, Any]:
    """The model of the new year, fine-tuned as the example does it."""
    with unfinished(work / "finetuned") as out:
        options = {"model": work / "before", "mesh": chosen.new_mesh, "articles": work / "finetune.jsonl"}
        options |= {"tune": work / "tune.jsonl", "held-out": work / "validation.jsonl", "out": out}
        given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        subprocess.run([sys.executable, str(EXAMPLE), *given], check=True)
    return {}


def measure(model: Path, new: list[Article], old: list[Article], added: frozenset[str]) -> dict[str, Any]:
    """New descriptors on articles that carry some, old ones on articles without; both with their counts."""
    tagger = load(model)
    return {
        "new": score_update(tagger, new, added),
        "old": score_update(tagger, old, added),
        "most_frequent": score_each(tagger, new, added, SHOWN),
    }


def summarize(results: dict[str, dict[str, Any]], sizes: dict[str, int]) -> dict[str, Any]:
    """The figures that count, with the numbers of articles and labels behind them."""
    recall = {
        f"new_recall_at_10_{name}": result["new"]["new_recall_at_10"] for name, result in results.items()
    }
    new, old = results["before"]["new"], results["before"]["old"]
    return {
        "articles": sizes,
        **recall,
        "new_recall_behind": {"articles": new["articles"], "labels": new["new_labels"]},
        "old_MiF_before": old["old_MiF"],
        "old_MiF_updated": results["updated"]["old"]["old_MiF"],
        "old_MiF_after": results["finetuned"]["old"]["old_MiF"],
        "old_MiF_behind": {"articles": old["articles"], "labels": old["old_labels"]},
        "all": results,
    }


def table(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    """What people want to see: a column for each model."""
    figures = {
        "new descriptors among the ten best": ("new", "new_recall_at_10"),
        "new descriptors among the candidates": ("new", "new_candidate_recall"),
        "micro F1 of old descriptors": ("old", "old_MiF"),
    }
    return {
        title: {name: f"{result[part][figure]:.3f}" for name, result in results.items()}
        for title, (part, figure) in figures.items()
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old-mesh", required=True, help="descriptors of the year the model is trained with")
    parser.add_argument("--new-mesh", required=True, help="descriptors of a later year")
    parser.add_argument("--articles", required=True, help="labelled articles to train on")
    parser.add_argument("--held-out", required=True, help="labelled articles to measure on")
    parser.add_argument("--work", type=Path, required=True, help="folder for all that is made")
    parser.add_argument("--most", type=int, help="most articles of the old year (default: all)")
    parser.add_argument("--validation", type=int, default=300, help="articles of the old year for thresholds")
    parser.add_argument("--tested", type=int, help="most articles for old descriptors (default: all)")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the old year")
    parser.add_argument("--vector-epochs", type=int, default=5)
    return parser.parse_args()


def main() -> None:
    chosen = parse()
    work, stages = chosen.work, Stages(chosen.work / ".stages")
    old, new = read_vocabulary(chosen.old_mesh), read_vocabulary(chosen.new_mesh)
    added = frozenset(diff_vocabularies(old, new).added)
    given, held_out = (list(read_articles(path)) for path in (chosen.articles, chosen.held_out))
    parts = divide(given, held_out, added, old.year, chosen.validation, chosen.most, chosen.tested)
    sizes = {name: len(parts[name]) for name in PARTS}

    def write_parts() -> None:
        work.mkdir(parents=True, exist_ok=True)
        for name in PARTS:
            write_articles(parts[name], work / f"{name}.jsonl")

    settings = {name: value for name, value in vars(chosen).items() if name != "work"}
    sources = [
        file_state(path) for path in (chosen.old_mesh, chosen.new_mesh, chosen.articles, chosen.held_out)
    ]
    files = [work / f"{name}.jsonl" for name in PARTS]
    begun = stages.run("parts", [settings, sources], files, write_parts).fingerprint
    for name, make in (("before", train_old_year), ("updated", update), ("finetuned", finetune)):
        stages.run(name, begun, [work / name], lambda make=make: make(chosen, work))
    results = {
        name: stages.run(
            f"scores-{name}",
            begun,
            [],
            lambda name=name: measure(work / name, parts["new"], parts["old"], added),
        ).result
        for name in ("before", "updated", "finetuned")
    }
    summary = summarize(results, sizes)
    write_json(work / RESULTS, summary)
    print_table(table(results))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
