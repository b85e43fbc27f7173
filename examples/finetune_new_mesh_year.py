"""Takes a model to the next MeSH year: update, add the new articles to the index, fine-tune, compare, save.

python examples/finetune_new_mesh_year.py --model OLD --mesh desc2025.xml --articles new.jsonl \
    --tune other.jsonl --held-out test.jsonl --out NEW [--push organisation/name]
python examples/finetune_new_mesh_year.py --model OLD --mesh desc2025.xml --articles review.sqlite --out NEW

The new year's articles carry mostly old descriptors, which is why fine-tuning on them does not forget those.
A larger index and other weights move the scores, so the thresholds are moved after them, on articles that are
neither in the index nor trained on; the comparison is made on yet others. Without files of their own these
are some of --articles, which may be a desk (`kenmesh serve --desk`): then it learns from what is done there.
"""

import argparse
import json
from pathlib import Path

import datasets
import pyarrow as pa
import torch
from transformers import Trainer

import kenmesh_hf
from kenmesh_hf.desk import share_out
from kenmesh_hf.evaluating import retune_thresholds
from kenmesh_hf.indexing import add_articles
from kenmesh_hf.mesh import read_vocabulary
from kenmesh_hf.preparing import encode_articles
from kenmesh_hf.reading import read_articles
from kenmesh_hf.sharing import push
from kenmesh_hf.training import KenMeSHCollator, options_for, parameter_groups, training_arguments
from kenmesh_hf.updating import score_update, update_mesh

ROWS_AT_ONCE = 256


def encode(processor, articles) -> datasets.Dataset:
    """Labelled articles as rows that the collator takes."""
    starts = range(0, len(articles), ROWS_AT_ONCE)
    tables = [encode_articles(processor, articles[start : start + ROWS_AT_ONCE]) for start in starts]
    return datasets.Dataset(pa.concat_tables(tables)).with_format("numpy")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="folder or Hub name of the old year's model")
    parser.add_argument("--mesh", required=True, help="descriptor file of the new year")
    parser.add_argument("--articles", required=True, help="the new year's labelled articles")
    parser.add_argument("--tune", help="some more of them, for the thresholds (default: a fifth of them)")
    parser.add_argument("--held-out", help="labelled articles to compare on (default: a quarter of them)")
    parser.add_argument("--out", required=True, help="folder for the new model")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--push", metavar="NAME", help="also send it to this Hub repository")
    chosen = parser.parse_args(arguments)
    if bool(chosen.tune) != bool(chosen.held_out):
        parser.error("give both --tune and --held-out, or neither")
    parts = share_out(read_articles(chosen.articles))
    articles, tuning, held_out = parts.voting, parts.tuning, parts.judging
    if chosen.tune:
        files = (chosen.articles, chosen.tune, chosen.held_out)
        articles, tuning, held_out = (list(read_articles(path)) for path in files)

    old = kenmesh_hf.load(chosen.model)
    model, processor, plan = update_mesh(old.model, old.processor, read_vocabulary(chosen.mesh))
    print(plan.report(limit=5))
    updated = kenmesh_hf.MeSHIndexingPipeline(model=model, processor=processor)
    figures = {
        "before": score_update(old, held_out, plan.diff.added),
        "updated": score_update(updated, held_out, plan.diff.added),
    }

    processor, growth = add_articles(processor, articles)
    print(f"{growth.added} articles joined the index, {growth.known} were in it")

    options = options_for("small", epochs=chosen.epochs, learning_rate=chosen.learning_rate)
    settings = {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False}
    # A text encoder, if the model has one, learns more slowly than the rest.
    optimizer = torch.optim.Adam(parameter_groups(model, options))
    trainer = Trainer(
        model=model,
        args=training_arguments(Path(chosen.out) / "checkpoints", options, **settings),
        train_dataset=encode(processor, articles),
        data_collator=KenMeSHCollator(len(processor.candidates.FEATURES)),
        optimizers=(optimizer, None),
    )
    trainer.train()

    tuned = kenmesh_hf.MeSHIndexingPipeline(model=model.eval(), processor=processor)
    processor = processor.with_parts(thresholds=retune_thresholds(tuned, tuning))
    tuned = kenmesh_hf.MeSHIndexingPipeline(model=model, processor=processor)
    figures["finetuned"] = score_update(tuned, held_out, plan.diff.added)
    model.save_pretrained(chosen.out)
    processor.save_pretrained(chosen.out)
    print(json.dumps(figures, indent=2))
    if chosen.push:
        print("\n".join(push(chosen.out, chosen.push).lines()))


if __name__ == "__main__":
    main()
