"""How text becomes words, written once: the tokenizer, the neighbour index and the lexicon all follow it."""

import re
import unicodedata
from collections.abc import Iterable, Mapping

PAD_TOKEN = "[PAD]"
UNK_TOKEN = "[UNK]"

# Python and the tokenizers library know different versions of Unicode, and versions of Python differ too. So
# the alphabet is spelled out as ranges on which all of them agree, instead of \w, \d or \p{L}.
# What may be read at all: Latin, Greek, Cyrillic, Armenian, Hebrew, Arabic, Devanagari, Thai, Hangul, CJK,
# their compatibility forms, symbols and punctuation. Any other character separates words.
_READ = (
    "\x00-\u06ff\u0900-\u097f\u0e00-\u0e7f\u1100-\u11ff\u1d00-\u1dbf\u1e00-\u32fe\u3300-\ua48f\uac00-\ud7ff"
    "\uf900-\ufffd\U0001d400-\U0001d7ff\U00020000-\U0003fffd"
)
# Characters nobody sees: soft hyphen, zero-width characters, byte order mark, variation selectors.
INVISIBLE_PATTERN = "[\u00ad\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff]"
UNREAD_PATTERN = f"[^{_READ}]"

_ASCII = "0-9a-z"
# Letters and digits left after NFKC and lower-casing.
_LETTERS = (
    _ASCII + "\u00df-\u00f6\u00f8-\u02af\u0370-\u0373\u0376-\u03f5\u03f7-\u0481\u048a-\u0559\u0560-\u0588"
    "\u05d0-\u05f2\u0620-\u064a\u0660-\u0669\u066e\u066f\u0671-\u06d3\u06d5\u06e5\u06e6\u06ee-\u06fc"
    "\u0904-\u0939\u093d\u0950\u0958-\u0961\u0966-\u096f\u0971-\u097f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
    "\u0e50-\u0e59\u1100-\u11ff\u1d00-\u1dbf\u1e00-\u1fff\u2c60-\u2c7f\u3005-\u3007\u3041-\u3096\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\ua48c\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003fffd"
)
# Marks go on with a word but never begin one: an accent standing alone is punctuation.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0903\u093a-\u093c\u093e-\u094f\u0951-\u0957"
    "\u0962\u0963\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)


def _word_pattern(letters: str, marks: str = "") -> str:
    # A run of letters and digits. A hyphen joins two runs before a digit or after a number that stands first,
    # so that il-6, covid-19 and 5-ht stay whole while double-blind and p53-dependent are two words each.
    run = f"[{letters}][{letters}{marks}]*"
    return f"(?:[0-9]+-)*{run}(?:-(?=[0-9]){run})*"


WORD_PATTERN = _word_pattern(_LETTERS, _MARKS)

STOP_WORDS = frozenset(
    """a about above after again against all also although always am among an and any are as at be
    because been before being below between both but by can cannot could did do does doing done down due
    during each either et etc for from further furthermore had has have having he hence her here hers
    herself him himself his how however i ie if in into is it its itself just like many may me might more
    moreover most much must my myself neither no nor not of off often on once one only or other others
    our ours ourselves out over own per same she should since so some such than that the their theirs
    them themselves then there thereby therefore these they this those though through thus to too toward
    towards under until up upon very via was we were what when where whereas whether which while who whom
    whose why will with within without would yet you your yours""".split()
)

# Replaced in this order after NFKC and lower-casing. Python writes a final sigma where the tokenizers library
# does not; the other is the typographic hyphen of "covid\u201019" (NFKC turns the non-breaking one into it).
REPLACEMENTS = (("\u03c2", "\u03c3"), ("\u2010", "-"))

_WORD = re.compile(WORD_PATTERN)
_ASCII_WORD = re.compile(_word_pattern(_ASCII))
_DROPPED = STOP_WORDS | set("0123456789abcdefghijklmnopqrstuvwxyz")
_INVISIBLE = re.compile(INVISIBLE_PATTERN)
_UNREAD = re.compile(UNREAD_PATTERN)


def normalize(text: str) -> str:
    """NFKC and lower case: the form in which words are compared."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _UNREAD.sub(" ", _INVISIBLE.sub("", text))).lower()
    for old, new in REPLACEMENTS:
        text = text.replace(old, new)
    return text


def content_words(text: str) -> list[str]:
    """The words the network and the neighbour index see: no stop words, no single characters."""
    if text.isascii():
        return [word for word in _ASCII_WORD.findall(text.lower()) if word not in _DROPPED]
    return [word for word in _WORD.findall(normalize(text)) if len(word) > 1 and word not in STOP_WORDS]


def content_spans(text: str) -> list[tuple[int, int]] | None:
    """Where the words of `content_words` stand; None if they were normalised, which moves characters."""
    if not text.isascii():
        return None
    found = _ASCII_WORD.finditer(text.lower())
    return [match.span() for match in found if match[0] not in _DROPPED]


def encode_words(
    texts: Iterable[str], vocab: Mapping[str, int], max_length: int | None = None
) -> list[list[int]]:
    """Word ids of many texts: what the tokenizer gives, several times faster.

    Args:
        texts: Texts to encode.
        vocab: Id of each word; must hold `[UNK]`, which stands for every word that is not in it.
        max_length: Most ids a text may have; what comes after is cut.
    """
    unknown = vocab[UNK_TOKEN]
    lookup = vocab.get
    return [[lookup(word, unknown) for word in content_words(text)[:max_length]] for text in texts]


def clear_tokenizer_state(tokenizer) -> None:
    """Make a fast tokenizer forget the truncation and padding of its last call; it would save them."""
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
