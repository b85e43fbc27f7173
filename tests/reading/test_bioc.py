"""BioC in XML and JSON."""

import json

import pytest
from places import DATA

from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import ReadReport, read_articles


def read(path):
    report = ReadReport()
    return list(read_articles(path, report=report)), report


@pytest.mark.parametrize("name", ["bioc.xml", "bioc.json"])
def test_fields(name):
    (first, second), report = read(DATA / name)
    assert report.ok
    assert first.title == "Effect of CO2 & air on mice"
    assert first.abstract == "BACKGROUND: Mice breathe. They do."
    assert (first.pmid, first.pmcid, first.year) == ("90000001", "PMC9000001", 2020)
    assert (second.pmid, second.pmcid, second.journal, second.year) == ("90000002", None, "Z Erfund", 1979)
    assert (second.title, second.abstract) == ("A PubMed title", "A PubMed abstract.")


def test_xml_damage(tmp_path):
    text = (DATA / "bioc.xml").read_text(encoding="utf-8")
    path = tmp_path / "a.xml"
    path.write_text(
        text.replace("</infon><passage><infon key", "</infom><passage><infon key", 1), encoding="utf-8"
    )
    articles, report = read(path)
    assert [article.pmid for article in articles] == ["90000002"] and report.skipped == {"broken XML": 1}
    path.write_text(text[: text.rindex("</text>")], encoding="utf-8")
    articles, report = read(path)
    assert [article.pmid for article in articles] == ["90000001"] and report.skipped == {
        "document cut off": 1
    }
    with pytest.raises(InputError, match="record 2"):
        list(read_articles(path, strict=True))


def test_entity_bomb_in_bioc(tmp_path):
    path = tmp_path / "a.xml"
    bomb = '<!DOCTYPE collection [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    document = (
        "<document><id>{}</id><passage><infon key='type'>title</infon><text>{}</text></passage></document>"
    )
    path.write_text(f"{bomb}<collection>{document.format(1, '&b;')}{document.format(2, 'fine')}</collection>")
    articles, report = read(path)
    assert [article.pmid for article in articles] == ["2"] and report.skipped == {"broken XML": 1}


def test_json_cut_off_keeps_whole_documents(tmp_path):
    text = (DATA / "bioc.json").read_text(encoding="utf-8")
    path = tmp_path / "a.json"
    path.write_text(text[: text.rindex("A PubMed abstract")], encoding="utf-8")
    articles, report = read(path)
    assert [article.pmid for article in articles] == ["90000001"] and report.skipped == {"broken JSON": 1}
    assert "object 2 at character" in report.examples["broken JSON"][0]


def test_json_larger_than_a_block(tmp_path):
    document = json.loads((DATA / "bioc.json").read_text(encoding="utf-8"))[0]["documents"][0]
    document["passages"][-1]["text"] = "ä word " * 60_000
    documents = [document | {"id": f"PMC{n}"} for n in range(12)]
    for n, item in enumerate(documents):
        front = item["passages"][0]
        infons = front["infons"] | {"article-id_pmid": str(n + 1)}
        item["passages"] = [front | {"infons": infons}, *item["passages"][1:]]
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps([{"documents": documents[:7]}, {"documents": documents[7:]}]), encoding="utf-8"
    )
    articles, report = read(path)
    assert [article.pmid for article in articles] == [str(n + 1) for n in range(12)] and report.ok


def test_one_document_a_line(tmp_path):
    collection = json.loads((DATA / "bioc.json").read_text(encoding="utf-8"))[0]
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\n".join([*map(json.dumps, collection["documents"]), '{"passages": 3}']), encoding="utf-8"
    )
    articles, report = read(path)
    assert [article.pmid for article in articles] == ["90000001", "90000002"]
    assert report.skipped == {"not an article": 1}


def test_json_cut_off_between_documents_is_told(tmp_path):
    text = (DATA / "bioc.json").read_text(encoding="utf-8")
    path = tmp_path / "a.json"
    path.write_text(text[: text.index('{"id": "90000002"')], encoding="utf-8")
    articles, report = read(path)
    assert len(articles) == 1 and report.skipped == {"broken JSON": 1}
