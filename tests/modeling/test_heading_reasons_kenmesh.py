"""Why tags are major topics, and why they have their qualifiers."""

import pytest
from tiny_headings import CUES, OTHERS, TOLD

from kenmesh_hf.modeling.heading_counts_kenmesh import VOTERS

WORD_OF = {qualifier.ui: cue for cue, qualifier in CUES.items()}


@pytest.fixture(scope="module")
def tags(telling_tagger):
    rows = telling_tagger([article.as_input() for article in OTHERS[:20]], evidence=True)
    return [tag for row in rows for tag in row]


def test_reasons_count_similar_articles_that_carry_the_heading(tags):
    for tag in tags:
        why = tag["evidence"]["major"]
        assert 0 <= why["agreeing"] <= why["carriers"] <= VOTERS
        for item in tag["qualifiers"]:
            assert 0 <= item["evidence"]["agreeing"] <= item["evidence"]["carriers"]
    topics = [tag for tag in tags if tag["ui"].startswith("D9")]
    # A topic of an even number is major wherever it stands, and the others nowhere.
    for tag in topics:
        why = tag["evidence"]["major"]
        assert why["agreeing"] == (why["carriers"] if int(tag["ui"][1:]) % 2 == 0 else 0)
    assert max(tag["evidence"]["major"]["carriers"] for tag in topics) > 10


def test_the_word_that_tells_a_qualifier_is_named(tags, telling_tagger):
    named = [
        (item["ui"], [word["word"] for word in item["evidence"]["words"]])
        for tag in tags
        for item in tag["qualifiers"]
    ]
    assert all(len(words) <= 3 for _, words in named)
    assert sum(WORD_OF[ui] in words for ui, words in named) > len(named) / 3
    article = {"title": "Nothing", "abstract": "known at all"}
    assert all(not item["evidence"]["words"] for tag in telling_tagger(article, evidence=True, top_k=3)
               for item in tag["qualifiers"])  # fmt: skip


def test_an_indexed_article_is_no_reason_of_its_own(telling_tagger):
    [tag, *_] = telling_tagger(TOLD[0].as_input(), evidence=True)
    carriers = sum(tag["ui"] in article.descriptors for article in TOLD[1:])
    assert tag["evidence"]["major"]["carriers"] <= carriers


def test_models_without_headings_give_no_such_reasons(tiny_tagger):
    [tag, *_] = tiny_tagger(OTHERS[0].as_input(), evidence=True, top_k=1)
    assert "major" not in tag["evidence"]
