"""Words folded to one spelling and hashed: the common ground of the neighbour index and the lexicon.

A word's identity is a 64-bit hash of its folded form, so neither index needs a word list: nothing has to be
built at load time, and the tables do not depend on the tokenizer's vocabulary.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from .text_kenmesh import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_GREEK = str.maketrans(
    dict(
        zip(
            "αβγδεζηθικλμνξοπρσςτυφχψω",
            """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron
            pi rho sigma sigma tau upsilon phi chi psi omega""".split(),
            strict=True,
        )
    )
)
_IRREGULAR = {
    "mice": "mouse", "men": "man", "women": "woman", "children": "child", "teeth": "tooth", "feet": "foot",
    "geese": "goose", "oxen": "ox", "vertebrae": "vertebra", "indices": "index", "matrices": "matrix",
    "criteria": "criterion", "phenomena": "phenomenon", "viscera": "viscus", "genera": "genus",
}  # fmt: skip
# British and American spelling, then the endings in which plural and singular differ: larva/larvae,
# bacterium/bacteria, nucleus/nuclei, virus/viruses, therapy/therapies, diagnosis/diagnoses. Both sides are
# folded, so a folded form need not be a word.
_RULES = (
    (re.compile(r"ae$"), "a"),
    (re.compile(r"ae|oe"), "e"),
    (re.compile(r"our(?=s?$|al$|ally$|ed$|ing$|less$)"), "or"),
    (re.compile(r"(?<=[iy])z"), "s"),
    (re.compile(r"sulph"), "sulf"),
    (re.compile(r"(?<=[tb])re(?=s?$)"), "er"),
    (re.compile(r"(?<=\w{3})(?:ums?|as)$"), "a"),
    (re.compile(r"(?<=\w{3})(?:uses|us)$"), "i"),
    (re.compile(r"(?<=\w{3})ies$"), "y"),
    (re.compile(r"(?<=\w{3})(?<!s)(?:is|es|e|s)$|(?<=s)(?:is|es|e)$"), ""),
)
_CACHE_SIZE = 500_000


def fold(word: str) -> str:
    """One spelling for the forms of a word: case, accents, Greek letters, British spelling, plural."""
    word = word.lower()
    if not word.isascii():
        word = unicodedata.normalize("NFKD", word).translate(_GREEK)
        word = "".join(char for char in word if not unicodedata.combining(char)) or "?"
    word = _IRREGULAR.get(word, word)
    if len(word) < 4 or not word.isalpha():
        return word
    for pattern, replacement in _RULES:
        word = pattern.sub(replacement, word)
    return word


def split_words(text: str) -> list[str]:
    """Every run of letters and digits as it stands, stop words and single characters included."""
    return _WORD.findall(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Character offsets of the words `split_words` gives, in the same order."""
    return [match.span() for match in _WORD.finditer(text)]


def hash_text(text: str) -> int:
    """A 64-bit hash that is the same on every machine, never 0."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little") or 1


def is_acronym(word: str) -> bool:
    """Whether a word is written in capitals: AIDS, CD4, but not aids, A or 5."""
    return 1 < len(word) <= 6 and word.isupper()


class _Words(dict[str, int]):
    """Word → row of its hashes, filled as words are met: folding costs far more than finding again."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.hashes = np.zeros((4, 1024), np.uint64)

    def __missing__(self, word: str) -> int:
        with self.lock:
            row = len(self)
            if row == self.hashes.shape[1]:
                self.hashes = np.concatenate([self.hashes, np.zeros_like(self.hashes)], axis=1)
            content = len(word) > 1 and word.lower() not in STOP_WORDS
            acronym = hash_text("=" + word) if is_acronym(word) else 0
            number = int(word) + 1 if len(word) <= 3 and word.isascii() and word.isdecimal() else 0
            self.hashes[:, row] = hash_text(fold(word)), acronym, content, number
            return self.setdefault(word, row)


class HashedWords(NamedTuple):
    """The words of several texts, one after the other.

    Attributes:
        folded: Hash of each folded word, `(words,)`.
        acronyms: Hash of each word written in capitals as it stands, 0 for the others, `(words,)`.
        content: Neither a stop word nor a single character, `(words,)`.
        numbers: The value of a number below 1,000, -1 for other words, `(words,)`.
        offsets: Where each text's words begin, `(texts + 1,)`.
    """

    folded: np.ndarray
    acronyms: np.ndarray
    content: np.ndarray
    numbers: np.ndarray
    offsets: np.ndarray


_words = _Words()


def hash_words(texts: Iterable[str]) -> HashedWords:
    """Splits and hashes several texts."""
    global _words
    if len(_words) > _CACHE_SIZE:
        _words = _Words()
    words, find = _words, _WORD.findall
    rows: list[int] = []
    offsets = [0]
    for text in texts:
        rows.extend([words[word] for word in find(text)])
        offsets.append(len(rows))
    folded, acronyms, content, numbers = words.hashes[:, np.array(rows, np.int64)]
    return HashedWords(
        folded, acronyms, content.astype(bool), numbers.astype(np.int64) - 1, np.array(offsets)
    )


def mix(values: np.ndarray) -> np.ndarray:
    """Scrambles 64-bit values so that each input bit moves all output bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def extend_hashes(prefix: np.ndarray, following: np.ndarray) -> np.ndarray:
    """Hash of each n-gram followed by one more word; the order of words matters."""
    return mix(prefix * np.uint64(3) + following)


def hash_phrase(words: Sequence[str]) -> int:
    """Hash of one sequence of words, as `extend_hashes` makes it word by word."""
    hashes = hash_words([" ".join(words)]).folded
    value = hashes[:1]
    for position in range(1, len(hashes)):
        value = extend_hashes(value, hashes[position : position + 1])
    return int(value[0])
