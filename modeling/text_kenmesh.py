"""How text becomes words, written once: the tokenizer, the neighbour index and the lexicon all follow it."""

import re
import unicodedata

# A run of letters and digits. A hyphen joins two runs only beside a digit, so that il-6, covid-19 and 5-ht stay
# whole while double-blind becomes two ordinary words.
WORD_PATTERN = r"[^\W_]+(?:(?:-(?=\d)|(?<=\d)-)[^\W_]+)*"

STOP_WORDS = frozenset(
    """a about above after again against all also although always am among an and any are as at be because been
    before being below between both but by can cannot could did do does doing done down due during each either et
    etc for from further furthermore had has have having he hence her here hers herself him himself his how however
    i ie if in into is it its itself just like many may me might more moreover most much must my myself neither no
    nor not of off often on once one only or other others our ours ourselves out over own per same she should since
    so some such than that the their theirs them themselves then there thereby therefore these they this those though
    through thus to too toward towards under until up upon very via was we were what when where whereas whether which
    while who whom whose why will with within without would yet you your yours""".split()
)

_WORD = re.compile(WORD_PATTERN)


def normalize(text: str) -> str:
    """NFKC and lower case: the form in which words are compared."""
    return unicodedata.normalize("NFKC", text).lower()


def content_words(text: str) -> list[str]:
    """The words the network and the neighbour index see: no stop words, no single characters."""
    return [word for word in _WORD.findall(normalize(text)) if len(word) > 1 and word not in STOP_WORDS]
