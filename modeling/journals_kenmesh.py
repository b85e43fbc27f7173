"""What a journal says about its articles: how often each label was given in it."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from .tensors_kenmesh import id_type, narrow
from .terms_kenmesh import hash_text
from .text_kenmesh import normalize

Journal = str | Sequence[str] | None
"""A journal as users know it: its title, abbreviation or NLM id, or several of these."""

_ASIDE = re.compile(r"\([^)]*\)|\[[^\]]*\]| [:=] .*")
_WORD = re.compile(r"[^\W_]+")
_DROPPED = {"the", "and"}


def journal_key(name: str) -> int:
    """Hash of a journal's name, blind to case, punctuation, "The", "&", subtitle and place of printing."""
    text = normalize(name)
    words = _WORD.findall(_ASIDE.sub(" ", text)) or _WORD.findall(text)
    return hash_text(" ".join(word for word in words if word not in _DROPPED))


# The same few thousand names come with every article.
_journal_key = lru_cache(maxsize=1 << 16)(journal_key)


def journal_names(journal: Journal) -> list[str]:
    """The non-empty names of a journal."""
    names = [journal] if isinstance(journal, str) else list(journal or ())
    return [name for name in names if name and _WORD.search(name)]


def main_name(journal: Journal) -> str:
    """The longest name of a journal: its title."""
    return " ".join(max(journal_names(journal), key=len).split())


def pack_names(names: Sequence[str]) -> np.ndarray:
    """Names as the bytes in which they are stored, a line each."""
    return np.frombuffer("\n".join(names).encode("utf-8"), np.uint8)


class JournalTable:
    """Label counts of each journal in the training articles.

    Args:
        tensors: The arrays of `build`, as they are stored.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.keys = tensors["keys"]
        self.journals = tensors["journals"]
        self.sizes = tensors["sizes"].astype(np.int64)
        self.offsets = tensors["offsets"].astype(np.int64)
        self.labels = tensors["labels"]
        self.counts = tensors["counts"]
        # The journal of each training article, -1 where it has none.
        self.of_articles = tensors["of_articles"].astype(np.int64) - 1

    @property
    def names(self) -> list[str]:
        """The title of each journal, as its first training article gives it."""
        return self.tensors["names"].tobytes().decode("utf-8").splitlines()

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def build(cls, journals: Iterable[Journal], labels: Sequence[np.ndarray]) -> "JournalTable":
        """Counts labels by journal; articles whose journals share any name belong to the same one."""
        nothing = np.zeros(0, np.int64)
        names = ("keys", "journals", "sizes", "labels", "counts", "of_articles")
        empty = dict.fromkeys(names, nothing) | {"offsets": np.zeros(1, np.int64), "names": pack_names([])}
        return cls(empty).grow(journals, labels)

    def grow(self, journals: Iterable[Journal], labels: Sequence[np.ndarray]) -> "JournalTable":
        """A table that counts more articles, too; their unknown journals join."""
        numbers = dict(zip(self.keys.tolist(), self.journals.tolist(), strict=True))
        sizes, names, of_articles = self.sizes.tolist(), self.names, (self.of_articles + 1).tolist()
        old = np.repeat(np.arange(len(sizes)), np.diff(self.offsets)) << 32 | self.labels.astype(np.int64)
        first = len(of_articles)
        for journal in journals:
            keys = [_journal_key(name) for name in journal_names(journal)]
            number = next((numbers[key] for key in keys if key in numbers), len(sizes))
            of_articles.append(number + 1 if keys else 0)
            if not keys:
                continue
            if number == len(sizes):
                sizes.append(0)
                names.append(main_name(journal))
            sizes[number] += 1
            for key in keys:
                numbers.setdefault(key, number)
        number_of = np.array(of_articles[first:], np.int64) - 1
        owners = np.repeat(number_of, [len(given) for given in labels])
        new = owners << 32 | np.concatenate([np.zeros(0, np.int64), *labels])
        cell, place = np.unique(np.concatenate([old, new[owners >= 0]]), return_inverse=True)
        amounts = np.ones(len(place))
        amounts[: len(old)] = self.counts
        counts = np.bincount(place, amounts, len(cell))
        given = cell & 0xFFFFFFFF
        keys_array = np.array(sorted(numbers), np.uint64)
        return JournalTable(
            {
                "keys": keys_array,
                "journals": np.array([numbers[int(key)] for key in keys_array], np.uint32),
                "sizes": np.array(sizes, np.uint32),
                "offsets": np.searchsorted(cell >> 32, np.arange(len(sizes) + 1)).astype(np.uint32),
                "labels": narrow(given),
                "counts": narrow(counts),
                "names": pack_names(names),
                "of_articles": np.array(of_articles, id_type(len(sizes) + 1)),
            }
        )

    def find(self, journal: Journal) -> int:
        """Number of a journal, -1 if training articles know none of its names."""
        for name in journal_names(journal):
            key = np.uint64(_journal_key(name))
            place = int(np.searchsorted(self.keys, key))
            if place < len(self.keys) and self.keys[place] == key:
                return int(self.journals[place])
        return -1

    def numbers(self, journals: Iterable[Journal]) -> np.ndarray:
        """What `find` says of several journals."""
        return np.array([self.find(journal) for journal in journals], np.int64)

    def counts_of(self, journal: Journal) -> tuple[np.ndarray, np.ndarray, int]:
        """Labels given in a journal, how often each, and the number of its articles."""
        return self.counts_at(self.find(journal))

    def counts_at(self, number: int) -> tuple[np.ndarray, np.ndarray, int]:
        """The same for the journal of a number that `find` gave."""
        if number < 0:
            return self.labels[:0], self.counts[:0], 0
        span = slice(self.offsets[number], self.offsets[number + 1])
        return self.labels[span], self.counts[span], int(self.sizes[number])
