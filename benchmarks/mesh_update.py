"""Zero-shot tagging after a new MeSH year: descriptors that the model never trained on, before and after.

A model is trained with the old year's labels on articles that carry no later descriptor. Half of the
articles that do carry one are for fine-tuning, the other half and those of `--held-out` are tagged: with the
old model, the updated one, and the fine-tuned one. Every step that is finished is not done again.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kenmesh_hf import load
from kenmesh_hf.articles import Article, read_articles, write_articles
from kenmesh_hf.mesh_update import update_model_folder
from kenmesh_hf.prepare import PrepareOptions, prepare
from kenmesh_hf.stages import write_json
from kenmesh_hf.training import SUMMARY_FILE, options_for, train
from kenmesh_hf.update_scores import score_update
from kenmesh_hf.vocabulary import diff_vocabularies, read_vocabulary

EXAMPLE = Path(__file__).parent.parent / "examples" / "finetune_new_mesh_year.py"
RESULTS = "mesh_update.json"


def divide(chosen: argparse.Namespace, added: frozenset[str]) -> dict[str, list[Article]]:
    """Articles by use: train and validation of the old year, fine-tuning, and the two kinds of test."""
    given, held_out = (list(read_articles(path)) for path in (chosen.articles, chosen.held_out))
    later = [article for article in given if added.intersection(article.descriptors)]
    earlier = [article for article in given if not added.intersection(article.descriptors)]
    earlier = [article for article in earlier if article.abstract][: chosen.most]
    tested = [article for article in held_out if not added.intersection(article.descriptors)]
    return {
        "validation": earlier[: chosen.validation],
        "train": earlier[chosen.validation :],
        # Without some of the earlier articles fine-tuning would see new descriptors everywhere.
        "finetune": later[::2] + earlier[chosen.validation :: 10],
        "new": later[1::2] + [article for article in held_out if added.intersection(article.descriptors)],
        "old": tested[: chosen.tested],
    }


def train_old_year(chosen: argparse.Namespace, work: Path) -> Path:
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
    model = work / "old-model"
    if not (model / SUMMARY_FILE).exists():
        train(options_for("small", epochs=chosen.epochs), work / "prepared", model, resume=True)
    return model


def finetune(chosen: argparse.Namespace, work: Path, model: Path) -> Path:
    """The model of the new year, fine-tuned as the example does it."""
    out = work / "finetuned-model"
    if not (out / "checksums.json").exists():
        options = {"model": model, "mesh": chosen.new_mesh, "articles": work / "finetune.jsonl"}
        options |= {"held-out": work / "validation.jsonl", "out": out}
        given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        subprocess.run([sys.executable, str(EXAMPLE), *given], check=True)
    return out


def measure(model: Path, articles: dict[str, Sequence[Article]], added: frozenset[str]) -> dict[str, float]:
    """Recall of new descriptors on articles that carry some, micro-F of old ones on articles without."""
    tagger = load(model)
    new, old = (score_update(tagger, articles[kind], added) for kind in ("new", "old"))
    return new | {"old_MiF": old["old_MiF"], "old_MiF_beside_new": new["old_MiF"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old-mesh", required=True, help="descriptors of the year the model is trained with")
    parser.add_argument("--new-mesh", required=True, help="descriptors of a later year")
    parser.add_argument("--articles", required=True, help="labelled articles to train on")
    parser.add_argument("--held-out", required=True, help="labelled articles to measure on")
    parser.add_argument("--work", type=Path, required=True, help="folder for all that is made")
    parser.add_argument("--most", type=int, default=6000, help="most articles of the old year")
    parser.add_argument("--validation", type=int, default=300, help="of these, for validation")
    parser.add_argument("--tested", type=int, default=500, help="most articles to measure old descriptors on")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--vector-epochs", type=int, default=5)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    old, new = read_vocabulary(chosen.old_mesh), read_vocabulary(chosen.new_mesh)
    added = frozenset(diff_vocabularies(old, new).added)
    articles = divide(chosen, added)
    for name, part in articles.items():
        if not (chosen.work / f"{name}.jsonl").exists():
            write_articles(part, chosen.work / f"{name}.jsonl")
    models = {"before": train_old_year(chosen, chosen.work), "updated": chosen.work / "updated-model"}
    if not models["updated"].exists():
        print(update_model_folder(models["before"], chosen.new_mesh, models["updated"]))
    models["finetuned"] = finetune(chosen, chosen.work, models["before"])
    results = {name: measure(model, articles, added) for name, model in models.items()}
    wanted = sum(ui in added for article in articles["new"] for ui in article.descriptors)
    summary = {
        "articles": {name: len(part) for name, part in articles.items()},
        "new_descriptors": {"in_mesh": len(added), "to_find": wanted},
        **{f"new_recall_at_10_{name}": figures["new_recall_at_10"] for name, figures in results.items()},
        "old_MiF_before": results["before"]["old_MiF"],
        "old_MiF_after": results["finetuned"]["old_MiF"],
        "all": results,
    }
    write_json(chosen.work / RESULTS, summary)
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
