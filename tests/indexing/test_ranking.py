"""Which articles tell the candidates that are worth keeping."""

from dataclasses import replace

import pytest
from tiny import tiny_articles, tiny_vocabulary

from kenmesh_hf.indexing import build_candidates, fit_ranker, ranking
from kenmesh_hf.modeling.proposals_kenmesh import CandidateOptions

VOCABULARY = tiny_vocabulary()
# Of 2000 to 2003, and one whose year nobody knows; some have no abstract.
ARTICLES = [replace(a, abstract="" if int(a.pmid) % 5 == 0 else a.abstract) for a in tiny_articles(150)]
ARTICLES[0] = replace(ARTICLES[0], year=None)


@pytest.mark.parametrize(
    ("enough", "looked_at"),
    [
        (40, lambda article: article.abstract and (article.year or 2001) >= 2001),
        (100, lambda article: article.abstract),
    ],
    ids=["recent ones", "too few recent ones"],
)
def test_recent_articles_with_an_abstract_are_preferred(monkeypatch, enough, looked_at):
    candidates = build_candidates(ARTICLES, VOCABULARY, CandidateOptions(max_candidates=8, recent=2001))
    seen, look_up = [], ranking.look_up

    def watched(candidates, articles):
        seen.extend(articles)
        return look_up(candidates, articles)

    monkeypatch.setattr(ranking, "look_up", watched)
    monkeypatch.setattr(ranking, "_ENOUGH_RECENT", enough)
    fit_ranker(candidates, ARTICLES, VOCABULARY)
    assert {a.pmid for a in seen} == {a.pmid for a in ARTICLES if looked_at(a)}
