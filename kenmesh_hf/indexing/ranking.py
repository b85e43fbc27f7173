"""Which candidates of an article are worth keeping: a logistic regression on their evidence."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..reading import Article
from .articles import label_ids
from .findings import look_up

_RANKER_ARTICLES = 4000
# Recent articles do alone if there are so many: their candidates are most like those of what is tagged later.
_ENOUGH_RECENT = 2000
# Wrong candidates kept for each right one. They are many and mostly alike, and few of them leave the weight
# to the right ones at the end of the order, which are those that a cut may lose.
_WRONG = 0.25
_RIDGE = 1e-4


def fit_ranker(
    candidates: KenMeSHCandidates, articles: Sequence[Article], vocabulary: MeshVocabulary, seed: int = 0
) -> None:
    """Learns which candidates to keep: a logistic regression on the evidence of some training articles.

    Args:
        candidates: Whose order is learned.
        articles: Labelled training articles to choose from. Those with an abstract are preferred, and recent
            ones, since that is what is tagged later.
        vocabulary: The labels.
        seed: Of the choice.
    """
    rich = [row for row, article in enumerate(articles) if article.abstract] or list(range(len(articles)))
    since = candidates.options.recent
    recent = [row for row in rich if (articles[row].year or since) >= since]
    random = np.random.default_rng(seed)
    rows = random.permutation(recent if len(recent) >= _ENOUGH_RECENT else rich)[:_RANKER_ARTICLES]
    everything = replace(candidates.options, max_candidates=None)
    features, targets = [], []
    for row, findings in zip(rows, look_up(candidates, [articles[row] for row in rows]), strict=True):
        found, numbers = candidates.weigh(findings, everything)
        right = np.isin(found, label_ids(articles[row], vocabulary))
        keep = right | (random.random(len(right)) < _WRONG * right.sum() / max(1, len(right)))
        features.append(numbers[keep])
        targets.append(right[keep])
    candidates.ranker = fit_logistic(np.concatenate(features), np.concatenate(targets))


def fit_logistic(features: np.ndarray, targets: np.ndarray, steps: int = 30) -> np.ndarray:
    """Logistic regression by Newton's method; coefficients of the raw features, the intercept last."""
    mean, scale = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
    scale[scale < 1e-6] = 1.0
    inputs = np.hstack([(features - mean) / scale, np.ones((len(features), 1))]).astype(np.float32)
    share = float(targets.mean())
    penalty = _RIDGE * min(share, 1 - share) + 1e-9
    signs = np.where(targets, -1, 1).astype(np.float32)

    def loss(solution: np.ndarray) -> float:
        margin = inputs @ solution.astype(np.float32)
        return float(np.logaddexp(0, signs * margin).mean()) + penalty / 2 * float(solution @ solution)

    solution = np.zeros(inputs.shape[1])
    solution[-1] = np.log((share + 1e-6) / (1 - share + 1e-6))
    value = loss(solution)
    for _ in range(steps):
        probability = 1 / (1 + np.exp(-np.clip(inputs @ solution.astype(np.float32), -30, 30)))
        gradient = inputs.T @ (probability - targets) / len(inputs) + penalty * solution
        curvature = (probability * (1 - probability) / len(inputs))[:, None]
        hessian = (inputs * curvature).T @ inputs + np.eye(len(solution)) * penalty
        step = np.linalg.solve(hessian.astype(np.float64), gradient)
        while (improved := loss(solution - step)) > value and np.abs(step).max() > 1e-4:
            step /= 2
        if improved > value - 1e-7:
            break
        solution, value = solution - step, improved
    coefficients = solution[:-1] / scale
    return np.append(coefficients, solution[-1] - coefficients @ mean).astype(np.float32)
