"""Why a tag is told to be a major topic, and why it has a qualifier: similar articles, and words."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .evidence_kenmesh import ROW
from .heading_counts_kenmesh import Tags
from .heading_numbers_kenmesh import HeadingNumbers
from .heading_table_kenmesh import QUALIFIER_NUMBERS
from .headings_kenmesh import KenMeSHHeadings, own_articles
from .proposals_kenmesh import Findings
from .terms_kenmesh import hash_words, split_words

# Words that are named for a qualifier, if they add as much to what words say.
MOST_WORDS, LEAST_WEIGHT = 3, 0.01


class SaidByWords(NamedTuple):
    """What the words of an article say about qualifiers.

    Attributes:
        words: Those that the model knows, each once and as it stands first.
        weights: What each adds to what words say about each qualifier, `(words, qualifiers)`.
    """

    words: list[str]
    weights: np.ndarray

    def strongest(self, number: int) -> list[dict[str, Any]]:
        """Words that speak for a qualifier wherever they stand, strongest first."""
        weights = self.weights[:, number]
        best = np.argsort(-weights, kind="stable")[:MOST_WORDS].tolist()
        return [
            {"word": self.words[place], "weight": float(weights[place])}
            for place in best
            if weights[place] >= LEAST_WEIGHT
        ]


class HeadingReasons:
    """Says why tags are major and have their qualifiers.

    Args:
        headings: What told it.
        numbers: From which it was told.
    """

    def __init__(self, headings: KenMeSHHeadings, numbers: HeadingNumbers):
        self.headings, self.numbers = headings, numbers

    def add(
        self,
        articles: Sequence[Mapping[str, Any]],
        findings: Sequence[Findings],
        known: Tags,
        told: Sequence[dict[str, Any]],
    ) -> None:
        """Adds reasons to the tags of a batch, one article after the other.

        A tag's `evidence` gets `major`: whether a term of it stands in the title, how many similar articles
        that carry it tell which headings are major, and in how many of these it is. Each of its qualifiers
        gets `evidence`: the same counts, and words of the article that go with it.
        """
        counted = self.numbers.counts.carriers(known, findings)
        title = known.features[:, ROW["term_in_title"]] > 0
        rows = known.rows.tolist()
        wanted = {row for row, tag in zip(rows, told, strict=True) if tag.get("qualifiers")}
        said = {row: self._said(articles[row], findings[row]) for row in wanted}
        for place, (tag, row) in enumerate(zip(told, rows, strict=True)):
            tag["evidence"]["major"] = {
                "in_title": bool(title[place]),
                "carriers": int(counted.majors_known[place]),
                "agreeing": int(counted.major[place]),
            }
            for item in tag.get("qualifiers", ()):
                number = QUALIFIER_NUMBERS[item["ui"]]
                item["evidence"] = {
                    "carriers": int(counted.known[place]),
                    "agreeing": int(counted.qualified[place, number]),
                    "words": said[row].strongest(number),
                }

    def _said(self, article: Mapping[str, Any], found: Findings) -> SaidByWords:
        """What an article's words say, looked up once for all its tags."""
        aspects = self.headings.aspects
        nothing = np.zeros(0, np.int64)
        inputs = aspects.inputs([found.words], nothing, nothing, nothing)
        [model, *_] = aspects.models(*own_articles(self.numbers, found))
        mine = inputs.columns < len(aspects.words)
        columns = inputs.columns[mine]
        amounts = inputs.values[mine] * aspects.scales[model, columns]
        texts = _texts_of(article)
        words = [texts[value] for value in aspects.words[columns].tolist()]
        return SaidByWords(words, amounts[:, None] * aspects.weights[model, columns])


def _texts_of(article: Mapping[str, Any]) -> dict[int, str]:
    """The words of an article by their hashes, each as it stands first."""
    texts: dict[int, str] = {}
    for text in (article["title"], article["abstract"]):
        for value, word in zip(hash_words([text]).folded.tolist(), split_words(text), strict=True):
            texts.setdefault(value, word)
    return texts


__all__ = ["HeadingReasons"]
