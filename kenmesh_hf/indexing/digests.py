"""What the tables of candidates need to know of training articles: some hundred bytes each, no texts."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..modeling.indexed_articles_kenmesh import IndexedArticles
from ..modeling.lexicon_kenmesh import Hits, Lexicon
from ..modeling.tensors_kenmesh import map_tensors, save_tensors
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..modeling.word_counts_kenmesh import TermCounts, count_terms, hash_articles
from ..reading import Article
from .articles import hash_texts, heading_facts, label_ids

# Articles that are digested at once.
_BATCH = 2000
_NAME_END = "\x1f"


@dataclass(frozen=True)
class ArticleDigest:
    """A batch of articles as counted words, found terms and labels.

    Attributes:
        articles: PMID, hash of the text, year, labels and headings of each.
        words: Words of the articles.
        title_words: Words of their titles.
        hits: Terms found in them.
        journals: Names of each one's journal.
    """

    articles: IndexedArticles
    words: TermCounts
    title_words: TermCounts
    hits: Hits
    journals: list[list[str]]

    @classmethod
    def of(cls, articles: Sequence[Article], vocabulary: MeshVocabulary, lexicon: Lexicon) -> "ArticleDigest":
        """Digests articles; the lexicon is that of the vocabulary."""
        titles, abstracts = hash_texts(articles)
        pmids, years = ([getattr(article, field) for article in articles] for field in ("pmid", "year"))
        labels = [label_ids(article, vocabulary) for article in articles]
        headings = [heading_facts(*pair, vocabulary) for pair in zip(articles, labels, strict=True)]
        return cls(
            IndexedArticles.build(pmids, hash_articles(titles, abstracts), years, labels, headings),
            count_terms(titles, abstracts),
            count_terms(titles),
            lexicon.hits(titles, abstracts),
            [[" ".join(name.split()) for name in article.journal_names] for article in articles],
        )

    def __len__(self) -> int:
        return len(self.articles)

    def select(self, chosen: np.ndarray) -> "ArticleDigest":
        """Some of the articles, in their order."""
        if len(chosen) == len(self):
            return self
        place = np.full(len(self), -1)
        place[chosen] = np.arange(len(chosen))
        here = place[self.hits.articles] >= 0
        hits = Hits(*(part[here] for part in self.hits))
        return ArticleDigest(
            self.articles.select(chosen),
            self.words.select(chosen),
            self.title_words.select(chosen),
            hits._replace(articles=place[hits.articles]),
            [self.journals[row] for row in chosen],
        )

    def save(self, path: str | os.PathLike) -> None:
        """Writes a small file that `load` reads."""
        names = "\n".join(_NAME_END.join(names) for names in self.journals)
        tensors = {f"articles.{name}": array for name, array in self.articles.tensors.items()}
        for kind, counts in (("words", self.words), ("title_words", self.title_words)):
            tensors[f"{kind}.hashes"] = counts.hashes
            tensors[f"{kind}.counts"] = np.minimum(counts.counts, 0xFFFF).astype(np.uint16)
            tensors[f"{kind}.offsets"] = counts.offsets.astype(np.uint32)
        tensors |= {f"hits.{name}": array.astype(np.uint32) for name, array in self.hits._asdict().items()}
        tensors["journals"] = np.frombuffer(names.encode("utf-8"), np.uint8)
        save_tensors(tensors, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "ArticleDigest":
        """Reads what `save` wrote."""
        tensors = map_tensors(path)
        names = [name for name in tensors if name.startswith("articles.")]
        articles = IndexedArticles({name.removeprefix("articles."): tensors[name] for name in names})
        words, title_words = (
            TermCounts(
                tensors[f"{kind}.hashes"],
                tensors[f"{kind}.counts"].astype(np.float64),
                tensors[f"{kind}.offsets"].astype(np.int64),
            )
            for kind in ("words", "title_words")
        )
        hits = Hits(*(tensors[f"hits.{name}"].astype(np.int64) for name in Hits._fields))
        lines = tensors["journals"].tobytes().decode("utf-8").split("\n") if len(articles) else []
        journals = [[name for name in line.split(_NAME_END) if name] for line in lines]
        return cls(articles, words, title_words, hits, journals)


class DigestFiles:
    """Digests in files, read one after the other each time they are gone through."""

    def __init__(self, paths: Sequence[str | os.PathLike]):
        self.paths = paths

    def __iter__(self) -> Iterator[ArticleDigest]:
        return map(ArticleDigest.load, self.paths)


def digest_articles(
    articles: Iterable[Article], vocabulary: MeshVocabulary, lexicon: Lexicon
) -> Iterator[ArticleDigest]:
    """Digests articles, a batch at a time."""
    rest = iter(articles)
    while batch := list(islice(rest, _BATCH)):
        yield ArticleDigest.of(batch, vocabulary, lexicon)


class DistinctArticles:
    """Articles that have labels, each PMID and each text once: twice the same article would vote twice.

    Args:
        digests: Of all articles; gone through several times, so best made of files where they are many.
    """

    def __init__(self, digests: Iterable[ArticleDigest]):
        self.digests = digests
        pmids: set[int] = set()
        texts: set[int] = set()
        self.chosen = [_choose(digest.articles, pmids, texts) for digest in digests]

    def __len__(self) -> int:
        return sum(map(len, self.chosen))

    def __iter__(self) -> Iterator[ArticleDigest]:
        for digest, chosen in zip(self.digests, self.chosen, strict=True):
            yield digest.select(chosen)


def _choose(articles: IndexedArticles, pmids: set[int], texts: set[int]) -> np.ndarray:
    """Articles with labels whose PMID and text are not among those seen, which grow."""
    chosen = []
    labels = np.diff(articles.offsets)
    rows = zip(articles.pmids.tolist(), articles.hashes.tolist(), labels.tolist(), strict=True)
    for row, (pmid, text, given) in enumerate(rows):
        if given and text not in texts and pmid not in pmids:
            texts.add(text)
            if pmid:
                pmids.add(pmid)
            chosen.append(row)
    return np.array(chosen, np.int64)
