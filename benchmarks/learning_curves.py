"""What each part of the model learns: micro F1 after every epoch, on articles trained on and on others.

Trains as `kenmesh train` does and after each epoch scores training and validation articles three times: with
the whole model, with the network alone (biLSTM, convolutions, label graph), and with the evidence alone. Each
has the threshold that is best for it there. Training articles are scored as the network has seen them, so the
distance between the two curves is what it knows by heart. With `--share` it learns from a part of the
articles, all of which stay in the index: what more of them give.

    python benchmarks/learning_curves.py --data DATASET --plot curves.png [--preset small] [--set epochs=4]
        [--share 0.5]
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from networks import gold_of, score_rows
from transformers import TrainerCallback

from kenmesh_hf.evaluating import best_threshold, score_predictions
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.options import PRESETS, options_for
from kenmesh_hf.preparing import RowStream, load_prepared
from kenmesh_hf.showing import plot_curves, table_lines
from kenmesh_hf.training import build_trainer, start_network, training_arguments, training_rows

PARTS = ("all", "network", "evidence")


@contextmanager
def only(model: KenMeSHForMeSHIndexing, part: str) -> Iterator[None]:
    """The model with one of its parts silent."""
    evidence = model.evidence
    if part == "all" or evidence is None:
        yield
    elif part == "network":
        model.evidence = None
        yield
        model.evidence = evidence
    else:
        scale = evidence.score_scale.detach().clone()
        with torch.no_grad():
            evidence.score_scale.zero_()
            yield
            evidence.score_scale.copy_(scale)


class Curves(TrainerCallback):
    """Scores some articles after every epoch.

    Args:
        articles: Rows by the name of their split.
    """

    def __init__(self, articles: dict[str, list[Any]]):
        self.articles = articles
        self.points: list[dict[str, Any]] = []

    def on_evaluate(self, args, state, control, model=None, **kwargs):
        """After the validation that `Trainer` does itself."""
        model.eval()
        parts = PARTS if model.evidence is not None else ("network",)
        point: dict[str, Any] = {"epoch": round(state.epoch)}
        for split, rows in self.articles.items():
            gold = gold_of(rows)
            for part in parts:
                with only(model, part):
                    scored = score_rows(model, rows)
                chosen = scored.scores >= best_threshold(scored, gold)
                point[f"{split}_{part}"] = score_predictions(scored, gold, chosen, cutoffs=(1,))["MiF"]
        self.points.append(point)
        print(json.dumps(point), flush=True)
        model.train()


def measure(
    data: Path, preset: str, changes: dict[str, Any], articles: int, share: float = 1.0
) -> list[dict[str, Any]]:
    """Trains on a share of a prepared dataset and gives the figures of each epoch."""
    options = options_for(preset, **({"patience": 1000} | changes))
    prepared, draw = load_prepared(data), np.random.default_rng(options.seed)
    rows = training_rows(prepared, options).where(["length"], lambda table: draw.random(len(table)) < share)
    model = start_network(prepared, rows, options)
    known = RowStream(rows.groups, rows.batch_size, rows.seed, (*rows.columns, "unknown_labels"))
    curves = Curves(
        {
            "train": list(known.sample(articles, options.seed)),
            "validation": list(prepared.validation)[:articles],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = training_arguments(Path(folder), options, disable_tqdm=True)
        trainer = build_trainer(model, prepared.processor, rows, prepared.validation, arguments, options)
        trainer.add_callback(curves)
        trainer.train()
    return curves.points


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table for people and one JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of `kenmesh prepare`")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="small", help="options to start from")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="training options to change, as JSON"
    )
    parser.add_argument("--articles", type=int, default=1500, help="articles of each split that are scored")
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of the articles that it learns from, drawn by seed"
    )
    parser.add_argument("--plot", type=Path, help="picture of the curves")
    arguments = parser.parse_args(argv)
    pairs = (change.partition("=") for change in arguments.set)
    changes = {name: json.loads(value) for name, _, value in pairs}
    points = measure(arguments.data, arguments.preset, changes, arguments.articles, arguments.share)
    print("", *table_lines(points, tuple(points[0])), sep="\n")
    if arguments.plot:
        lines = {name: [point[name] for point in points] for name in points[0] if name != "epoch"}
        plot_curves(arguments.plot, lines, title="What each part learns", x_label="epoch", y_label="MiF")
    print(
        json.dumps(
            {"benchmark": "learning_curves", "options": changes, "share": arguments.share, "points": points}
        )
    )


if __name__ == "__main__":
    main()
