"""Thresholds chosen anew for a model whose scores have moved: its index grew, or it was trained further."""

from collections.abc import Sequence

from .evaluation import score_articles
from .indexing import check_no_leak
from .modeling.pipeline_kenmesh import MeSHIndexingPipeline
from .modeling.thresholds_kenmesh import Thresholds
from .records import Article
from .thresholds import tune_thresholds


def retune_thresholds(tagger: MeSHIndexingPipeline, articles: Sequence[Article]) -> Thresholds:
    """Thresholds that suit the scores as they are now.

    More articles in the index mean more votes for every label, so the same order of labels comes with higher
    probabilities: thresholds of the smaller index would let too many of them through.

    Args:
        tagger: The model; its own thresholds stay as they are.
        articles: Labelled articles that it was not trained on and that are not in its index.

    Raises:
        MismatchError: Some of the articles are in the index.
    """
    processor = tagger.processor
    labelled = [article for article in articles if article.headings]
    if processor.candidates is not None:
        check_no_leak(processor.candidates, labelled)
    scores = score_articles(tagger, labelled, progress=False)
    return tune_thresholds(scores.scored, scores.gold, len(processor.vocabulary))
