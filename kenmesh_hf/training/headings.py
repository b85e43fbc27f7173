"""Fits what tells major topics and qualifiers of tags, on a model that is otherwise finished."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import nn

from ..errors import InputError
from ..evaluating import sweep_scores
from ..indexing import check_no_leak, learn_qualifiers
from ..modeling.heading_numbers_kenmesh import HeadingNumbers
from ..modeling.heading_table_kenmesh import QUALIFIERS, QUALIFIERS_KNOWN
from ..modeling.headings_kenmesh import LARGEST, KenMeSHHeadings, SmallNetwork
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.qualifiers_kenmesh import MeshQualifiers
from ..preparing import PreparedDataset
from ..reading import Article
from .aspects import fit_aspects
from .heading_rows import HeadingRows, heading_rows, sample_articles, tells_majors, tells_qualifiers

# Articles that are learned from; recent ones if there are enough of them.
MOST_ARTICLES, ENOUGH = 20_000, 2000
# With fewer indexed articles that tell qualifiers nothing can be learned.
LEAST = 50
HIDDEN, KIND_SIZE = 32, 8
BATCH, EPOCHS, RATE, DECAY = 2048, 4, 4e-3, 1e-3
# Few rows are gone through more often.
LEAST_STEPS = 400


def fit_headings(
    tagger: MeSHIndexingPipeline,
    articles: Callable[[], Iterable[Article]],
    validation: Iterable[Article] = (),
    qualifiers: MeshQualifiers | None = None,
    seed: int = 0,
    progress: bool = False,
) -> KenMeSHProcessor:
    """Teaches a model to tell major topics and qualifiers of its tags.

    Args:
        tagger: The model; its index must know of headings. What it was given stays as it is.
        articles: Gives the articles to learn from, those of the index, as often as asked.
        validation: Articles that are not in the index, on which thresholds are chosen.
        qualifiers: Which ones a descriptor may have; learned from the articles if not given.
        seed: Random seed.
        progress: Show a bar.

    Returns:
        The model's processor, which now tells them.

    Raises:
        InputError: No indexed article tells of both.
    """
    processor = tagger.processor
    table = processor.candidates and processor.candidates.articles.headings
    if table is None:
        raise InputError(
            "The index knows no headings, only descriptors; build it from articles that have them."
        )
    qualifiers = qualifiers or learn_qualifiers(articles(), processor.vocabulary)
    chosen = choose_articles(processor, articles, seed)
    candidates = processor.candidates
    recent = candidates.articles.since(candidates.options.recent)
    numbers = HeadingNumbers(candidates.articles, recent, processor.vocabulary, qualifiers)
    aspects = fit_aspects(processor, chosen)
    rows = heading_rows(processor, numbers, aspects, chosen, progress)
    if not rows.major.any() or not rows.qualified.any():
        raise InputError("No indexed article tells of major topics and qualifiers; give articles that do.")
    torch.manual_seed(seed)
    majors = fit_network(rows.tags, rows.major[:, None].astype(np.float32))
    pairs = fit_network(*_pair_targets(rows), rows.qualifiers)
    headings = KenMeSHHeadings(qualifiers, aspects, majors, pairs, {"major": 0.3, "qualifier": 0.25})
    told = processor.with_parts(headings=headings)
    headings.thresholds |= tune_headings(MeSHIndexingPipeline(model=tagger.model, processor=told), validation)
    return told


def learn_headings(
    model: KenMeSHForMeSHIndexing, processor: KenMeSHProcessor, prepared: PreparedDataset, seed: int
) -> KenMeSHProcessor:
    """The end of a training: the processor tells major topics and qualifiers if the dataset does."""
    table = processor.candidates.articles.headings
    if (
        table is None
        or (table.known & QUALIFIERS_KNOWN > 0).sum() < LEAST
        or not any(prepared.articles("train"))
    ):
        return processor
    tagger = MeSHIndexingPipeline(model=model, processor=processor)
    return fit_headings(
        tagger,
        lambda: prepared.articles("train"),
        prepared.articles("validation"),
        prepared.qualifiers,
        seed,
    )


def choose_articles(
    processor: KenMeSHProcessor, articles: Callable[[], Iterable[Article]], seed: int
) -> list[Article]:
    """The articles to learn from: those that tell of headings, recent ones if there are enough of them."""
    since = processor.candidates.options.recent

    def tells(article: Article) -> bool:
        return tells_majors(article) or tells_qualifiers(article)

    def recent(article: Article) -> bool:
        return tells(article) and tells_qualifiers(article) and (article.year or since) >= since

    found = sample_articles(articles(), recent, MOST_ARTICLES, seed)
    return found if len(found) >= ENOUGH else sample_articles(articles(), tells, MOST_ARTICLES, seed)


def _pair_targets(rows: HeadingRows) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of pairs, and whether the tag has the qualifier and, only where it has, whether it is major."""
    starred = np.where(rows.qualified, rows.starred.astype(np.float32), np.nan)
    return rows.pairs, np.column_stack([rows.qualified.astype(np.float32), starred]).astype(np.float32)


class _Network(nn.Module):
    """What `SmallNetwork` computes, to be trained."""

    def __init__(self, width: int, outputs: int, kinds: int):
        super().__init__()
        self.kinds = nn.Parameter(torch.randn(kinds, KIND_SIZE) * 0.3) if kinds else None
        width += KIND_SIZE if kinds else 0
        self.linear = nn.Linear(width, outputs, bias=False)
        self.hidden, self.second = nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, outputs)

    def forward(self, numbers: torch.Tensor, kinds: torch.Tensor | None) -> torch.Tensor:
        joint = numbers if self.kinds is None else torch.cat([numbers, self.kinds[kinds]], 1)
        hidden = torch.relu(self.second(torch.relu(self.hidden(joint))))
        return self.linear(joint) + self.output(hidden)


def fit_network(numbers: np.ndarray, targets: np.ndarray, kinds: np.ndarray | None = None) -> SmallNetwork:
    """Trains a small network.

    Args:
        numbers: `(rows, numbers)`.
        targets: What is right of each, `(rows, outputs)`; NaN where that is not known.
        kinds: The kind of each row, if there are several.
    """
    mean, std = numbers.mean(0), numbers.std(0)
    std[std < 1e-6] = 1.0
    inputs = torch.from_numpy(np.clip((numbers - mean) / std, -LARGEST, LARGEST).astype(np.float32))
    right = torch.from_numpy(targets)
    of = None if kinds is None else torch.from_numpy(kinds)
    network = _Network(numbers.shape[1], targets.shape[1], 0 if kinds is None else len(QUALIFIERS))
    steps = -(-len(inputs) // BATCH)
    epochs = max(EPOCHS, -(-LEAST_STEPS // steps))
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=epochs * steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(inputs)).split(BATCH):
            logits, wanted = network(inputs[batch], None if of is None else of[batch]), right[batch]
            known = ~wanted.isnan()
            loss = nn.functional.binary_cross_entropy_with_logits(logits[known], wanted[known])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    weights = {
        name.replace(".weight", "").replace(".bias", "_bias"): value.detach().numpy()
        for name, value in network.state_dict().items()
    }
    return SmallNetwork(weights | {"mean": mean, "std": std})


def tune_headings(tagger: MeSHIndexingPipeline, validation: Iterable[Article]) -> dict[str, float]:
    """Thresholds with the highest micro-F on articles that tell of majors and qualifiers; none if none do."""
    articles = [article for article in validation if tells_majors(article) or tells_qualifiers(article)]
    if not articles:
        return {}
    check_no_leak(tagger.processor.candidates, articles)
    # Everything is told for now, so that every cut can be tried.
    headings = tagger.processor.headings
    usual, headings.thresholds = headings.thresholds, {"major": 0.0, "qualifier": 0.0}
    scored: dict[str, list[tuple[float, bool]]] = {"major": [], "qualifier": []}
    gold = {"major": 0, "qualifier": 0}
    for article, tags in zip(articles, tagger([article.as_input() for article in articles]), strict=True):
        right = {
            "major": {(heading.ui, "") for heading in article.headings if heading.major},
            "qualifier": {(heading.ui, q.ui) for heading in article.headings for q in heading.qualifiers},
        }
        said = {
            "major": [((tag["ui"], ""), tag["major_score"]) for tag in tags],
            "qualifier": [((tag["ui"], q["ui"]), q["score"]) for tag in tags for q in tag["qualifiers"]],
        }
        for kind, wanted in right.items():
            if wanted:
                gold[kind] += len(wanted)
                scored[kind] += [(score, key in wanted) for key, score in said[kind]]
    headings.thresholds = chosen = dict(usual)
    for kind, rows in scored.items():
        scores, hits = np.array([score for score, _ in rows]), np.array([hit for _, hit in rows], bool)
        if hits.any():
            chosen[kind] = sweep_scores(scores, hits, gold[kind]).best()
    return chosen
