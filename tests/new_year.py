"""A next year of the invented MeSH: one descriptor more, and articles about it."""

from dataclasses import replace
from pathlib import Path

from tiny import tiny_articles, tiny_vocabulary

from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.reading import Article, Heading

NEW = ("D999999", "Zorvexin Fever", (), ("C06.900",))


def write_new_year(path: Path) -> Path:
    """The invented MeSH with one descriptor more."""
    old = tiny_vocabulary()
    columns = (old.uis, old.names, old.entry_terms, old.tree_numbers)
    columns = ([*column, value] for column, value in zip(columns, NEW, strict=True))
    path.write_text(MeshVocabulary(*columns, year=2025).to_table(), encoding="utf-8")
    return path


def new_year_articles(count: int, seed: int, first_pmid: int) -> list[Article]:
    """Every second one is about the new descriptor, half of these in words of which its name is none."""
    made = tiny_articles(count, seed, first_pmid)
    for number in range(0, count, 2):
        words = "zorvexin fever" if number % 4 else "glimsor praxut heddin"
        article = made[number]
        made[number] = replace(
            article,
            title=f"{words} {article.title}",
            headings=(*article.headings, Heading(NEW[0])),
        )
    return made
