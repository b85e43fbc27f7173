"""What is remembered of the headings of indexed articles."""

import numpy as np
import pytest

from kenmesh_hf.modeling.heading_table_kenmesh import HeadingFacts, HeadingTable
from kenmesh_hf.modeling.indexed_articles_kenmesh import IndexedArticles

ZINC, PLAIN = HeadingFacts(True, ((61, True), (8, False))), HeadingFacts()
FACTS = [[ZINC, PLAIN], [PLAIN], [HeadingFacts(True), HeadingFacts(False, ((8, False),)), PLAIN], []]


def facts_of(table: HeadingTable, lengths: list[int]) -> list[list[HeadingFacts]]:
    """The table as it was told."""
    rows, heading = [], 0
    for length in lengths:
        row = []
        for place in range(heading, heading + length):
            entries, _ = table.entries(np.array([place]))
            pairs = zip(table.qualifiers[entries].tolist(), table.starred[entries].tolist(), strict=True)
            row.append(HeadingFacts(bool(table.major[place]), tuple(pairs)))
        rows.append(row)
        heading += length
    return rows


def indexed(facts: list[list[HeadingFacts]] | None, first: int = 1) -> IndexedArticles:
    lengths = [len(row) for row in FACTS if facts is None] or [len(row) for row in facts or ()]
    size = len(lengths)
    labels = [np.arange(length) for length in lengths]
    hashes = np.arange(first, first + size).astype(np.uint64)
    return IndexedArticles.build(range(first, first + size), hashes, [2000] * size, labels, facts)


def test_what_was_told_comes_back_from_what_is_stored():
    table = HeadingTable.build(FACTS)
    again = HeadingTable.from_tensors(table.tensors, 6)
    assert facts_of(again, [2, 1, 3, 0]) == FACTS
    assert again.known.tolist() == [3, 0, 3, 0]


def test_an_article_without_any_major_heading_or_qualifier_tells_nothing_of_them():
    table = HeadingTable.build([[HeadingFacts(True), PLAIN], [HeadingFacts(False, ((1, False),))], [PLAIN]])
    assert table.majors_known(np.arange(3)).tolist() == [True, False, False]
    assert table.qualifiers_known(np.arange(3)).tolist() == [False, True, False]


def test_articles_selected_and_joined_keep_their_headings():
    some = indexed(FACTS).select(np.array([2, 0]))
    assert facts_of(some.headings, [3, 2]) == [FACTS[2], FACTS[0]]
    joined = IndexedArticles.join([indexed(None), indexed(FACTS, first=10)])
    assert joined.headings.known.tolist() == [0, 0, 0, 0, 3, 0, 3, 0]
    assert facts_of(joined.headings, [2, 1, 3, 0] * 2)[4:] == FACTS


@pytest.mark.parametrize("facts", [None, [[PLAIN], [PLAIN, PLAIN]]])
def test_where_nothing_is_known_nothing_is_stored(facts):
    articles = indexed(facts)
    assert articles.headings is None
    assert set(articles.tensors) == {"pmids", "hashes", "years", "labels", "offsets"}
    assert IndexedArticles.join([articles, articles]).headings is None


def test_a_heading_takes_less_than_a_byte_and_each_qualifier_one_more():
    table = HeadingTable.build(FACTS * 500)
    headings, entries = len(table.major), len(table.qualifiers)
    assert sum(array.nbytes for array in table.tensors.values()) < headings + entries * 1.2 + 2000
