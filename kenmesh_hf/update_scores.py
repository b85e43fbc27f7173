"""How well a model tags what a new MeSH year added, and whether it still tags the rest as before."""

from collections.abc import Collection, Sequence

import numpy as np

from .evaluation import decide, score_articles
from .label_sets import find_hits
from .metrics import divide, precision_recall_f1
from .modeling.pipeline_kenmesh import MeSHIndexingPipeline
from .records import Article

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
        `new_candidate_recall`, the share that is looked at; `old_MiF`, micro-F of all other descriptors.
    """
    scores = score_articles(tagger, articles, progress=False)
    scored, gold = scores.scored, scores.gold
    new = np.isin(tagger.processor.vocabulary.uis, list(added))
    hits, selected = find_hits(scored, gold), decide(scores, tagger)
    entry_is_new = new[scored.label_ids]
    rank = np.arange(len(scored.label_ids)) - np.repeat(scored.offsets[:-1], np.diff(scored.offsets))
    wanted = sum(ui in added for article in articles for ui in article.descriptors)
    old_gold = (~new[gold.label_ids]).sum()
    old_selected = selected & ~entry_is_new
    micro_f = precision_recall_f1((hits & old_selected).sum(), old_selected.sum(), old_gold)[2]
    return {
        f"new_recall_at_{BEST}": float(divide((hits & entry_is_new & (rank < BEST)).sum(), wanted)),
        "new_candidate_recall": float(divide((hits & entry_is_new).sum(), wanted)),
        "old_MiF": float(micro_f),
    }
