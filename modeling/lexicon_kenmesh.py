"""Descriptors named in a text: names and entry terms found by the hashes of word sequences, and ages."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .ages_kenmesh import AGE_GROUPS, find_ages
from .tensors_kenmesh import narrow
from .terms_kenmesh import HashedWords, extend_hashes, fold, hash_text, hash_words, is_acronym, split_words
from .text_kenmesh import STOP_WORDS

MAX_WORDS = 8
TITLE, ABSTRACT, INSIDE = range(3)
"""Where a term occurs: in the title, in the abstract, or in either as part of a longer term."""
_SMOOTHING = 4.0
_NAME_BIT, _WORDS_SHIFT = 1, 1
# The term of an age group that stands for numbers, such as "aged 65 to 80 years"; no text has its hash. It
# counts as one of several words.
_AGE_TERMS = [hash_text(f"\x1fages of {name}") for name in AGE_GROUPS]
_AGE_WORDS = 2


class Hits(NamedTuple):
    """Terms found in a batch of articles, one row for each article, place and term.

    Attributes:
        articles: `(hits,)`, ascending.
        terms: `(hits,)`, rows of the lexicon.
        places: `TITLE`, `ABSTRACT` or `INSIDE`, `(hits,)`.
        counts: How often the term stands there, `(hits,)`.
    """

    articles: np.ndarray
    terms: np.ndarray
    places: np.ndarray
    counts: np.ndarray


class Spans(NamedTuple):
    """Occurrences of terms: text, first word, number of words, term, and whether a longer term holds it."""

    texts: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    terms: np.ndarray
    inside: np.ndarray


def _variants(term: str) -> Iterable[list[str]]:
    """The word sequences that stand for a term: as written and, for "Neoplasms, Breast", turned round."""
    yield split_words(term)
    parts = term.split(", ")
    if 1 < len(parts) <= 4:
        yield split_words(" ".join(reversed(parts)))


def _usable(words: Sequence[str]) -> bool:
    if not 0 < len(words) <= MAX_WORDS:
        return False
    word = words[0]
    return len(words) > 1 or not (
        len(word) == 1 or word.isdecimal() or {word.lower(), fold(word)} & STOP_WORDS and not is_acronym(word)
    )


class Lexicon:
    """The terms of a MeSH vocabulary, with how often each one's descriptor was assigned where it occurred.

    An acronym such as AIDS or CAT is found only where it is written in capitals; every other term is found in
    any case, in singular or plural, in British or American spelling, with or without hyphens. An age group is
    also found by ages.

    Args:
        tensors: The arrays of `build`, as they are stored.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.hashes = tensors["hashes"]
        self.labels = tensors["labels"]
        self.is_name = (tensors["kinds"] & _NAME_BIT).astype(bool)
        self.lengths = tensors["kinds"] >> _WORDS_SHIFT
        self.found = tensors["found"]
        self.assigned = tensors["assigned"]
        self.base = tensors["base"]
        # One bit a bucket answers most look-ups: nearly all word sequences are no term.
        self._shift = np.uint64(64 - 21)
        self._buckets = np.zeros(1 << 21, bool)
        self._buckets[self.hashes >> self._shift] = True
        self._ages = np.array([self._row(term) for term in _AGE_TERMS])
        self._repeated = bool(len(self.hashes) and (self.hashes[1:] == self.hashes[:-1]).any())

    @classmethod
    def build(cls, names: Sequence[str], entry_terms: Sequence[Sequence[str]]) -> "Lexicon":
        """Prepares the terms of all labels; `learned` adds what training articles tell about them."""
        phrases, acronyms, rows = [], [], []
        for label, (name, others) in enumerate(zip(names, entry_terms, strict=True)):
            for position, term in enumerate((name, *others)):
                for words in _variants(term):
                    if _usable(words):
                        phrases.append(" ".join(words))
                        acronyms.append(words[0] if len(words) == 1 and is_acronym(words[0]) else None)
                        rows.append((label, int(position == 0), len(words)))
        hashes = _hash_phrases(phrases)
        for row, acronym in enumerate(acronyms):
            if acronym:
                hashes[row] = hash_text("=" + acronym)
        ages = [names.index(name) if name in names else -1 for name in AGE_GROUPS]
        rows += [(label, 0, _AGE_WORDS) for label in ages if label >= 0]
        terms = [term for term, label in zip(_AGE_TERMS, ages, strict=True) if label >= 0]
        hashes = np.concatenate([hashes, np.array(terms, np.uint64)])
        labels, name_flags, lengths = np.array(rows, np.int64).reshape(-1, 3).T
        return cls(_arrange(hashes, labels, name_flags, lengths))

    def _row(self, term: int) -> int:
        """The row of a term, -1 if the lexicon has none."""
        row = int(np.searchsorted(self.hashes, np.uint64(term)))
        return row if row < len(self.hashes) and self.hashes[row] == term else -1

    def find(self, words: HashedWords) -> Spans:
        """Finds every occurrence of a term in hashed texts."""
        texts = np.repeat(np.arange(len(words.offsets) - 1), np.diff(words.offsets))
        ends = words.offsets[1:][texts]
        starts, lengths, terms = [], [], []
        place = np.arange(len(texts))
        value = words.folded
        for length in range(1, MAX_WORDS + 1):
            looked_up = [value] if length > 1 else [value, words.acronyms]
            for values in looked_up:
                hit = np.flatnonzero(self._buckets[values >> self._shift])
                row, term = self._look_up(values[hit])
                starts.append(place[hit[row]])
                terms.append(term)
                lengths.append(np.full(len(term), length))
            longer = place + length < ends[place]
            place = place[longer]
            value = extend_hashes(value[longer], words.folded[place + length])
        if (self._ages >= 0).any():
            ages = find_ages(words)
            known = self._ages[ages.groups] >= 0
            starts.append(ages.starts[known])
            lengths.append(ages.lengths[known])
            terms.append(self._ages[ages.groups[known]])
        return _arrange_spans(texts, *(np.concatenate(parts) for parts in (starts, lengths, terms)))

    def _look_up(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of (position in `values`, term); a hash that several labels share gives several pairs."""
        left = np.searchsorted(self.hashes, values)
        known = self.hashes[np.minimum(left, len(self.hashes) - 1)] == values
        row, term = np.flatnonzero(known), left[known]
        rows, terms = [row], [term]
        while self._repeated and len(row):
            more = term + 1 < len(self.hashes)
            more[more] = self.hashes[term[more] + 1] == self.hashes[term[more]]
            row, term = row[more], term[more] + 1
            rows.append(row)
            terms.append(term)
        return np.concatenate(rows), np.concatenate(terms)

    def hits(self, titles: HashedWords, abstracts: HashedWords) -> Hits:
        """Terms found in each article of a batch."""
        keys = []
        for place, words in ((TITLE, titles), (ABSTRACT, abstracts)):
            spans = self.find(words)
            keys.append(
                (spans.texts * len(self.hashes) + spans.terms) * 3 + np.where(spans.inside, INSIDE, place)
            )
        key, counts = np.unique(np.concatenate(keys), return_counts=True)
        return Hits(key // (3 * len(self.hashes)), key // 3 % len(self.hashes), key % 3, counts)

    def learned(self, parts: Iterable[tuple[Hits, np.ndarray]]) -> "Lexicon":
        """The same terms, with how often each occurs in training articles and its label is assigned then.

        Args:
            parts: Terms found in training articles, some articles at a time, and for each hit whether its
                article carries the term's label, bool `(hits,)`.
        """
        found, right = (np.zeros((3, len(self.hashes)), np.int64) for _ in range(2))
        for hits, assigned in parts:
            np.add.at(found, (hits.places, hits.terms), 1)
            np.add.at(right, (hits.places[assigned], hits.terms[assigned]), 1)
        base = np.zeros((3, 2, 2), np.float32)
        for name in (0, 1):
            for several in (0, 1):
                group = (self.is_name == name) & ((self.lengths > 1) == several)
                base[:, name, several] = (right[:, group].sum(1) + 1) / (found[:, group].sum(1) + 5)
        return Lexicon(self.tensors | {"found": narrow(found), "assigned": narrow(right), "base": base})

    def precision(self, hits: Hits, own: np.ndarray, own_assigned: np.ndarray) -> np.ndarray:
        """Share of training articles with the term that carry its descriptor, smoothed, `(hits,)`.

        Args:
            hits: Terms found.
            own: How many indexed articles are the hit's article itself; they are not counted, `(hits,)`.
            own_assigned: How many of them carry the term's label, `(hits,)`.
        """
        places, terms = hits.places, hits.terms
        base = self.base[places, self.is_name[terms].astype(int), (self.lengths[terms] > 1).astype(int)]
        found = np.maximum(self.found[places, terms].astype(np.float64) - own, 0)
        right = np.maximum(self.assigned[places, terms].astype(np.float64) - own_assigned, 0)
        return (right + _SMOOTHING * base) / (found + _SMOOTHING)


def _hash_phrases(phrases: list[str]) -> np.ndarray:
    """Hash of each phrase's word sequence, all phrases a word further at a time."""
    words = hash_words(phrases)
    lengths = np.diff(words.offsets)
    value = words.folded[words.offsets[:-1]].copy() if phrases else np.zeros(0, np.uint64)
    for position in range(1, int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > position)
        value[longer] = extend_hashes(value[longer], words.folded[words.offsets[longer] + position])
    return value


def _arrange(hashes: np.ndarray, labels: np.ndarray, names: np.ndarray, lengths: np.ndarray) -> dict:
    """Sorts terms by hash, each (hash, label) once; an entry term gives way to another label's name."""
    order = np.lexsort((-names, labels, hashes))
    hashes, labels, names, lengths = (part[order] for part in (hashes, labels, names, lengths))
    first = np.ones(len(hashes), bool)
    first[1:] = (hashes[1:] != hashes[:-1]) | (labels[1:] != labels[:-1])
    group = np.unique(hashes, return_inverse=True)[1]
    named = np.bincount(group, names, minlength=1) > 0
    keep = first & ((names == 1) | ~named[group])
    size = int(keep.sum())
    return {
        "hashes": hashes[keep],
        "labels": narrow(labels[keep]),
        "kinds": (names[keep] * _NAME_BIT | lengths[keep] << _WORDS_SHIFT).astype(np.uint8),
        "found": np.zeros((3, size), np.uint16),
        "assigned": np.zeros((3, size), np.uint16),
        "base": np.full((3, 2, 2), 0.2, np.float32),
    }


def _arrange_spans(texts: np.ndarray, starts: np.ndarray, lengths: np.ndarray, terms: np.ndarray) -> Spans:
    """Sorts occurrences by place, longest first, and marks those that lie within another."""
    order = np.lexsort((terms, -lengths, starts))
    starts, lengths, terms = starts[order], lengths[order], terms[order]
    inside = np.zeros(len(starts), bool)
    if len(starts):
        ends = starts + lengths
        new = np.ones(len(starts), bool)
        new[1:] = (starts[1:] != starts[:-1]) | (lengths[1:] != lengths[:-1])
        reach = np.maximum.accumulate(ends[new])
        before = np.concatenate([[-1], reach[:-1]])
        inside = (before >= ends[new])[np.cumsum(new) - 1]
    return Spans(texts[starts] if len(starts) else starts, starts, lengths, terms, inside)
