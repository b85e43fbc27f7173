"""How well a model tags what a new MeSH year added, and whether it still tags the rest as before."""

from collections.abc import Collection, Sequence

import numpy as np

from ..evaluating import Scores, decide, divide, find_hits, precision_recall_f1, score_articles
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..reading import Article

BEST = 10


def score_update(
    tagger: MeSHIndexingPipeline, articles: Sequence[Article], added: Collection[str]
) -> dict[str, float]:
    """Scores old and new descriptors apart.

    Args:
        tagger: A model of the old or of the new year; the old one finds no new descriptor.
        articles: Articles with descriptors.
        added: Descriptors of the new year.

    Returns:
        `new_recall_at_10`, the share of new descriptors among the ten best labels of their articles;
        `new_candidate_recall`, the share that is looked at; `old_MiF`, micro-F of all other descriptors that
        the model knows; and what these are of: `articles`, `new_labels`, `old_labels`.
    """
    scores = score_articles(tagger, articles, progress=False)
    scored, gold = scores.scored, scores.gold
    new = np.isin(tagger.processor.vocabulary.uis, list(added))
    hits, selected = find_hits(scored, gold), decide(scores, tagger)
    entry_is_new = new[scored.label_ids]
    wanted = sum(ui in added for article in articles for ui in article.descriptors)
    old_gold = (~new[gold.label_ids]).sum()
    old_selected = selected & ~entry_is_new
    micro_f = precision_recall_f1((hits & old_selected).sum(), old_selected.sum(), old_gold)[2]
    return {
        f"new_recall_at_{BEST}": float(divide((hits & entry_is_new & _among_best(scores)).sum(), wanted)),
        "new_candidate_recall": float(divide((hits & entry_is_new).sum(), wanted)),
        "old_MiF": float(micro_f),
        "articles": len(articles),
        "new_labels": wanted,
        "old_labels": int(old_gold),
    }


def score_each(
    tagger: MeSHIndexingPipeline, articles: Sequence[Article], added: Collection[str], most: int
) -> dict[str, dict[str, int]]:
    """How often the new descriptors that most articles carry are found among the ten best labels.

    Args:
        tagger: A model of the old or of the new year.
        articles: Articles with descriptors.
        added: Descriptors of the new year.
        most: How many of them to tell about.

    Returns:
        For each descriptor how many `articles` carry it and in how many of these it is `found`.
    """
    carried = [ui for article in articles for ui in article.descriptors if ui in added]
    scores = score_articles(tagger, articles, progress=False)
    found = scores.scored.label_ids[find_hits(scores.scored, scores.gold) & _among_best(scores)]
    uis = sorted(set(carried), key=lambda ui: (-carried.count(ui), ui))[:most]
    labels = [tagger.processor.vocabulary.get(ui) for ui in uis]
    return {
        ui: {"articles": carried.count(ui), "found": int(np.count_nonzero(found == label))}
        for ui, label in zip(uis, labels, strict=True)
    }


def _among_best(scores: Scores) -> np.ndarray:
    """Whether each scored label is one of its article's ten best."""
    offsets = scores.scored.offsets
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)) < BEST
