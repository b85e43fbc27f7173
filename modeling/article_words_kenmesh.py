"""The words of an article, where each stands, and the terms among them: what reasons are told by."""

from collections.abc import Sequence

import numpy as np

from .lexicon_kenmesh import Lexicon, Spans
from .terms_kenmesh import HashedWords, hash_words, word_spans

# Words of an article that are taken out, those first in it: an abstract has some hundred.
LONGEST = 3000


class ArticleWords:
    """The words of an article, of which each is taken out wherever it stands, in capitals or not.

    Args:
        texts: Title and abstract; may be empty.
        hashed: Their words.
        spans: The terms in them; a word of a term counts even if it is a stop word.
    """

    def __init__(self, texts: tuple[str, str], hashed: HashedWords, spans: Spans):
        self.texts, self.hashed, self.spans = texts, hashed, spans
        self.titles = int(hashed.offsets[1])
        spans_of_words = [place for text in texts for place in word_spans(text)]
        # Start and end of each word in its text.
        self.positions = np.array(spans_of_words, np.int64).reshape(-1, 2)
        within = np.zeros(len(self.positions) + 1, np.int64)
        np.add.at(within, spans.starts, 1)
        np.add.at(within, spans.starts + spans.lengths, -1)
        counts = (hashed.content | (np.cumsum(within)[:-1] > 0))[:LONGEST]
        numbers: dict[str, int] = {}
        self.number_of = np.full(len(self.positions), -1)
        # Field, start and end of each word wherever it stands.
        self.places: list[list[tuple[int, int, int]]] = []
        for position in np.flatnonzero(counts).tolist():
            start, end = spans_of_words[position]
            field = int(position >= self.titles)
            word = texts[field][start:end].lower()
            if word not in numbers:
                numbers[word] = len(numbers)
                self.places.append([])
            self.number_of[position] = numbers[word]
            self.places[numbers[word]].append((field, start, end))
        self.words = list(numbers)

    @classmethod
    def of_all(cls, articles: Sequence[tuple[str, str]], lexicon: Lexicon | None) -> "list[ArticleWords]":
        """The words of several articles; without a lexicon no terms are found."""
        hashed = hash_words([text for texts in articles for text in texts])
        spans = lexicon.find(hashed) if lexicon else Spans(*np.zeros((len(Spans._fields), 0), np.int64))
        found = []
        for row, texts in enumerate(articles):
            first, middle, last = hashed.offsets[2 * row : 2 * row + 3].tolist()
            left, right = np.searchsorted(spans.starts, [first, last])
            mine = Spans(*(part[left:right] for part in spans))
            folded, acronyms, content, numbers = (part[first:last] for part in hashed[:-1])
            offsets = np.array([first, middle, last]) - first
            words = HashedWords(folded, acronyms, content, numbers, offsets)
            mine = mine._replace(texts=mine.texts - 2 * row, starts=mine.starts - first)
            found.append(cls(texts, words, mine))
        return found


__all__ = ["LONGEST", "ArticleWords"]
