"""The desk over HTTP: opening files, background tagging, decisions, conflicts, handing in, bad requests."""

import gzip
import json
import sqlite3
import threading
import uuid
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from patience import wait_until
from tiny import tiny_articles
from web_double import TaggerDouble

from kenmesh_hf.mesh import MeshQualifiers
from kenmesh_hf.serving import DeskSettings, Limits
from kenmesh_hf.serving.app import create_app

HYPERTENSION, HEPARIN = "D006973", "D006493"
ROWS = [
    {"pmid": "11", "title": "Hypertension in mice", "abstract": "Amlodipine.", "journal": "Lancet"},
    {"pmid": "12", "title": "Heparin after thrombosis"},
    {"pmid": "13", "title": "Cancer and hypertension"},
]


def jsonl(rows):
    return "\n".join(map(json.dumps, rows)).encode()


def desk_client(tmp_path, tagger=None, **limits):
    settings = DeskSettings(str(tmp_path / "review.sqlite"), "model-1")
    app = create_app(tagger or TaggerDouble(), limits=Limits(**limits), desk=settings)
    return TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.fixture
def client(tmp_path):
    with desk_client(tmp_path) as client:
        yield client


def open_file(client, data=None, name="export.jsonl", who="Ana"):
    data = jsonl(ROWS) if data is None else data
    return client.post("/api/desk/collections", params={"name": name, "who": who}, content=data)


@pytest.fixture
def opened(client):
    """A client whose desk has a tagged collection of three articles."""
    assert open_file(client).json()["articles"] == 3
    wait_for_tags(client)
    return client


def wait_for_tags(client):
    def tagged():
        collections = client.get("/api/desk").json()["collections"]
        return all(row["tagged"] == row["articles"] for row in collections)

    wait_until(tagged, "the tags of every article")


def articles(client, collection=1, **query):
    answer = client.get(f"/api/desk/collections/{collection}/articles", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def decide(client, number, action, version=None, **more):
    if version is None:
        version = client.get(f"/api/desk/articles/{number}").json()["version"]
    body = {"key": str(uuid.uuid4()), "who": "Ana", "version": version, "action": action} | more
    return client.post(f"/api/desk/articles/{number}/decisions", json=body)


def problem(answer, status):
    assert answer.status_code == status, answer.text
    return answer.json()["detail"]


def test_a_file_is_opened_and_tagged_in_the_background(opened):
    found = articles(opened)
    assert [row["pmid"] for row in found["articles"]] == ["11", "12", "13"] and found["total"] == 3
    assert found["counts"]["tagged"] == 3 and found["counts"]["opened_by"] == "Ana"
    shown = opened.get("/api/desk/articles/1").json()
    assert [tag["name"] for tag in shown["tags"] if tag["proposed"]] == ["Hypertension", "Amlodipine", "Mice"]
    assert not [tag for tag in shown["tags"] if not tag["proposed"] and tag["kept"]]
    assert shown["model"] == "model-1" and shown["article"]["journal"] == "Lancet"


def test_tagging_goes_on_after_a_restart(tmp_path):
    gate = threading.Event()
    tagger = TaggerDouble(gate)
    with desk_client(tmp_path, tagger, seconds=1) as client:
        open_file(client)
        assert articles(client)["counts"]["tagged"] == 0
        gate.set()
    with desk_client(tmp_path) as client:
        wait_for_tags(client)
        assert articles(client)["counts"]["tagged"] == 3


def test_a_text_the_model_fails_on_says_so_and_spoils_no_other(client):
    open_file(
        client, jsonl([{"title": "poison"}, {"title": "Heparin"}, {"pmid": "3", "title": " ", "year": 1990}])
    )
    wait_for_tags(client)
    first, second, third = articles(client)["articles"]
    assert "failed on this text" in first["problem"] and second["problem"] is None
    assert "nothing to tag" in third["problem"]


def test_any_format_is_opened_and_losses_are_told(client):
    ris = b"TY  - JOUR\r\nTI  - Heparin\r\nAN  - 77\r\nER  - \r\n"
    assert open_file(client, gzip.compress(ris), "export.ris.gz").json()["articles"] == 1
    broken = open_file(client, jsonl(ROWS) + b"\n{broken").json()
    assert (
        broken["skipped"] == {"broken JSON": 1}
        and "export.jsonl, line 4" in broken["examples"]["broken JSON"][0]
    )
    assert [row["unreadable"] for row in client.get("/api/desk").json()["collections"]] == [1, 0]


def test_uploads_are_bounded(tmp_path):
    with desk_client(tmp_path, file_bytes=3000, body_bytes=1000, collection_articles=2) as client:
        assert "at most 0.003 MB" in problem(open_file(client, b"x" * 3001), 413)
        assert "larger than 0.003 MB" in problem(open_file(client, gzip.compress(b" " * 100_000)), 413)
        found = open_file(client).json()
        assert found["articles"] == 2 and found["more"]
        assert "No article was found in odd.bin" in problem(open_file(client, b"\0\1 odd", "odd.bin"), 422)
        assert "who" in problem(open_file(client, who="  "), 422)
        large = "x" * 2000
        assert "at most 0.001 MB" in problem(decide(client, 1, "add", 0, ui=large), 413)


def test_lists_are_filtered(opened):
    def pmids(**query):
        return [row["pmid"] for row in articles(opened, **query)["articles"]]

    assert pmids(q="hyperten") == ["11", "13"] and pmids(q="12") == ["12"] and pmids(q="* OR") == []
    assert pmids(ui=HYPERTENSION) == ["11", "13"] and pmids(state="done") == []
    assert set(pmids(sort="doubt")) == {"11", "12", "13"} and pmids(start=1, limit=1) == ["12"]
    bad = opened.get("/api/desk/collections/1/articles", params={"sort": "title; DROP TABLE article"})
    assert "sort" in problem(bad, 422)
    assert "no collection 9" in problem(opened.get("/api/desk/collections/9/articles"), 404)


def test_decisions_are_made_and_seen_by_others(opened):
    now = articles(opened)["now"]
    shown = decide(opened, 1, "strike", ui=HYPERTENSION).json()
    assert shown["version"] == 1 and shown["tags"][0]["decided"]["who"] == "Ana"
    tags = {tag["name"]: tag for tag in decide(opened, 1, "add", ui=HEPARIN).json()["tags"]}
    assert tags["Heparin"]["kept"] and not tags["Heparin"]["proposed"]
    assert decide(opened, 1, "done").json()["state"] == "done"
    changes = opened.get("/api/desk/collections/1/changes", params={"since": now}).json()
    assert [(row["id"], row["state"]) for row in changes["articles"]] == [(1, "done")]
    assert changes["counts"]["done"] == 1
    later = opened.get("/api/desk/collections/1/changes", params={"since": changes["now"]}).json()
    assert later["articles"] == []


def test_the_later_one_is_told(opened):
    decide(opened, 1, "strike", ui=HYPERTENSION)
    late = decide(opened, 1, "accept", version=0, ui=HYPERTENSION, who="Ben")
    assert "Ana changed this article" in problem(late, 409)
    assert late.json()["by"][0]["action"] == "strike" and late.json()["article"]["version"] == 1


def test_undo_and_redo(opened):
    decide(opened, 2, "skip")
    assert opened.post("/api/desk/collections/1/undo", json={"who": "Ana"}).json()["state"] == "todo"
    assert "nothing to undo" in problem(opened.post("/api/desk/collections/1/undo", json={"who": "Ana"}), 404)
    assert opened.post("/api/desk/collections/1/redo", json={"who": "Ana"}).json()["state"] == "skipped"
    decide(opened, 2, "strike", ui=HEPARIN)
    decide(opened, 2, "accept", ui=HEPARIN, who="Ben")
    told = opened.post("/api/desk/collections/1/undo", json={"who": "Ana"})
    assert "decided otherwise" in problem(told, 409) and told.json()["article"]["id"] == 2


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"action": "explode"}, 422, "action"),
        ({"action": "accept"}, 422, "`ui` is missing"),
        ({"action": "accept", "ui": "Robert'); DROP TABLE tag;--"}, 422, "ui"),
        ({"action": "add", "ui": "D999999"}, 422, "D999999 is no descriptor of this model"),
        ({"action": "strike", "ui": "D000001"}, 404, "not among the tags"),
        ({"action": "done", "who": " "}, 422, "who"),
        ({"action": "done", "who": "x" * 81}, 422, "who"),
        ({"action": "done", "key": "short"}, 422, "key"),
        ({"action": "done", "more": 1}, 422, "more"),
        ({"action": "qualify", "ui": HYPERTENSION, "qualifiers": [{"ui": "Q000188"}]}, 422, "no qualifier"),
    ],
)
def test_what_cannot_be_decided_is_said_in_a_sentence(opened, body, status, sentence):
    assert sentence in problem(decide(opened, 1, version=0, **({"who": "Ana"} | body)), status)
    assert opened.get("/api/desk/articles/1").json()["version"] == 0


@pytest.mark.parametrize("number", [10**30, -1])
def test_numbers_that_no_desk_has_are_refused(opened, number):
    get, post = opened.get, opened.post
    for path in ("articles/{}", "collections/{}/articles", "collections/{}/export?format=ris"):
        assert "number" in problem(get("/api/desk/" + path.format(number)), 422)
    for path in ("articles?start={}", "changes?since={}"):
        problem(get("/api/desk/collections/1/" + path.format(number)), 422)
    assert "number" in problem(get(f"/desk/report/{number}"), 422)
    assert "number" in problem(opened.delete(f"/api/desk/collections/{number}"), 422)
    assert "number" in problem(post(f"/api/desk/collections/{number}/undo", json={"who": "Ana"}), 422)
    assert "version" in problem(decide(opened, 1, "done", version=number), 422)


def test_files_without_articles_are_told(client):
    assert problem(open_file(client, b" \n", "blank.txt"), 422).startswith("blank.txt is empty")
    assert "not recognised" in problem(open_file(client, b"Dear Sir,", "letter.txt"), 422)
    assert "no collection 9" in problem(client.post("/api/desk/collections/9/tag-again"), 404)


def test_a_desk_that_cannot_be_written_is_told_and_goes_on(tmp_path, opened):
    other = sqlite3.connect(tmp_path / "review.sqlite", isolation_level=None)
    other.execute(
        "CREATE TRIGGER no_room BEFORE INSERT ON decision BEGIN SELECT RAISE(ABORT, 'no room'); END"
    )
    assert "cannot be used: no room" in problem(decide(opened, 1, "strike", ui=HYPERTENSION), 503)
    assert opened.get("/api/desk/articles/1").json()["version"] == 0
    other.execute("DROP TRIGGER no_room")
    other.close()
    assert decide(opened, 1, "strike", ui=HYPERTENSION).status_code == 200


def test_qualifiers_are_offered_where_the_model_has_them(tmp_path, opened):
    assert opened.get("/api/desk/articles/1/qualifiers", params={"ui": HYPERTENSION}).json() == []
    tagger = TaggerDouble()
    tagger.processor.headings = SimpleNamespace(qualifiers=MeshQualifiers(allowed={"C14": ["DT", "PC"]}))
    (tmp_path / "other").mkdir()
    with desk_client(tmp_path / "other", tagger) as client:
        open_file(client)
        wait_for_tags(client)
        assert client.get("/api/desk").json()["qualifiers"]
        offered = client.get("/api/desk/articles/1/qualifiers", params={"ui": HYPERTENSION}).json()
        assert [item["name"] for item in offered] == ["drug therapy", "prevention & control"]
        shown = decide(
            client, 1, "qualify", ui=HYPERTENSION, qualifiers=[{"ui": "Q000188", "major": True}]
        ).json()
        assert shown["tags"][0]["qualifiers"] == [{"ui": "Q000188", "name": "drug therapy", "major": True}]


def test_reasons_are_those_of_the_model(opened):
    reasons = opened.get("/api/desk/articles/1/reasons").json()
    assert reasons[HYPERTENSION]["term"]["text"] == "Hypertension"
    assert problem(opened.get("/api/desk/articles/99/reasons"), 404)


def test_what_is_done_is_handed_in(opened):
    def export(**query):
        return opened.get("/api/desk/collections/1/export", params=query)

    assert "No article is done yet" in problem(export(format="ris"), 422)
    decide(opened, 2, "done")
    answer = export(format="nbib")
    assert (
        "MH  - Heparin\nMH  - Thrombosis" in answer.text or "MH  - Thrombosis\nMH  - Heparin" in answer.text
    )
    assert answer.headers["content-disposition"] == 'attachment; filename="collection-1.nbib"'
    assert len(export(format="jsonl", only_done=False).text.splitlines()) == 3
    assert "format" in problem(export(format="docx"), 422)


def test_a_collection_is_removed(opened):
    assert opened.delete("/api/desk/collections/1").json() == {"removed": 1}
    assert opened.get("/api/desk").json()["collections"] == []
    assert "no collection 1" in problem(opened.delete("/api/desk/collections/1"), 404)
    assert "no article 1" in problem(opened.get("/api/desk/articles/1"), 404)


def test_another_model_tags_again_what_nobody_touched(tmp_path, opened):
    decide(opened, 1, "accept", ui=HYPERTENSION)
    settings = DeskSettings(str(tmp_path / "review.sqlite"), "model-2")
    with TestClient(create_app(TaggerDouble(), desk=settings), base_url="http://localhost") as client:
        assert client.post("/api/desk/collections/1/tag-again").json() == {"articles": 2}
        wait_for_tags(client)
        models = [client.get(f"/api/desk/articles/{number}").json()["model"] for number in (1, 2, 3)]
        assert models == ["model-1", "model-2", "model-2"]


def test_without_a_desk_there_is_none(tmp_path):
    with TestClient(create_app(TaggerDouble())) as client:
        for path in ("/api/desk", "/desk/", "/desk/index.html", "/api/desk/articles/1"):
            assert client.get(path).status_code == 404
        assert "/api/desk" not in client.get("/openapi.json").text
        assert "frame-ancestors" not in client.get("/").headers["content-security-policy"]


def test_the_report_is_a_page_and_json(opened):
    decide(opened, 1, "strike", ui=HYPERTENSION)
    decide(opened, 1, "done")
    figures = opened.get("/api/desk/collections/1/report").json()
    assert figures["precision"] == pytest.approx(2 / 3) and figures["struck"][0]["name"] == "Hypertension"
    page = opened.get("/desk/report/1")
    assert page.status_code == 200 and "<svg" in page.text and "0.667" in page.text
    assert 'href="../../style.css"' in page.text and "<style" not in page.text
    for path in ("/desk/report/9", "/api/desk/collections/9/report"):
        assert "no collection 9" in problem(opened.get(path), 404)


def test_a_model_in_memory_cannot_learn(opened):
    answer = opened.post("/api/desk/learning", json={"who": "Ana"})
    assert "in no folder" in problem(answer, 422)
    assert opened.get("/api/desk/learning").json() == {"running": False, "problem": None, "learned": []}


def learned(client):
    def ended():
        status = client.get("/api/desk/learning").json()
        return not status["running"] and status

    return wait_until(ended, "the end of learning")


def test_the_button_lets_a_model_learn_beside_the_desk(tmp_path, tiny_model, tiny_tagger):
    settings = DeskSettings(str(tmp_path / "review.sqlite"), "tiny", folder=str(tiny_model))
    with TestClient(create_app(tiny_tagger, desk=settings), base_url="http://localhost") as client:
        rows = [article.to_dict() for article in tiny_articles(12, seed=8, first_pmid=8001)]
        open_file(client, jsonl(rows))
        wait_for_tags(client)
        assert client.post("/api/desk/learning", json={"who": "Ana"}).status_code == 200
        assert "Too little is done" in learned(client)["problem"]
        for row in articles(client)["articles"]:
            assert decide(client, row["id"], "done").status_code == 200
        out = client.post("/api/desk/learning", json={"who": "Ana"}).json()["out"]
        assert out == str(tmp_path / "review-model-1")
        [report] = learned(client)["learned"]
    assert report["out"] == out and report["joined"] > 0 and (tmp_path / "review-model-1").is_dir()
