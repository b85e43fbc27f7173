"""An invented MeSH and invented articles whose words tell their labels: enough to see a network learn."""

import itertools
import random
from pathlib import Path

from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.reading import Article, Heading, write_articles

TOPICS = 24
# Sizes of the prepared dataset that tests share.
TRAIN, VALIDATION, TEST = 200, 50, 30
JOURNALS = ("Annals of Velora", "The Journal of Mirata", "Sopeti Letters", "Archives of Kanuro")
_SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")
# Three syllables, each combination once: no word is the plural or the beginning of another.
_WORDS = ["".join(parts) for parts in itertools.product(_SYLLABLES, repeat=3)]
_NAMES, _CLUES, _NOISE = _WORDS[:100], _WORDS[100:400], _WORDS[400:700]


def tiny_uis() -> list[str]:
    """Descriptor UIs: the topics, then Humans and Animals, which carry NLM's numbers."""
    return [f"D{900000 + topic}" for topic in range(TOPICS)] + ["D006801", "D000818"]


def tiny_vocabulary(year: int = 2024) -> MeshVocabulary:
    """Topics in six branches of four, where the first is the parent of the others, and two check tags."""
    names = [f"{_NAMES[2 * t].title()} {_NAMES[2 * t + 1].title()}" for t in range(TOPICS)]
    terms = [(f"{_NAMES[2 * t + 1]} of {_NAMES[2 * t]}",) for t in range(TOPICS)]
    trees = [(f"C{t // 4 + 1:02d}" if t % 4 == 0 else f"C{t // 4 + 1:02d}.{100 + t}",) for t in range(TOPICS)]
    return MeshVocabulary(
        tiny_uis(), [*names, "Humans", "Animals"], [*terms, (), ()], [*trees, ("B01.050",), ("B01",)], year
    )


def tiny_articles(count: int, seed: int = 0, first_pmid: int = 1) -> list[Article]:
    """Articles of two or three topics, each with three of its four clue words and sometimes its name.

    The journal tells a topic more, one in ten articles has no journal, and every one is of Humans or Animals.
    """
    draw, vocabulary = random.Random(seed), tiny_vocabulary()
    return [_article(draw, vocabulary, first_pmid + number) for number in range(count)]


def _article(draw: random.Random, vocabulary: MeshVocabulary, pmid: int) -> Article:
    journal = draw.choice([*range(len(JOURNALS)), *range(len(JOURNALS)), None])
    topics = set(draw.sample(range(TOPICS), draw.choice((2, 3)))) | (
        {journal} if journal is not None else set()
    )
    words = [word for topic in topics for word in draw.sample(_CLUES[4 * topic : 4 * topic + 4], 3)]
    words += [vocabulary.names[topic] for topic in topics if draw.random() < 0.3]
    words += draw.sample(_NOISE, draw.randrange(5, 15))
    draw.shuffle(words)
    labels = sorted(topics) + [TOPICS + draw.randrange(2)]
    words.append(("patients", "mice")[labels[-1] - TOPICS])
    return Article(
        title=" ".join(words[:5]) + ".",
        abstract=" ".join(words[5:]) + ".",
        pmid=str(pmid),
        journal=None if journal is None else JOURNALS[journal],
        year=2000 + pmid // 50,
        headings=tuple(Heading(vocabulary.uis[label], vocabulary.names[label]) for label in labels),
        date=f"{2000 + pmid // 50}",
    )


def write_tiny_mesh(folder: Path) -> Path:
    """The vocabulary as a four-column table."""
    path = folder / "mesh2024.tsv"
    path.write_text(tiny_vocabulary().to_table(), encoding="utf-8")
    return path


def write_tiny_articles(folder: Path, count: int, files: int = 1, seed: int = 0) -> list[Path]:
    """Articles as JSONL, divided over files."""
    articles = tiny_articles(count, seed)
    paths = [folder / f"articles{number}.jsonl" for number in range(files)]
    for number, path in enumerate(paths):
        write_articles(articles[number::files], path)
    return paths


def write_tiny_vectors(folder: Path, dim: int = 48) -> Path:
    """Random vectors of all words: too few articles are there to train any that tell words apart."""
    draw = random.Random(0)
    path = folder / "vectors.vec"
    words = [*_WORDS[:700], "patients", "mice", "humans", "animals"]
    lines = (" ".join([word, *(f"{draw.gauss(0, 0.7):.3f}" for _ in range(dim))]) for word in words)
    path.write_text("\n".join([f"{len(words)} {dim}", *lines]) + "\n", encoding="utf-8")
    return path
