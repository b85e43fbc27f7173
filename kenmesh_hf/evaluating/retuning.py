"""Thresholds for a model whose scores have moved, because its index grew or it was trained further."""

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..indexing import check_no_leak
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..modeling.thresholds_kenmesh import Thresholds
from ..reading import Article
from .evaluation import Scores, score_articles
from .label_sets import find_hits
from .label_thresholds import f_score
from .thresholds import PRESETS, sweep_scores, sweep_thresholds, tune_thresholds

MIN_ARTICLES = 20
_FOLDS = 5
# Probabilities nearer to 0 or 1 than this are all alike.
_LEAST = 1e-6


def retune_thresholds(tagger: MeSHIndexingPipeline, articles: Sequence[Article]) -> Thresholds:
    """The thresholds of a model, moved to where its scores are now.

    In an index of fewer articles than vote (1,000), each one that joins means more votes for its labels, so
    the same order of labels comes with higher probabilities; fine-tuning may move them, too. All thresholds
    move by the same amount of log-odds: one number, which a hundred articles tell well, where a threshold
    for each label would fit these articles and no others. They stay as they are if moving them is no better
    on articles left out.

    Args:
        tagger: The model; its own thresholds stay as they are. Where it has none, new ones are chosen.
        articles: Labelled articles that it was not trained on and that are not in its index.

    Raises:
        InputError: There are too few articles.
        MismatchError: Some of the articles are in the index.
    """
    processor = tagger.processor
    labelled = [article for article in articles if article.headings]
    if len(labelled) < MIN_ARTICLES:
        raise InputError(
            f"{len(labelled)} labelled articles are too few to choose thresholds on; "
            f"give {MIN_ARTICLES} or more."
        )
    if processor.candidates is not None:
        check_no_leak(processor.candidates, labelled)
    scores = score_articles(tagger, labelled, progress=False)
    if processor.thresholds is None:
        return tune_thresholds(scores.scored, scores.gold, len(processor.vocabulary))
    return move_thresholds(processor.thresholds, scores)


def move_thresholds(old: Thresholds, scores: Scores) -> Thresholds:
    """Moves all thresholds by the same amount of log-odds, the one with about the highest micro-F."""
    scored, gold = scores.scored, scores.gold
    above = _log_odds(scored.scores) - _log_odds(old.of(scored.label_ids))
    moves, held_out = _cross_validate(above, find_hits(scored, gold), scored.offsets, gold.sizes)
    # The best cut of few articles is a matter of chance; the mean of several is less so.
    move = float(np.mean(moves)) if held_out["moved"] > held_out["kept"] else 0.0
    sweep = sweep_thresholds(scored, gold)
    return Thresholds(
        float(_moved(np.array(old.global_threshold), move)),
        None if old.per_label is None else _moved(old.per_label, move),
        {name: sweep.best(beta) for name, beta in PRESETS.items()},
        held_out,
    )


def _cross_validate(
    above: np.ndarray, hits: np.ndarray, offsets: np.ndarray, sizes: np.ndarray
) -> tuple[list[float], dict[str, float]]:
    """The best move on each choice of articles; micro-F of none, and of these on the articles left out."""
    rows = np.repeat(np.arange(len(sizes)), np.diff(offsets))
    fold = np.random.default_rng(0).permutation(len(sizes)) % _FOLDS
    moves, moved = [], np.zeros(len(above), bool)
    for number in range(_FOLDS):
        others = fold[rows] != number
        sweep = sweep_scores(above[others], hits[others], int(sizes[fold != number].sum()))
        moves.append(sweep.best())
        moved |= ~others & (above >= moves[-1])
    choices = {"kept": above >= 0, "moved": moved}
    return moves, {
        name: float(f_score((chosen & hits).sum(), chosen.sum(), int(sizes.sum())))
        for name, chosen in choices.items()
    }


def _log_odds(probability: np.ndarray) -> np.ndarray:
    clipped = np.clip(np.asarray(probability, np.float64), _LEAST, 1 - _LEAST)
    return np.log(clipped / (1 - clipped))


def _moved(thresholds: np.ndarray, move: float) -> np.ndarray:
    """Thresholds after the move; one that no score reaches stays so."""
    return np.where(thresholds > 1, thresholds, 1 / (1 + np.exp(-_log_odds(thresholds) - move)))
