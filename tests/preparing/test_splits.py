"""Newest held out, PMC matched to PubMed, human indexing only."""

import pytest

from kenmesh_hf.errors import InputError
from kenmesh_hf.preparing.splits import human_indexed, match_pmc, plan_split
from kenmesh_hf.reading import Article, Heading

MESH = (Heading("D000818"),)


def article(pmid, date="2020", abstract="text", headings=MESH, **fields):
    return Article("title", abstract, str(pmid), date=date, headings=headings, **fields)


def parts(articles, plan):
    return {item.pmid: plan.part(item) for item in articles}


def test_newest_are_held_out_by_date_then_pmid():
    articles = [
        article(5, "2019-05"),
        article(1, "2021"),
        article(2, "2020-12"),
        article(3, "2021"),
        article(4),
    ]
    plan = plan_split(articles, test=2, validation=1)
    assert parts(articles, plan) == {
        "3": "test",
        "1": "test",
        "2": "validation",
        "4": "train",
        "5": "train",
    }


def test_split_by_pmid_alone():
    articles = [article(n, date="2020" if n % 2 else "1999") for n in range(1, 11)]
    plan = plan_split(reversed(articles), test=3, validation=2, by="pmid")
    found = parts(articles, plan)
    assert [found[str(n)] for n in range(5, 11)] == [
        "train",
        "validation",
        "validation",
        "test",
        "test",
        "test",
    ]


def test_title_only_articles_train_but_are_not_tested_on():
    articles = [article(n) for n in range(1, 7)] + [article(20, abstract=""), article(0, abstract="")]
    plan = plan_split(articles, test=1, validation=1)
    assert plan.part(articles[-2]) is None
    assert plan.part(articles[-1]) == "train"
    assert list(parts(articles, plan).values()).count("test") == 1


def test_too_few_articles_or_unclear_boundary():
    with pytest.raises(InputError, match="Only 2 articles"):
        plan_split([article(1), article(2)], test=1, validation=1)
    with pytest.raises(InputError, match="at least one"):
        plan_split([article(1)], test=0, validation=1)
    with pytest.raises(InputError, match="own PMID"):
        plan_split([article("") for _ in range(5)], test=1, validation=1)


def test_automated_and_curated_records_are_left_out():
    articles = [article(1), article(2, indexing_method="Automated"), article(3, indexing_method="Curated")]
    articles.append(article(4, headings=()))
    assert [item.pmid for item in human_indexed(articles)] == ["1"]


def test_pmc_is_matched_by_pmid():
    pmc = [Article("from PMC", pmid="1"), Article("from PMC"), Article("from PMC", pmid="2")]
    citations = [article(1), article(2, indexing_method="Automated"), article(3)]
    assert list(match_pmc(pmc, citations)) == [citations[0]]
