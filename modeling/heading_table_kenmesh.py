"""What is remembered of the headings of indexed articles: which are major topics, and their qualifiers."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .qualifiers_kenmesh import BUILT_IN
from .word_counts_kenmesh import run_places

# A qualifier's number is its place here, whatever the MeSH year; there is room for 128.
QUALIFIERS = tuple(item.ui for item in BUILT_IN)
QUALIFIER_NUMBERS = {ui: number for number, ui in enumerate(QUALIFIERS)}
# What is known of an article: a file that marks no major topic at all, or has no qualifier, tells of none.
MAJORS_KNOWN, QUALIFIERS_KNOWN = 1, 2
ARRAYS = ("known", "major", "qualified", "qualifiers", "starred")
_LAST = 0x80


class HeadingFacts(NamedTuple):
    """What is known of one heading: whether it is major, and its qualifiers by number, each major or not."""

    major: bool = False
    qualifiers: tuple[tuple[int, bool], ...] = ()


class HeadingTable:
    """Headings of articles, in the order of their labels.

    Attributes:
        known: `MAJORS_KNOWN`, `QUALIFIERS_KNOWN`, both or none, `(articles,)`.
        major: Whether each heading is a major topic, `(headings,)`.
        counts: How many qualifiers each heading has, `(headings,)`.
        qualifiers: Number of each qualifier, one heading after the other.
        starred: Whether it is the qualifier that is major.
    """

    def __init__(
        self,
        known: np.ndarray,
        major: np.ndarray,
        counts: np.ndarray,
        qualifiers: np.ndarray,
        starred: np.ndarray,
    ):
        self.known, self.major, self.counts = known, major, counts
        self.qualifiers, self.starred = qualifiers, starred

    @classmethod
    def build(cls, articles: Sequence[Sequence[HeadingFacts]]) -> "HeadingTable":
        """Remembers the headings of articles, in the order of their labels.

        Where no heading of an article is major, none is known to be none; and so with qualifiers.
        """
        facts = [fact for article in articles for fact in article]
        pairs = [pair for fact in facts for pair in fact.qualifiers]
        known = [
            MAJORS_KNOWN * any(fact.major for fact in article)
            + QUALIFIERS_KNOWN * any(fact.qualifiers for fact in article)
            for article in articles
        ]
        return cls(
            np.array(known, np.uint8),
            np.array([fact.major for fact in facts], bool),
            np.array([len(fact.qualifiers) for fact in facts], np.uint8),
            np.array([number for number, _ in pairs], np.uint8),
            np.array([star for _, star in pairs], bool),
        )

    @classmethod
    def unknown(cls, articles: int, headings: int) -> "HeadingTable":
        """A table of articles of which nothing is known but their descriptors."""
        nothing = np.zeros(0, np.uint8)
        known, counts = np.zeros(articles, np.uint8), np.zeros(headings, np.uint8)
        return cls(known, counts.astype(bool), counts, nothing, nothing.astype(bool))

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the qualifiers of each heading begin, `(headings + 1,)`."""
        return np.append(0, np.cumsum(self.counts, dtype=np.int64))

    def majors_known(self, articles: np.ndarray) -> np.ndarray:
        """Whether it is known of articles which headings are major."""
        return self.known[articles] & MAJORS_KNOWN > 0

    def qualifiers_known(self, articles: np.ndarray) -> np.ndarray:
        """Whether it is known of articles which qualifiers their headings have."""
        return self.known[articles] & QUALIFIERS_KNOWN > 0

    def entries(self, headings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of the qualifiers of headings, and which heading of those asked for each is of."""
        lengths = self.counts[headings].astype(np.int64)
        return run_places(self.starts[headings], lengths), np.repeat(np.arange(len(headings)), lengths)

    def select(self, articles: np.ndarray, headings: np.ndarray) -> "HeadingTable":
        """Some of the articles and headings, in the order given."""
        places, _ = self.entries(headings)
        return HeadingTable(
            self.known[articles],
            self.major[headings],
            self.counts[headings],
            self.qualifiers[places],
            self.starred[places],
        )

    @classmethod
    def join(cls, parts: Iterable["HeadingTable"]) -> "HeadingTable":
        """Articles one part after the other."""
        parts = [cls.unknown(0, 0), *parts]
        columns = ("known", "major", "counts", "qualifiers", "starred")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        """The table as it is stored: a bit for a heading, a byte for a qualifier."""
        last = np.zeros(len(self.qualifiers), np.uint8)
        last[self.starts[1:][self.counts > 0] - 1] = _LAST
        return {
            "known": self.known,
            "major": np.packbits(self.major),
            "qualified": np.packbits(self.counts > 0),
            "qualifiers": self.qualifiers | last,
            "starred": np.packbits(self.starred),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray], headings: int) -> "HeadingTable":
        """Reads what `tensors` gives, of so many headings."""
        stream = tensors["qualifiers"]
        counts = np.zeros(headings, np.uint8)
        qualified = np.unpackbits(tensors["qualified"], count=headings).astype(bool)
        ends = np.flatnonzero(stream & _LAST) + 1
        counts[qualified] = np.diff(np.append(0, ends))
        return cls(
            np.asarray(tensors["known"]),
            np.unpackbits(tensors["major"], count=headings).astype(bool),
            counts,
            stream & ~np.uint8(_LAST),
            np.unpackbits(tensors["starred"], count=len(stream)).astype(bool),
        )
