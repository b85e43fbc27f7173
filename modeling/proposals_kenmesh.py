"""What is found out about an article before its labels are weighed, and which labels that proposes."""

from dataclasses import dataclass, replace

import numpy as np

from .lexicon_kenmesh import Hits

INDEXES = ("sparse", "dense")
SOURCES = ("neighbours", "journal", "terms", "words")


@dataclass
class CandidateOptions:
    """What is proposed for an article.

    Attributes:
        sources: Which of `SOURCES` propose candidates.
        neighbours: How many nearest training articles vote.
        words: How many labels that fit the article's words best are candidates.
        journal_threshold: A label with a greater share of the journal's articles is a candidate.
        max_candidates: The best candidates that are kept; None keeps all.
        min_candidates: Where fewer are proposed, the most frequent labels fill up.
        index: How neighbours are found: `"sparse"` by weighted words, `"dense"` as in the paper by mean word
            vectors and FAISS.
        recent: Articles of this year or later are recent, and all whose year is unknown.
    """

    sources: tuple[str, ...] = SOURCES
    neighbours: int = 1000
    words: int = 100
    journal_threshold: float = 0.5
    max_candidates: int | None = 500
    min_candidates: int = 0
    index: str = "sparse"
    recent: int = 0

    def __post_init__(self):
        self.sources = tuple(self.sources)
        if self.index not in INDEXES:
            raise ValueError(f"There is no neighbour index {self.index!r}; choose from {', '.join(INDEXES)}.")
        if unknown := [source for source in self.sources if source not in SOURCES]:
            raise ValueError(
                f"There is no candidate source {unknown[0]!r}; choose from {', '.join(SOURCES)}."
            )
        for name in ("neighbours", "words", "max_candidates"):
            value = getattr(self, name)
            if value is not None and value < 1:
                either = ", or None" if name == "max_candidates" else ""
                raise ValueError(f"`{name}` is {value}; it must be at least 1{either}.")


@dataclass(frozen=True)
class Findings:
    """What the sources say about one article, the article itself taken out of each.

    Attributes:
        own: The indexed articles that are this article itself.
        own_counts: How many of them carry each label, `(labels,)`.
        prior: Share of the other training articles that carry each label, `(labels,)`.
        recent_prior: The same of the recent ones alone, `(labels,)`.
        near: The neighbours, nearest first, `(neighbours,)`.
        similarities: Cosine of each, `(neighbours,)`.
        voted: Labels of the neighbours, one neighbour after the other.
        lengths: How many labels each neighbour has, `(neighbours,)`.
        journal: Number of the article's journal, -1 if it is unknown.
        given: Labels given in it.
        given_counts: How often each was given there.
        journal_size: Articles of the journal.
        hits: Terms found in the text.
        named: Label of each hit.
        predicted: What the words say about each label, `(labels,)`.
        words: Hashes of the article's words, and how often they stand there.
    """

    own: np.ndarray
    own_counts: np.ndarray
    prior: np.ndarray
    recent_prior: np.ndarray
    near: np.ndarray
    similarities: np.ndarray
    voted: np.ndarray
    lengths: np.ndarray
    journal: int
    given: np.ndarray
    given_counts: np.ndarray
    journal_size: int
    hits: Hits
    named: np.ndarray
    predicted: np.ndarray
    words: tuple[np.ndarray, np.ndarray]

    def without_labels(self) -> "Findings":
        """The same without the numbers that there are for every label: a fifth of the room."""
        nothing = np.zeros(0)
        return replace(self, own_counts=nothing, prior=nothing, recent_prior=nothing, predicted=nothing)

    def propose(self, options: CandidateOptions) -> np.ndarray:
        """Labels that the sources propose, ascending."""
        proposed = np.zeros(len(self.prior), bool)
        if "neighbours" in options.sources:
            proposed[self.voted] = True
        if "journal" in options.sources:
            frequent = self.given_counts > options.journal_threshold * self.journal_size
            proposed[self.given[frequent]] = True
        if "terms" in options.sources:
            proposed[self.named] = True
        if "words" in options.sources:
            fitting = np.flatnonzero(self.predicted > 0)
            if len(fitting) > options.words:
                fitting = fitting[np.argpartition(-self.predicted[fitting], options.words)[: options.words]]
            proposed[fitting] = True
        if options.min_candidates > proposed.sum():
            order = np.argsort(-(self.prior + proposed), kind="stable")
            proposed[order[: options.min_candidates]] = True
        return np.flatnonzero(proposed)
