"""Why a tag was given: what its score would lose without each word, its journal, each similar article.

One number of one meaning for everything: the score as it is less the score without that. Below zero it spoke
against the tag. The numbers are those that tagging the article again without the word would give, but for two
things: neighbours stay the same articles in the same order, and the network reads the other words as before.
Words that say the same stand in for each other, so the numbers need not add up to the whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .article_words_kenmesh import ArticleWords
from .erasure_kenmesh import TEXTLESS, WHOLE, WITHOUT_JOURNAL, Erasures, Variants
from .modeling_kenmesh import KenMeSHForMeSHIndexing
from .processing_kenmesh import KenMeSHProcessor
from .proposals_kenmesh import Findings

FIELDS = ("title", "abstract")
Channel = tuple[torch.Tensor, torch.Tensor]
# What speaks against a tag by less is not named.
LEAST_AGAINST = 0.001


class Reasons:
    """Says why labels were given to a batch of articles.

    Args:
        model: The network.
        processor: Tokenizer and candidates.
        most_words: Most words that are named for a label, and most that speak against it.
        most_neighbours: Most similar articles that are named for it.
    """

    def __init__(
        self,
        model: KenMeSHForMeSHIndexing,
        processor: KenMeSHProcessor,
        most_words: int = 8,
        most_neighbours: int = 5,
    ):
        self.model, self.processor = model, processor
        self.most_words, self.most_neighbours = most_words, most_neighbours

    def __call__(
        self,
        articles: Sequence[Mapping[str, Any]],
        findings: Sequence[Findings | None],
        labels: Sequence[np.ndarray],
        channels: Sequence[Channel],
        keys: torch.Tensor,
    ) -> list[list[dict[str, Any]]]:
        """The reasons of each label of each article.

        Args:
            articles: Title and abstract of each.
            findings: What the sources of candidates said about it; None where there are none.
            labels: The labels of each.
            channels: What the network made of them: features and mask of title and abstract.
            keys: The label features that these are compared with.
        """
        parts = list(self._parts(articles, findings, labels, channels, keys))
        scores = self._score(parts)
        return [part.reasons(score, self.most_words) for part, score in zip(parts, scores, strict=True)]

    def _parts(
        self,
        articles: Sequence[Mapping[str, Any]],
        findings: Sequence[Findings | None],
        labels: Sequence[np.ndarray],
        channels: Sequence[Channel],
        keys: torch.Tensor,
    ) -> Iterator["_Part"]:
        candidates = self.processor.candidates
        texts = [(article["title"], article["abstract"]) for article in articles]
        words = ArticleWords.of_all(texts, candidates and candidates.lexicon)
        for row, (article, found, given) in enumerate(zip(words, findings, labels, strict=True)):
            told: list[dict[str, Any]] = [{"neighbours": [], "journal": None, "term": None} for _ in given]
            if found is not None:
                told = candidates.tell(article, found, given, self.most_neighbours)
            ranks = {neighbour["rank"] for reason in told for neighbour in reason["neighbours"]}
            variants = Variants(article, np.array(sorted(ranks), np.int64))
            numbers = np.zeros(0)
            if self._weighs_evidence and found is not None:
                numbers = Erasures(candidates, article, found, given, variants).numbers()
            states = [channel[row][mask[row]] for channel, mask in channels]
            removed = self._removed_tokens(article, variants)
            # A model of one channel reads title and abstract as one text.
            removed = removed if len(states) == len(removed) else [np.concatenate(removed)]
            network = _network_scores(states, keys[torch.from_numpy(given).to(keys.device)], removed)
            yield _Part(article, variants, given, told, numbers, network)

    def _removed_tokens(self, article: ArticleWords, variants: Variants) -> list[np.ndarray]:
        """Which of the network's tokens each variant lacks, in title and abstract, `(text, variants)` each.

        A token may be several words here, such as il-6, or a piece of one; it lacks if one of them does.
        """
        processor, rows, first = self.processor, [], 0
        limits = (processor.max_title_tokens, processor.max_abstract_tokens)
        positions = article.positions[: article.titles], article.positions[article.titles :]
        for text, limit, words in zip(article.texts, limits, positions, strict=True):
            tokens = processor.token_spans(text, limit)
            starts = first + np.searchsorted(words[:, 1], tokens[:, 0], "right")
            ends = first + np.searchsorted(words[:, 0], tokens[:, 1], "left")
            lacking = variants.lacks(starts, np.maximum(starts, ends))
            # Without words no punctuation is left either.
            lacking[:, TEXTLESS] = True
            rows.append(lacking)
            first += len(words)
        return rows

    @torch.inference_mode()
    def _score(self, parts: Sequence["_Part"]) -> list[np.ndarray]:
        """Scores of each article's labels in each of its variants, `(labels, variants)`."""
        device, shapes = self.model.device, [part.network.shape for part in parts]
        network = torch.cat([part.network.flatten() for part in parts]).to(device, self.model.dtype)
        labels = np.concatenate([np.repeat(part.labels, part.variants.size) for part in parts])
        numbers = None
        if self._weighs_evidence:
            flat = [part.numbers.reshape(-1, part.numbers.shape[-1]) for part in parts]
            numbers = torch.from_numpy(np.concatenate(flat)).to(device)
        logits = self.model.fuse(network, torch.from_numpy(labels).to(device), numbers, self._weighs_evidence)
        scores = logits.float().sigmoid().numpy(force=True)
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        return [score.reshape(shape) for score, shape in zip(np.split(scores, ends), shapes, strict=True)]

    @property
    def _weighs_evidence(self) -> bool:
        """Whether a score is more than what the network says."""
        model = self.model
        return (
            model.evidence is not None and model.config.mask_labels and self.processor.candidates is not None
        )


class _Part(NamedTuple):
    """An article, and what is needed to say why it has its labels."""

    article: ArticleWords
    variants: Variants
    labels: np.ndarray
    told: list[dict[str, Any]]
    numbers: np.ndarray
    network: torch.Tensor

    def reasons(self, scores: np.ndarray, most: int) -> list[dict[str, Any]]:
        """The reasons of each label, given the scores of all variants."""
        falls = scores[:, WHOLE, None] - scores
        place = {int(rank): place for place, rank in enumerate(self.variants.left_out)}
        results = []
        for score, fall, told in zip(scores, falls, self.told, strict=True):
            words = fall[self.variants.words : self.variants.neighbours]
            order = np.argsort(-words, kind="stable")
            against = order[::-1][:most]
            neighbours = [
                {"pmid": one["pmid"], "similarity": one["similarity"]}
                | {"weight": float(fall[self.variants.neighbours + place[one["rank"]]])}
                for one in told["neighbours"]
            ]
            results.append(
                {
                    "words": self._named(words, order[:most][words[order[:most]] > 0]),
                    "against": self._named(words, against[words[against] <= -LEAST_AGAINST]),
                    "neighbours": neighbours,
                    "journal": told["journal"],
                    "journal_weight": float(fall[WITHOUT_JOURNAL]),
                    "term": told["term"],
                    "all_words": float(words.sum()),
                    "without_text": float(score[TEXTLESS]),
                }
            )
        return results

    def _named(self, weights: np.ndarray, words: np.ndarray) -> list[dict[str, Any]]:
        """Words with their weights and places: the first, and the others where there are more."""
        named = []
        for word, weight in zip(words.tolist(), weights[words].tolist(), strict=True):
            (field, start, end), *others = self.article.places[word]
            text = self.article.texts[field][start:end]
            entry = {"word": text, "field": FIELDS[field], "start": start, "end": end, "weight": weight}
            if others:
                entry["also"] = [{"field": FIELDS[f], "start": s, "end": e} for f, s, e in others]
            named.append(entry)
        return named


def _network_scores(
    states: Sequence[torch.Tensor], keys: torch.Tensor, removed: Sequence[np.ndarray]
) -> torch.Tensor:
    """`Σ softmax(s)·s` over the words that each variant has left, `(labels, variants)`."""
    total = torch.zeros(len(keys), removed[0].shape[1])
    for state, gone in zip(states, removed, strict=True):
        if not len(state):
            continue
        scores = (keys.to(state.dtype) @ state.T).float()
        weights = (scores - scores.amax(1, keepdim=True)).exp()
        left = torch.from_numpy(~gone).to(weights)
        mass = weights @ left
        total = total.to(mass.device) + torch.where(
            mass > 0, (weights * scores) @ left / mass.clamp(min=1e-30), 0
        )
    return total


__all__ = ["Reasons"]
