"""Whether the reasons of a tag are reasons: what its score loses when the words shown for it are taken out.

A check by erasure, as in the ERASER benchmark. For each tag of articles that no index knows the five words
shown first are taken out of title and abstract, wherever they stand, and the article is tagged again: the
mean fall of the score is `drop_shown`. Beside it five random words of the article (`drop_random`), and the
five whose removal alone, each tried, lets the score fall furthest (`drop_best`); `share` is shown over best.
`correlation` is that of the weight of every word of every tag with the fall that its removal alone causes.
Processor time of one thread with and without reasons, in turns, gives `time_ratio`.

    python benchmarks/faithfulness.py [--articles 200] [--file FILE] [--model FOLDER]
"""

import gc
import json
import random
import statistics
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _measure import alternate, parse_arguments, print_table
from parse_pubmed import sample_file

from kenmesh_hf.indexing import hash_texts
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.terms_kenmesh import word_spans
from kenmesh_hf.modeling.text_kenmesh import STOP_WORDS
from kenmesh_hf.modeling.word_counts_kenmesh import hash_articles
from kenmesh_hf.reading import read_articles
from kenmesh_hf.sharing import load

MODERN_SAMPLE = "pubmed21n1298.xml.gz"
SHOWN = 5
BATCH = 32
FIELDS = ("title", "abstract")
Article = dict[str, Any]


def distinct_words(article: Article) -> list[str]:
    """The content words of an article in small letters, each once."""
    words = {
        article[field][start:end].lower(): None
        for field in FIELDS
        for start, end in word_spans(article[field])
    }
    return [word for word in words if len(word) > 1 and word not in STOP_WORDS]


def without(article: Article, words: Collection[str]) -> Article:
    """The article with some words taken out, wherever they stand."""
    changed = dict(article)
    for field in FIELDS:
        text, kept, end = article[field], [], 0
        for start, stop in word_spans(text):
            if text[start:stop].lower() in words:
                kept.append(text[end:start])
                end = stop
        changed[field] = "".join(kept) + text[end:]
    return changed


def score(tagger: MeSHIndexingPipeline, articles: Sequence[Article], uis: Sequence[str]) -> np.ndarray:
    """Scores of some descriptors in each article, `(articles, uis)`; 0 where one is no candidate."""
    place = {ui: label for label, ui in enumerate(tagger.processor.vocabulary.uis)}
    labels = [place[ui] for ui in uis]
    rows = []
    for start in range(0, len(articles), BATCH):
        batch = tagger.preprocess(list(articles[start : start + BATCH]))
        with torch.inference_mode():
            rows.append(tagger.model(**batch["inputs"]).logits[:, labels].float().sigmoid().numpy())
    return np.concatenate(rows)


def erase(tagger: MeSHIndexingPipeline, article: Article, rng: random.Random) -> list[dict[str, Any]]:
    """What each tag of an article loses by the words shown, random ones, and the best ones.

    Beside these the weight of each word of the article, and the fall that its removal alone causes.
    """
    [tags] = tagger([article], evidence=True, evidence_words=1000)
    tags = [tag for tag in tags if tag["evidence"]["words"]]
    words = distinct_words(article)
    if not tags or len(words) < SHOWN:
        return []
    uis = [tag["ui"] for tag in tags]
    alone = score(tagger, [article, *(without(article, {word}) for word in words)], uis)
    falls = alone[0] - alone[1:]
    chosen: list[dict[str, set[str]]] = []
    for number, tag in enumerate(tags):
        shown = list(dict.fromkeys(word["word"].lower() for word in tag["evidence"]["words"]))[:SHOWN]
        best = [words[row] for row in np.argsort(-falls[:, number])[:SHOWN]]
        chosen.append({"shown": set(shown), "random": set(rng.sample(words, SHOWN)), "best": set(best)})
    names = list(chosen[0])
    erased = score(tagger, [without(article, kinds[name]) for kinds in chosen for name in names], uis)
    erased = erased.reshape(len(tags), len(names), len(uis))
    results = []
    for number, tag in enumerate(tags):
        evidence = tag["evidence"]
        given = {word["word"].lower(): word["weight"] for word in evidence["words"] + evidence["against"]}
        row = dict(zip(names, (alone[0, number] - erased[number, :, number]).tolist(), strict=True))
        row["weights"], row["falls"] = [given.get(word, 0.0) for word in words], falls[:, number].tolist()
        results.append(row)
    return results


def held_out_articles(tagger: MeSHIndexingPipeline, file: Path) -> Iterator[Article]:
    """Articles with an abstract that are not in the index: known again, they would be tagged differently."""
    indexed = tagger.processor.candidates.articles
    for article in read_articles(file):
        [own] = indexed.find([article.pmid], hash_articles(*hash_texts([article])))
        if article.abstract and not len(own):
            yield dict(article.as_input())


def measure_time(tagger: MeSHIndexingPipeline, articles: Sequence[Article], repeats: int) -> dict[str, float]:
    """Processor milliseconds an article without and with reasons."""
    # As the command `kenmesh` does: else many small results have all libraries searched for garbage.
    gc.collect()
    gc.freeze()
    runs = {
        "plain": lambda: tagger(articles, batch_size=BATCH),
        "reasons": lambda: tagger(articles, batch_size=BATCH, evidence=True),
    }
    seconds = alternate(runs, repeats)
    gc.unfreeze()
    return {name: 1000 * value / len(articles) for name, value in seconds.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table for people and one JSON line last."""
    options = parse_arguments(__doc__ or "", argv, articles=200, file="", model="")
    tagger = load(options.model or None)
    file = options.file or sample_file(MODERN_SAMPLE)
    articles = list(islice(held_out_articles(tagger, Path(file)), options.articles))
    rng = random.Random(0)
    rows = [row for article in articles for row in erase(tagger, article, rng)]
    drops = {name: statistics.fmean(row[name] for row in rows) for name in ("shown", "random", "best")}
    weights, falls = (np.concatenate([row[name] for row in rows]) for name in ("weights", "falls"))
    times = measure_time(tagger, articles, options.repeats)
    print_table({name: {"score falls by": f"{drop:.3f}"} for name, drop in drops.items()})
    figures = {f"drop_{name}": round(drop, 4) for name, drop in drops.items()}
    figures |= {
        "share": round(drops["shown"] / drops["best"], 4),
        "correlation": round(float(np.corrcoef(weights, falls)[0, 1]), 4),
        "ms": round(times["plain"], 3),
        "ms_reasons": round(times["reasons"], 3),
        "time_ratio": round(times["reasons"] / times["plain"], 3),
        "articles": len(articles),
        "tags": len(rows),
    }
    print(json.dumps({"benchmark": "faithfulness"} | figures))


if __name__ == "__main__":
    main()
