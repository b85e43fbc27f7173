"""Whole headings of tags: how likely each is a major topic of its article, and each of its qualifiers."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .aspects_kenmesh import AspectModel
from .candidates_kenmesh import KenMeSHCandidates
from .heading_counts_kenmesh import Tags
from .heading_numbers_kenmesh import MAJOR_NUMBERS, PAIR_NUMBERS, HeadingNumbers, Pairs
from .heading_table_kenmesh import QUALIFIERS
from .proposals_kenmesh import Findings
from .qualifiers_kenmesh import MeshQualifiers
from .tensors_kenmesh import map_tensors, save_tensors
from .vocabulary_kenmesh import MeshVocabulary

HEADINGS_FILE = "headings.safetensors"
# Standardised numbers are cut here.
LARGEST = 6.0
# A qualifier of a major tag is itself the major one from this on.
STAR = 0.5


class SmallNetwork:
    """A linear function of numbers, and beside it two small layers.

    Args:
        tensors: `mean` and `std` of the numbers; `linear`, `hidden`, `second`, `output` and their `_bias`;
            `kinds`, where there are several kinds of rows, a vector for each that joins its numbers.
    """

    def __init__(self, tensors: Mapping[str, np.ndarray]):
        self.tensors = {name: np.asarray(array, np.float32) for name, array in tensors.items()}

    def __call__(self, numbers: np.ndarray, kinds: np.ndarray | None = None) -> np.ndarray:
        """Probabilities `(rows, outputs)`."""
        part = self.tensors
        inputs = np.clip((numbers - part["mean"]) / part["std"], -LARGEST, LARGEST)
        joint = inputs if kinds is None else np.hstack([inputs, part["kinds"][kinds]])
        hidden = np.maximum(joint @ part["hidden"].T + part["hidden_bias"], 0)
        hidden = np.maximum(hidden @ part["second"].T + part["second_bias"], 0)
        logits = joint @ part["linear"].T + hidden @ part["output"].T + part["output_bias"]
        return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


class HeadingScores(NamedTuple):
    """What is said of tags: all are probabilities given that the tag is right.

    Attributes:
        major: That it is major, `(tags,)`.
        pairs: Tags with each qualifier they may have.
        qualified: That the tag has it, `(pairs,)`.
        starred: That it is major where the tag has it, `(pairs,)`.
    """

    major: np.ndarray
    pairs: Pairs
    qualified: np.ndarray
    starred: np.ndarray


class KenMeSHHeadings:
    """Tells major topics and qualifiers of tags.

    Args:
        qualifiers: Which qualifiers a descriptor may have; no others are proposed.
        aspects: What words and tags say about qualifiers.
        majors: From the numbers of a tag to the probability that it is major.
        pairs: From those of a tag with a qualifier to the probability that it has it, and that it is major.
        thresholds: Least probability of a `major` topic and of a tag with a `qualifier`, each the product of
            the tag's score and what is said of it.
    """

    def __init__(
        self,
        qualifiers: MeshQualifiers,
        aspects: AspectModel,
        majors: SmallNetwork,
        pairs: SmallNetwork,
        thresholds: Mapping[str, float],
    ):
        self.qualifiers, self.aspects, self.majors, self.pairs = qualifiers, aspects, majors, pairs
        self.thresholds = {name: float(thresholds[name]) for name in ("major", "qualifier")}
        self._numbers: tuple[KenMeSHCandidates, HeadingNumbers] | None = None
        self._named = {item.ui: item for item in qualifiers.qualifiers}

    def numbers(self, candidates: KenMeSHCandidates, vocabulary: MeshVocabulary) -> HeadingNumbers:
        """What works out the numbers from these candidates; made once, when it is first asked for."""
        if self._numbers is None or self._numbers[0] is not candidates:
            recent = candidates.articles.since(candidates.options.recent)
            made = HeadingNumbers(candidates.articles, recent, vocabulary, self.qualifiers)
            self._numbers = candidates, made
        return self._numbers[1]

    def score(
        self, numbers: HeadingNumbers, tags: Tags, scores: np.ndarray, findings: Sequence[Findings]
    ) -> HeadingScores:
        """What is said of the tags of a batch of articles.

        Args:
            numbers: Of the model's index.
            tags: The tags.
            scores: Probability of each.
            findings: What was found out about each article.
        """
        words = aspects_of(self.aspects, numbers, tags, scores, findings)
        of_tags, pairs, of_pairs = numbers(tags, findings, words)
        found = self.pairs(of_pairs, pairs.qualifiers)
        return HeadingScores(self.majors(of_tags)[:, 0], pairs, found[:, 0], found[:, 1])

    def describe(
        self, said: HeadingScores, scores: np.ndarray, qualifiers: bool = True
    ) -> list[dict[str, Any]]:
        """What each tag gets: `major`, `major_score` and, if wanted, `qualifiers`, the likeliest first.

        Args:
            said: Of the tags.
            scores: Probability of each tag.
            qualifiers: Whether to give qualifiers.
        """
        major = scores * said.major
        rows: list[dict[str, Any]] = [
            {"major": score >= self.thresholds["major"], "major_score": score} for score in major.tolist()
        ]
        if not qualifiers:
            return rows
        for row in rows:
            row["qualifiers"] = []
        together = scores[said.pairs.tags] * said.qualified
        chosen = np.flatnonzero(together >= self.thresholds["qualifier"])
        for pair in chosen[np.argsort(-together[chosen], kind="stable")].tolist():
            row = rows[int(said.pairs.tags[pair])]
            item = self._named[QUALIFIERS[int(said.pairs.qualifiers[pair])]]
            star = row["major"] and bool(said.starred[pair] >= STAR)
            row["qualifiers"].append(
                {"ui": item.ui, "name": item.name, "score": float(together[pair]), "major": star}
            )
        return rows

    def save_pretrained(self, save_directory: str | os.PathLike) -> list[str]:
        """Writes the table of qualifiers and the weights; the same ones give the same bytes."""
        folder = Path(save_directory)
        parts: dict[str, Any] = {"aspects": self.aspects, "majors": self.majors, "pairs": self.pairs}
        tensors = {
            f"{name}.{key}": value for name, part in parts.items() for key, value in part.tensors.items()
        }
        tensors["thresholds"] = np.array([*self.thresholds.values()], np.float64)
        files = self.qualifiers.save_pretrained(folder)
        save_tensors(tensors, folder / HEADINGS_FILE)
        return [*files, str(folder / HEADINGS_FILE)]

    @classmethod
    def is_saved_in(cls, folder: str | os.PathLike) -> bool:
        """Whether a folder tells of whole headings."""
        return (Path(folder) / HEADINGS_FILE).exists()

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike) -> "KenMeSHHeadings":
        """Reads what `save_pretrained` wrote."""
        path = Path(folder) / HEADINGS_FILE
        tensors = map_tensors(path)

        def part(name: str) -> dict[str, np.ndarray]:
            return {key.removeprefix(name): value for key, value in tensors.items() if key.startswith(name)}

        majors, pairs = SmallNetwork(part("majors.")), SmallNetwork(part("pairs."))
        sizes = len(majors.tensors["mean"]), len(pairs.tensors["mean"])
        if sizes != (len(MAJOR_NUMBERS), len(PAIR_NUMBERS)):
            raise ValueError(
                f"{path} weighs other numbers than this version computes; fit the headings again."
            )
        thresholds = dict(zip(("major", "qualifier"), tensors["thresholds"].tolist(), strict=True))
        return cls(
            MeshQualifiers.from_pretrained(folder), AspectModel(part("aspects.")), majors, pairs, thresholds
        )


def aspects_of(
    aspects: AspectModel,
    numbers: HeadingNumbers,
    tags: Tags,
    scores: np.ndarray,
    findings: Sequence[Findings],
) -> np.ndarray:
    """What words and tags of articles say about qualifiers, the articles themselves left out."""
    inputs = aspects.inputs([found.words for found in findings], tags.rows, tags.labels, scores)
    return aspects.predict(inputs, [own_articles(numbers, found) for found in findings])


def own_articles(numbers: HeadingNumbers, found: Findings) -> tuple[np.ndarray, np.ndarray]:
    """The indexed articles that an article itself is, and the hashes of their texts."""
    return found.own, numbers.counts.articles.hashes[found.own]


__all__ = ["KenMeSHHeadings"]
