"""Major topics and qualifiers go with a model to another MeSH year and to a larger index."""

from dataclasses import replace

from tiny import tiny_vocabulary
from tiny_headings import OTHERS, TOLD

from kenmesh_hf.indexing import add_articles
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.reading import Qualifier
from kenmesh_hf.updating import update_mesh

INPUTS = [article.as_input() for article in OTHERS[:10]]


def told(tagger: MeSHIndexingPipeline) -> list[list[tuple]]:
    return [
        [(tag["ui"], tag["major"], [item["ui"] for item in tag["qualifiers"]]) for tag in tags]
        for tags in tagger(INPUTS)
    ]


def next_year(allowed: dict[str, tuple[str, ...]] | None = None) -> MeshVocabulary:
    """The same descriptors in another order, and a new one."""
    old = tiny_vocabulary()
    order = [*reversed(range(len(old)))]
    columns = ([column[label] for label in order] for column in (old.uis, old.names, old.entry_terms))
    uis, names, terms = columns
    trees = [old.tree_numbers[label] for label in order]
    return MeshVocabulary(
        [*uis, "D999999"],
        [*names, "Zuzu"],
        [*terms, ()],
        [*trees, ("C09",)],
        2025,
        allowed_qualifiers=allowed,
    )


def test_another_mesh_year_carries_headings_along(telling_tagger):
    model, processor, _ = update_mesh(telling_tagger.model, telling_tagger.processor, next_year())
    assert told(MeSHIndexingPipeline(model=model, processor=processor)) == told(telling_tagger)


def test_what_the_new_year_allows_is_what_is_proposed(telling_tagger):
    allowed = {ui: ("BL",) for ui in tiny_vocabulary().uis if ui.startswith("D9")}
    model, processor, _ = update_mesh(telling_tagger.model, telling_tagger.processor, next_year(allowed))
    tags = told(MeSHIndexingPipeline(model=model, processor=processor))
    assert {ui for row in tags for _, _, uis in row for ui in uis} == {"Q000097"}


def test_articles_that_join_the_index_bring_their_headings(telling_tagger):
    processor, growth = add_articles(telling_tagger.processor, OTHERS)
    table = processor.candidates.articles.headings
    assert growth.added == len(OTHERS)
    assert len(table.known) == len(TOLD) + len(OTHERS)
    assert (table.known[len(TOLD) :] > 0).sum() > 40


def test_an_article_that_joined_the_index_is_not_told_by_its_own_headings(telling_tagger):
    odd = (Qualifier("Q000097", "blood", True),)
    changed = replace(OTHERS[0], headings=tuple(replace(h, qualifiers=odd) for h in OTHERS[0].headings))
    tags = []
    for article in (OTHERS[0], changed):
        processor, _ = add_articles(telling_tagger.processor, [article, *OTHERS[1:]])
        tags.append(told(MeSHIndexingPipeline(model=telling_tagger.model, processor=processor)))
    assert tags[0][0] == tags[1][0]
