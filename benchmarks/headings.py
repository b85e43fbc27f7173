"""What limits whole headings: major topics and qualifiers as told, and with a part of the answer given.

Headings are told of tags, so they are wrong where the descriptor is, and missing where it is. Four ways stand
beside each other: `told`, of the model's tags; `right_tags`, of those of its tags that are right and nothing
else, each as if it were sure; `right_descriptors`, of the descriptors that NLM gave; `right_headings`,
whatever is right of the model's tags, as if it knew. Each has precision, recall and F1 of major descriptors
and of descriptor–qualifier pairs, with the threshold that is best for it on these articles. An article counts
where its headings tell of such things.

    python benchmarks/headings.py --articles FILE [--headings FILE …] [--model FOLDER]
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from _measure import print_table

from kenmesh_hf.evaluating import sweep_scores
from kenmesh_hf.indexing import label_ids
from kenmesh_hf.modeling.heading_counts_kenmesh import Tags
from kenmesh_hf.modeling.heading_table_kenmesh import QUALIFIERS
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline, batches
from kenmesh_hf.reading import Article, join_headings, read_articles, read_heading_files
from kenmesh_hf.sharing import load

BATCH = 32
KINDS = ("major", "qualifier")
# What is told of an article: labels, and the probability of each.
Choice = tuple[np.ndarray, np.ndarray]
# What is said of articles: a probability, and whether it is right, by the names of `KINDS`.
Said = dict[str, list[tuple[float, bool]]]


def right_answers(article: Article) -> dict[str, set[Any]]:
    """Major descriptors and pairs of an article; none of a kind that its headings do not tell of."""
    return {
        "major": {heading.ui for heading in article.headings if heading.major},
        "qualifier": {(heading.ui, item.ui) for heading in article.headings for item in heading.qualifiers},
    }


class Teller:
    """Tells headings of labels that may be others than a model's tags."""

    def __init__(self, tagger: MeSHIndexingPipeline):
        self.tagger, self.processor = tagger, tagger.processor
        self.least = tagger.least_scores({})

    def tags(self, article: Article, scores: np.ndarray) -> Choice:
        """The model's own tags."""
        labels = np.flatnonzero(scores >= self.least)
        return labels, scores[labels]

    def right_tags(self, article: Article, scores: np.ndarray) -> Choice:
        """Those that are right."""
        labels = np.intersect1d(self.tags(article, scores)[0], label_ids(article, self.processor.vocabulary))
        return labels, np.ones(len(labels))

    def right_descriptors(self, article: Article, scores: np.ndarray) -> Choice:
        """What NLM gave."""
        labels = label_ids(article, self.processor.vocabulary)
        return labels, np.ones(len(labels))

    def __call__(
        self, articles: Iterable[Article], choose: Callable[[Article, np.ndarray], Choice]
    ) -> Iterator[tuple[str, float, bool]]:
        """All that can be said of the chosen labels: its kind, its probability, whether it is right."""
        for batch in batches(articles, BATCH):
            yield from self._tell(batch, choose)

    def _tell(
        self, batch: Sequence[Article], choose: Callable[[Article, np.ndarray], Choice]
    ) -> Iterator[tuple[str, float, bool]]:
        encoded = self.tagger.preprocess([article.as_input() for article in batch])
        with torch.inference_mode():
            every = self.tagger.model(**encoded["inputs"]).logits.float().sigmoid().numpy()
        labels, scores = zip(*map(choose, batch, every), strict=True)
        names = ("candidate_ids", "candidate_mask", "candidate_features")
        inputs = zip(*(encoded["inputs"][name].numpy() for name in names), strict=True)
        candidates, vocabulary = self.processor.candidates, self.processor.vocabulary
        proposed = [(ids[mask], numbers[mask]) for ids, mask, numbers in inputs]
        tags, score = Tags.of(labels, proposed, candidates.ranker), np.concatenate(scores)
        numbers = self.processor.headings.numbers(candidates, vocabulary)
        said = self.processor.headings.score(numbers, tags, score, encoded["findings"])
        right = [right_answers(article) for article in batch]
        for row, label, major in zip(tags.rows, tags.labels, score * said.major, strict=True):
            if answers := right[row]["major"]:
                yield "major", float(major), vocabulary.uis[label] in answers
        together = score[said.pairs.tags] * said.qualified
        for tag, number, chance in zip(*said.pairs, together, strict=True):
            if answers := right[tags.rows[tag]]["qualifier"]:
                pair = vocabulary.uis[tags.labels[tag]], QUALIFIERS[number]
                yield "qualifier", float(chance), pair in answers


def figures(rows: Iterable[tuple[str, float, bool]], gold: dict[str, int]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each kind at its best threshold."""
    said: Said = {kind: [] for kind in KINDS}
    for kind, score, hit in rows:
        said[kind].append((score, hit))
    result = {}
    for kind, pairs in said.items():
        scores, hits = np.array([score for score, _ in pairs]), np.array([hit for _, hit in pairs], bool)
        sweep = sweep_scores(scores, hits, gold[kind])
        best = int(np.argmax(sweep.f_score()))
        curves = {"MiP": sweep.precision, "MiR": sweep.recall, "MiF": sweep.f_score()}
        result[kind] = {name: round(float(curve[best]), 4) for name, curve in curves.items()}
    return result


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table for people and one JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--articles", required=True, help="labelled articles that the model has not seen")
    parser.add_argument("--headings", nargs="*", default=[], help="files with their headings, by PMID")
    parser.add_argument("--model", help="folder or Hub name; without it the bundled checkpoint")
    options = parser.parse_args(argv)
    tagger, known = load(options.model), read_heading_files(options.headings)
    if not tagger.processor.tells_headings:
        raise SystemExit("This model tells no major topics and qualifiers.")
    articles = [join_headings(article, known) for article in read_articles(options.articles)]
    answers = [right_answers(article) for article in articles]
    gold = {kind: sum(len(right[kind]) for right in answers) for kind in KINDS}
    if not all(gold.values()):
        raise SystemExit("These articles tell no major topics or no qualifiers; give --headings.")
    teller = Teller(tagger)
    ways = {
        "told": teller.tags,
        "right_tags": teller.right_tags,
        "right_descriptors": teller.right_descriptors,
    }
    result = {name: figures(teller(articles, choose), gold) for name, choose in ways.items()}
    right = ((kind, float(hit), hit) for kind, _, hit in teller(articles, teller.tags))
    result["right_headings"] = figures(right, gold)
    print_table(
        {
            name: {
                f"{kind} {figure}": f"{value:.3f}"
                for kind, row in kinds.items()
                for figure, value in row.items()
            }
            for name, kinds in result.items()
        }
    )
    counts = {f"{kind}_articles": sum(bool(right[kind]) for right in answers) for kind in KINDS}
    print(json.dumps({"benchmark": "headings"} | result | counts))


if __name__ == "__main__":
    main()
