"""Ages that a text tells ("aged 18-65 years", "mean age 67.3 years", "6-month-old"), as age groups of MeSH.

NLM gives an article the check tag of every age group that was studied, and an abstract tells them in numbers,
in which no other source of candidates can read. The lexicon takes what is found here for terms of the groups.
"""

from typing import NamedTuple

import numpy as np

from .terms_kenmesh import HashedWords, fold, hash_text

# Names of the descriptors, and the years of life that NLM means by them, the second no longer included.
AGE_GROUPS = {
    "Infant, Newborn": (0.0, 1 / 12),
    "Infant": (1 / 12, 2.0),
    "Child, Preschool": (2.0, 6.0),
    "Child": (6.0, 13.0),
    "Adolescent": (13.0, 19.0),
    "Young Adult": (19.0, 25.0),
    "Adult": (19.0, 45.0),
    "Middle Aged": (45.0, 65.0),
    "Aged": (65.0, 80.0),
    "Aged, 80 and over": (80.0, 121.0),
}
_LOWER, _UPPER = np.array(list(AGE_GROUPS.values())).T
# What a word may be in such a phrase. A unit comes with its length in years.
_AGE, _MEAN, _LINK, _OVER, _UNDER, _OLD, _BETWEEN, _UNIT = range(1, 9)
_WORDS = {
    _AGE: "age aged ages ageing older younger",
    _MEAN: "mean median average",
    _LINK: "to and or through until",
    _OVER: "over above older least exceeding",
    _UNDER: "under below younger up less",
    _OLD: "old age",
    # May stand between an age and its numbers, as stop words may: "the mean age of the patients was 62".
    _BETWEEN: "range ranged ranging group sd patients participants subjects women men boys girls children",
}
_UNITS = {"year": 1, "years": 1, "yr": 1, "yrs": 1, "y": 1, "month": 1 / 12, "months": 1 / 12, "mo": 1 / 12,
          "week": 1 / 52, "weeks": 1 / 52, "wk": 1 / 52, "day": 1 / 365, "days": 1 / 365}  # fmt: skip
# Words before and after the numbers among which such words are looked for, and most numbers of a phrase.
_BEFORE, _AFTER, _NUMBERS = 7, 2, 5
# How far ages spread about a mean, as a share of it, and about an open end, in years.
_SPREAD, _BEYOND = 0.2, 20.0


class AgePhrases(NamedTuple):
    """Where ages are told: first word, number of words, and the age group; a phrase may tell several."""

    starts: np.ndarray
    lengths: np.ndarray
    groups: np.ndarray


def find_ages(words: HashedWords) -> AgePhrases:
    """Finds the phrases that tell ages, and their groups."""
    found: list[tuple[int, int, int]] = []
    number = words.numbers >= 0
    if number.any():
        roles = {role: np.isin(words.folded, hashes) for role, hashes in _HASHES.items()}
        # Numbers stand in every abstract, ages in few: most are passed over at once.
        near = _within(roles[_AGE] | roles[_OLD], _BEFORE + _NUMBERS)
        done = -1
        for start in np.flatnonzero(number & near).tolist():
            if start >= done:
                text = int(np.searchsorted(words.offsets, start, "right")) - 1
                phrase = _Phrase(words, roles, start, *words.offsets[text : text + 2].tolist())
                done = phrase.after_numbers
                found += [(phrase.first, phrase.end - phrase.first, group) for group in phrase.groups()]
    return AgePhrases(*np.array(found, np.int64).reshape(-1, 3).T)


def _within(marked: np.ndarray, distance: int) -> np.ndarray:
    """Which words have a marked one no further than this before or behind them."""
    sums = np.concatenate([[0], np.cumsum(marked)])
    place = np.arange(len(marked))
    return sums[np.minimum(place + distance + 1, len(marked))] > sums[np.maximum(place - distance, 0)]


class _Phrase:
    """Numbers that begin at a word, and what the words around say about them."""

    def __init__(
        self, words: HashedWords, roles: dict[int, np.ndarray], start: int, text_start: int, text_end: int
    ):
        self.values: list[int] = []
        # Which of the values comes after "to" or "and".
        self.linked: int | None = None
        place = start
        while place < text_end and len(self.values) < _NUMBERS:
            if words.numbers[place] >= 0:
                self.values.append(int(words.numbers[place]))
            elif roles[_LINK][place] and place + 1 < text_end and words.numbers[place + 1] >= 0:
                self.linked = self.linked or len(self.values)
            else:
                break
            place += 1
        self.after_numbers = place
        self.unit = 0.0
        if place < text_end and roles[_UNIT][place]:
            self.unit = _YEARS[int(words.folded[place])]
            place += 1
        old = [after for after in range(place, min(place + _AFTER, text_end)) if roles[_OLD][after]]
        self.end = old[0] + 1 if old and self.unit else place
        before = range(max(text_start, start - _BEFORE), start)
        ages = [word for word in before if roles[_AGE][word]][-1:]
        if ages and not all(_joins(words, roles, word) for word in range(ages[0] + 1, start)):
            ages = []
        self.is_age = bool(ages) or bool(old and self.unit)
        self.first = ages[0] if ages else start
        # A mean has its number; what follows is a range.
        since = next((word + 1 for word in reversed(before) if words.numbers[word] >= 0), before.start)
        self.is_mean = any(roles[_MEAN][word] for word in range(since, start))
        self.is_over, self.is_under = (
            any(roles[role][word] for word in before[-2:]) for role in (_OVER, _UNDER)
        )

    def groups(self) -> list[int]:
        """The age groups that are told; none if these are no ages."""
        if not self.is_age:
            return []
        low, high = (value * (self.unit or 1.0) for value in self._range())
        if high >= _UPPER[-1]:
            return []
        return np.flatnonzero((low < _UPPER) & (high >= _LOWER)).tolist()

    def _range(self) -> tuple[float, float]:
        value, *others = self.values
        if self.is_mean:
            return value * (1 - _SPREAD), value * (1 + _SPREAD)
        if self.linked and self.values[self.linked] > value:
            return value, self.values[self.linked]
        # Of 18-65 the hyphen is gone, as is the point of 6.5.
        if others and others[0] > value:
            return value, others[0]
        if self.is_over:
            return value, value + _BEYOND
        return max(0.0, value - _BEYOND) if self.is_under else value, value


def _joins(words: HashedWords, roles: dict[int, np.ndarray], word: int) -> bool:
    """Whether a word may stand between an age and its numbers."""
    spoken = not words.content[word] or words.numbers[word] >= 0
    return bool(spoken or any(role[word] for role in roles.values()))


def _hashes(words: str) -> np.ndarray:
    return np.array(sorted({hash_text(fold(word)) for word in words.split()}), np.uint64)


_HASHES = {role: _hashes(words) for role, words in _WORDS.items()} | {_UNIT: _hashes(" ".join(_UNITS))}
_YEARS = {hash_text(fold(word)): years for word, years in _UNITS.items()}


__all__ = ["AGE_GROUPS", "AgePhrases", "find_ages"]
