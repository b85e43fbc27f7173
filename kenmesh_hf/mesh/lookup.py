"""Names found as they are typed, and the place of a descriptor in the MeSH tree."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

from ..modeling.vocabulary_kenmesh import CATEGORIES, MeshVocabulary

# One letter begins a great many names; looking at more of them would not make a better list.
MOST_MATCHES = 2000
_PLACE = re.compile(r"[A-Z]\d\d(\.\d{3})*")


class NameIndex:
    """Finds names by their beginning or by the beginning of any of their words.

    Args:
        names: What can be found.
        preferred: So many of the first names come before equally fitting others.
    """

    def __init__(self, names: Sequence[str], preferred: int | None = None):
        # One string with a name a line: searching it is a hundred times quicker than looking at each name.
        self._text = "\n" + "\n".join(names).casefold() if names else ""
        self._lengths = [len(line) for line in self._text.split("\n")[1:]]
        self._starts = list(accumulate((length + 1 for length in self._lengths), initial=0))
        self._preferred = len(names) if preferred is None else preferred

    def search(self, query: str, limit: int) -> list[int]:
        """Positions of fitting names: the very name, then what begins so, then what has such a word."""
        query = " ".join(query.casefold().split())
        if not query:
            return []
        found = self._matches("\n", query)
        if len(found) < limit:
            found = list(dict.fromkeys(found + self._matches(" ", query)))
        return found[:limit]

    def _matches(self, before: str, query: str) -> list[int]:
        places = (match.start() for match in re.finditer(re.escape(before + query), self._text))
        positions = {bisect_right(self._starts, place) - 1 for place in islice(places, MOST_MATCHES)}

        def order(position: int) -> tuple[bool, bool, int, int]:
            length = self._lengths[position]
            return length != len(query), position >= self._preferred, length, position

        return sorted(positions, key=order)


class VocabularyLookup:
    """Descriptors by UI, name, entry term or tree number, as people see them."""

    def __init__(self, vocabulary: MeshVocabulary):
        self.vocabulary = vocabulary

    @cached_property
    def _terms(self) -> tuple[NameIndex, list[int]]:
        vocabulary = self.vocabulary
        terms, labels = list(vocabulary.names), list(range(len(vocabulary)))
        for label, others in enumerate(vocabulary.entry_terms):
            terms += others
            labels += [label] * len(others)
        return NameIndex(terms, preferred=len(vocabulary)), labels

    @cached_property
    def _label_at(self) -> dict[str, int]:
        numbers = self.vocabulary.tree_numbers
        return {number: label for label, places in enumerate(numbers) for number in places}

    def search(self, query: str, limit: int = 20) -> list[dict[str, Any]]:
        """Descriptors whose UI, tree number, name or entry term the query begins."""
        query = query.strip()
        return [self._brief(label) for label in islice(self._labels(query, limit), limit)]

    def _labels(self, query: str, limit: int) -> list[int]:
        vocabulary, place = self.vocabulary, query.upper()
        exact = vocabulary.get(place)
        if exact is None and _PLACE.fullmatch(place):
            exact = self._label_at.get(place)
        if exact is not None:
            return [exact]
        index, labels = self._terms
        # Several terms of a descriptor may fit, and it should be named once.
        return list(dict.fromkeys(labels[position] for position in index.search(query, 8 * limit)))

    def _brief(self, label: int) -> dict[str, Any]:
        vocabulary = self.vocabulary
        numbers = list(vocabulary.tree_numbers[label])
        return {"ui": vocabulary.uis[label], "name": vocabulary.names[label], "tree_numbers": numbers}

    def describe(self, ui: str) -> dict[str, Any] | None:
        """Everything known of a descriptor and its path down each tree; None if there is no such one."""
        vocabulary, label = self.vocabulary, self.vocabulary.get(ui)
        if label is None:
            return None
        parents, children = vocabulary.edges()
        return self._brief(label) | {
            "entry_terms": list(vocabulary.entry_terms[label]),
            "scope_note": vocabulary.scope_notes.get(ui),
            "check_tag": label in vocabulary.check_tags,
            "categories": [CATEGORIES.get(letter, letter) for letter in vocabulary.categories(label)],
            "paths": [self._path(number) for number in vocabulary.tree_numbers[label]],
            "narrower": [self._brief(int(child)) for child in children[parents == label]],
        }

    def _path(self, number: str) -> list[dict[str, str]]:
        parts = number.split(".")
        numbers = [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        found = [(place, self._label_at[place]) for place in numbers if place in self._label_at]
        uis, names = self.vocabulary.uis, self.vocabulary.names
        return [{"number": place, "ui": uis[label], "name": names[label]} for place, label in found]
