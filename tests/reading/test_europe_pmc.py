"""Europe PMC's JSON."""

import json

import pytest

from kenmesh_hf.reading import Article, Heading, Qualifier, ReadReport, read_articles

RESULT = {
    "id": "90000001",
    "source": "MED",
    "pmid": "90000001",
    "pmcid": "PMC9000001",
    "title": "Zinc in <i>invented</i> diarrhoea, p&lt;0.05.",
    "journalInfo": {
        "volume": "12",
        "dateOfPublication": "2020 Jun-Jul",
        "yearOfPublication": 2020,
        "journal": {
            "title": "Journal of invented medicine",
            "medlineAbbreviation": "J Invent Med",
            "isoabbreviation": "J. Invent. Med.",
            "nlmid": "9900001",
        },
    },
    "pubYear": "2020",
    "abstractText": "<h4>Background: </h4>Zinc &amp; children.<h4>Methods</h4> 10 < 20.<h4></h4>End.",
    "dateOfCompletion": "2020-11-20",
    "dateOfRevision": "2021-01-09",
    "meshHeadingList": {
        "meshHeading": [
            {"majorTopic_YN": "N", "descriptorName": "Humans"},
            {
                "majorTopic_YN": "N",
                "descriptorName": "Zinc",
                "meshQualifierList": {
                    "meshQualifier": [
                        {"abbreviation": "TU", "qualifierName": "therapeutic use", "majorTopic_YN": "Y"},
                        {"abbreviation": "BL", "qualifierName": "blood", "majorTopic_YN": "N"},
                    ]
                },
            },
            {"majorTopic_YN": "Y", "descriptorName": "Diarrhea"},
        ]
    },
}
ARTICLE = Article(
    title="Zinc in invented diarrhoea, p<0.05.",
    abstract="BACKGROUND: Zinc & children. METHODS: 10 < 20. End.",
    pmid="90000001",
    journal="Journal of invented medicine",
    year=2020,
    headings=(
        Heading("", "Humans"),
        Heading(
            "", "Zinc", True, (Qualifier("Q000627", "therapeutic use", True), Qualifier("Q000097", "blood"))
        ),
        Heading("", "Diarrhea", True),
    ),
    journal_abbreviation="J. Invent. Med.",
    nlm_id="9900001",
    pmcid="PMC9000001",
    date="2020-06",
    date_completed="2020-11-20",
    date_revised="2021-01-09",
)
PREPRINT = {"id": "PPR1", "source": "PPR", "title": "Not indexed", "pubYear": "2021", "journalInfo": None}


def answer(*results):
    return {"version": "6.9", "hitCount": len(results), "resultList": {"result": list(results)}}


def read(tmp_path, text):
    path = tmp_path / "a"
    path.write_text(text, encoding="utf-8")
    report = ReadReport()
    return list(read_articles(path, report=report)), report


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("form", [lambda *results: list(results), answer], ids=["list", "answer"])
def test_results_and_whole_answers(tmp_path, form, indent):
    articles, report = read(tmp_path, json.dumps(form(RESULT, PREPRINT), indent=indent))
    assert articles == [ARTICLE, Article(title="Not indexed", year=2021, date="2021")] and report.ok


def test_results_and_answers_a_line(tmp_path):
    other = RESULT | {"pmid": "90000002"}
    articles, report = read(tmp_path, json.dumps(RESULT) + "\n" + json.dumps(answer(other, PREPRINT)))
    assert [article.pmid for article in articles] == ["90000001", "90000002", None] and report.ok


def test_a_large_answer_is_read_as_a_stream(tmp_path):
    results = [RESULT | {"pmid": str(number)} for number in range(1, 200)]
    articles, report = read(tmp_path, json.dumps(answer(*results)))
    assert [article.pmid for article in articles] == [result["pmid"] for result in results] and report.ok


@pytest.mark.parametrize(
    "bad",
    [
        {"meshHeadingList": {"meshHeading": [{"majorTopic_YN": "Y"}]}},
        {"meshHeadingList": {"meshHeading": [{"descriptorName": 7}]}},
        {"meshHeadingList": {"meshHeading": [{"descriptorName": None}]}},
        {
            "meshHeadingList": {
                "meshHeading": [
                    {"descriptorName": "Zinc", "meshQualifierList": {"meshQualifier": [{"qualifierName": 7}]}}
                ]
            }
        },
        {"meshHeadingList": [3]},
        {"pmcid": [1]},
        {"journalInfo": "text"},
        {"abstractText": 5},
        {"title": "", "abstractText": "", "pmid": ""},
    ],
)
def test_a_damaged_result_costs_only_itself(tmp_path, bad):
    damaged = RESULT | {"pmid": "2"} | bad
    articles, report = read(tmp_path, json.dumps(answer(damaged, RESULT)) + "\n")
    assert articles == [ARTICLE] and report.skipped == {"not an article": 1}


def test_an_answer_without_results_is_told(tmp_path):
    articles, report = read(tmp_path, json.dumps({"resultList": None}) + "\n" + json.dumps(RESULT))
    assert articles == [ARTICLE] and report.skipped == {"not an article": 1}
