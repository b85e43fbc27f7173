"""The web server: REST answers, limits, errors as sentences, many clients at once."""

import asyncio
import gzip
import io
import json
import re
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi.testclient import TestClient
from patience import PATIENCE, wait_until
from web_double import TaggerDouble

from kenmesh_hf.serving import Limits
from kenmesh_hf.serving.app import PAGE_FOLDER, create_app

ARTICLE = {
    "title": "Amlodipine for hypertension",
    "abstract": "Men and women with hypertension took amlodipine. Female patients were 48%.",
    "journal": "Journal of hypertension",
    "pmid": "31452104",
}


@pytest.fixture
def tagger():
    return TaggerDouble()


@pytest.fixture
def client(tagger):
    with TestClient(create_app(tagger)) as client:
        yield client


def limited(tagger=None, **limits):
    return TestClient(create_app(tagger or TaggerDouble(), limits=Limits(**limits)))


def names(response):
    assert response.status_code == 200, response.text
    return [tag["name"] for tag in response.json()["tags"]]


def problem(response, status):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()["detail"]


def test_one_article_gets_the_tags_the_model_would_give(client):
    response = client.post("/api/tag", json=ARTICLE)
    assert names(response) == ["Hypertension", "Amlodipine", "Female"]
    [first, *_] = response.json()["tags"]
    assert first == {
        "ui": "D006973",
        "name": "Hypertension",
        "score": pytest.approx(0.86),
        "tree_numbers": ["C14.907.489"],
        "threshold": pytest.approx(0.4),
    }


def test_options_choose_tags(client):
    def tag(**options):
        return names(client.post("/api/tag", json=ARTICLE | options))

    assert tag(top_k=2) == ["Hypertension", "Amlodipine"]
    assert tag(preset="precision") == tag(threshold=0.71) == ["Hypertension", "Amlodipine", "Female"]
    assert tag(threshold=0.85) == ["Hypertension"]
    assert tag(include=["C14.907"]) == ["Hypertension"]
    assert tag(exclude=["D006973"], check_tags=False) == ["Amlodipine"]


def test_evidence_points_at_the_words(client):
    tags = client.post("/api/tag", json=ARTICLE | {"evidence": True}).json()["tags"]
    evidence = tags[0]["evidence"]
    for word in [*evidence["words"], evidence["term"]]:
        assert ARTICLE[word["field"]][word["start"] : word["end"]].lower() == "hypertension"
    assert evidence["journal"] == 0.31
    assert evidence["neighbours"][0]["pmid"] == "31452104"


def test_many_articles_keep_their_order(client):
    articles = [{"title": "Heparin", "pmid": "1"}, {"abstract": "Mice."}, {"title": "nothing of note"}]
    response = client.post("/api/tag-many", json={"articles": articles})
    results = response.json()["results"]
    assert [[tag["name"] for tag in result["tags"]] for result in results] == [["Heparin"], ["Mice"], []]
    assert [result["pmid"] for result in results] == ["1", None, None]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"title": "  ", "abstract": ""}, 422, "no text to tag"),
        ({}, 422, "no text to tag"),
        ({"title": "x" * 2001}, 413, r"title has 2,001 characters; shorten it to at most 2,000"),
        ({"abstract": "x" * 20_001}, 413, "abstract has 20,001 characters"),
        ({"title": "x", "journal": "j" * 2001}, 413, "journal has 2,001"),
        ({"title": 7}, 422, "title: .*string"),
        ({"title": "x", "threshold": 2}, 422, "threshold: .*less than or equal to 1"),
        ({"title": "x", "top_k": 0}, 422, "top_k"),
        ({"title": "x", "tresholt": 0.5}, 422, "tresholt: Extra inputs"),
        ({"title": "x", "preset": "best"}, 422, "no preset 'best'.*precision, recall"),
        ({"title": "x", "include": ["Q99"]}, 422, "'Q99' is no place in MeSH 2024"),
        ({"title": "x", "exclude": ["D999999"]}, 422, "D999999 is not a descriptor"),
    ],
)
def test_what_cannot_be_tagged_is_said_in_a_sentence(client, body, status, sentence):
    assert re.search(sentence, problem(client.post("/api/tag", json=body), status))


def test_many_articles_have_limits_of_their_own():
    with limited(articles=2) as client:
        send = lambda articles: client.post("/api/tag-many", json={"articles": articles})  # noqa: E731
        assert "3 articles are too many" in problem(send([{"title": "x"}] * 3), 413)
        assert "`articles` is empty" in problem(send([]), 422)
        assert problem(send([{"title": "x"}, {}]), 422).startswith("Article 2: ")


def test_broken_json_is_refused(client):
    response = client.post("/api/tag", content=b"{", headers={"Content-Type": "application/json"})
    assert "JSON" in problem(response, 422)


def test_a_body_that_is_too_large_is_refused_declared_or_not():
    with limited(body_bytes=1000) as client:
        large = json.dumps({"title": "x" * 2000}).encode()
        assert "at most 0.001 MB" in problem(client.post("/api/tag", content=large), 413)
        pieces = client.post("/api/tag", content=iter([large[:800], large[800:]]))
        assert "at most 0.001 MB" in problem(pieces, 413)


def test_a_text_the_model_fails_on_spoils_no_other(tagger):
    gate = tagger.gate = threading.Event()
    with TestClient(create_app(tagger)) as client, ThreadPoolExecutor(8) as pool:
        titles = ["Mice", "poison", "Heparin", "Mice", "Neoplasms"]
        answers = [pool.submit(client.post, "/api/tag", json={"title": titles[0]})]
        assert tagger.started.wait(PATIENCE)
        answers += [pool.submit(client.post, "/api/tag", json={"title": title}) for title in titles[1:]]
        wait_for(client, waiting=4)
        gate.set()
        found = [answer.result() for answer in answers]
    assert [answer.status_code for answer in found] == [200, 500, 200, 200, 200]
    assert "failed on this text" in found[1].json()["detail"]
    assert [names(answer) for answer in found if answer.status_code == 200] == [
        ["Mice"],
        ["Heparin"],
        ["Mice"],
        ["Neoplasms"],
    ]


def wait_for(client, waiting):
    """Until so many articles are in the queue: they come from other threads."""
    wait_until(lambda: client.get("/api/health").json()["waiting"] == waiting, "the full queue")


def test_32_clients_at_once_get_their_own_tags(tagger):
    words = ["Hypertension", "Heparin", "Mice", "Neoplasms"]

    async def ask(client, number):
        body = {"title": words[number % 4], "abstract": f"Article {number}.", "pmid": str(number)}
        if number % 3 == 0:
            many = await client.post("/api/tag-many", json={"articles": [body, {"title": "Amlodipine"}]})
            first, second = many.json()["results"]
            assert [tag["name"] for tag in second["tags"]] == ["Amlodipine"]
            return first
        return (await client.post("/api/tag", json=body)).json()

    async def ask_all():
        app = create_app(tagger)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://kenmesh") as client:
                return await asyncio.gather(*(ask(client, number) for number in range(32)))

    for number, answer in enumerate(asyncio.run(ask_all())):
        assert answer["pmid"] == str(number)
        assert [tag["name"] for tag in answer["tags"]] == [words[number % 4]]
    assert len(tagger.batches) < 32, "articles that wait together should share a batch"


def test_a_full_queue_says_when_to_come_back(tagger):
    gate = tagger.gate = threading.Event()
    # One article is being tagged and two wait, which is as many as one client may have.
    with limited(tagger, batch=1, queue=3, client_queue=2) as client, ThreadPoolExecutor(4) as pool:
        first = pool.submit(client.post, "/api/tag", json={"title": "Mice"})
        assert tagger.started.wait(PATIENCE)
        others = [pool.submit(client.post, "/api/tag", json={"title": "Heparin"}) for _ in range(2)]
        wait_for(client, waiting=2)
        refused = client.post("/api/tag", json={"title": "x"})
        full = client.post("/api/tag-many", json={"articles": [{"title": "x"}] * 2})
        gate.set()
        assert "too many articles waiting" in problem(refused, 429)
        assert refused.headers["retry-after"] == "5"
        assert "queue is full" in problem(full, 503)
        assert names(first.result()) == ["Mice"]
        assert [names(other.result()) for other in others] == [["Heparin"], ["Heparin"]]
        assert names(client.post("/api/tag", json={"title": "Mice"})) == ["Mice"]


def test_who_waits_too_long_is_told_and_leaves_the_queue(tagger):
    gate = tagger.gate = threading.Event()
    with limited(tagger, seconds=0.2, batch=1) as client:
        answer = client.post("/api/tag-many", json={"articles": [{"title": "Mice"}] * 5})
        assert "not ready after 0.2 seconds" in problem(answer, 503)
        gate.set()
        assert names(client.post("/api/tag", json={"title": "Heparin"})) == ["Heparin"]
    assert sum(tagger.batches) <= 3, "articles nobody waits for any more should not be tagged"


def test_vocabulary_is_found_as_typed(client):
    def find(text, **options):
        return [row["name"] for row in client.get("/api/vocabulary", params={"q": text} | options).json()]

    assert find("hyper") == find("blood press") == find("HIGH") == ["Hypertension"]
    assert find("D009369") == find("d009369") == find("c04") == ["Neoplasms"]
    assert find("diseases") == ["Vascular Diseases", "Cardiovascular Diseases"]
    assert find("diseases", limit=1) == ["Vascular Diseases"]
    assert find("zzz") == find("  ") == find("(") == []
    assert "q: " in problem(client.get("/api/vocabulary"), 422)


def test_a_descriptor_tells_its_place_in_the_tree(client):
    found = client.get("/api/vocabulary/D006973").json()
    assert [[step["name"] for step in path] for path in found["paths"]] == [
        ["Cardiovascular Diseases", "Vascular Diseases", "Hypertension"]
    ]
    assert found["entry_terms"] == ["Blood Pressure, High"]
    assert found["categories"] == ["Diseases"] and not found["check_tag"]
    above = client.get("/api/vocabulary/D014652").json()
    assert [row["name"] for row in above["narrower"]] == ["Hypertension", "Thrombosis"]
    outside = client.get("/api/vocabulary/D005260").json()
    assert outside["paths"] == [] and outside["check_tag"]
    assert "D1 is no descriptor" in problem(client.get("/api/vocabulary/D1"), 404)


def test_journals_are_suggested(client):
    found = client.get("/api/journals", params={"q": "hyper"}).json()
    assert found == [
        {"name": "Journal of hypertension", "articles": 1},
        {"name": "Journal of human hypertension", "articles": 1},
    ]
    assert client.get("/api/journals", params={"q": "lancet"}).json() == []


def upload(client, data, name="file.jsonl"):
    return client.post("/api/articles", params={"name": name}, content=data)


def test_a_file_gives_its_articles_and_says_what_was_lost(client):
    rows = [json.dumps({"pmid": "1", "title": "One", "year": 2001}), "{broken", json.dumps({"title": "Two"})]
    for pack in (bytes, gzip.compress):
        found = upload(client, pack("\n".join(rows).encode())).json()
        assert [article["title"] for article in found["articles"]] == ["One", "Two"]
        assert found["articles"][0]["pmid"] == "1" and found["articles"][0]["year"] == 2001
        assert found["skipped"] == {"broken JSON": 1} and not found["more"]
        assert "file.jsonl, line 2" in found["examples"]["broken JSON"][0]


def test_files_have_limits(client):
    lines = "\n".join(json.dumps({"title": f"Number {n}"}) for n in range(5)).encode()
    with limited(file_articles=3, file_bytes=5000) as small:
        found = upload(small, lines).json()
        assert len(found["articles"]) == 3 and found["more"]
        assert "larger than 0.005 MB" in problem(upload(small, gzip.compress(b" " * 100_000)), 413)
        assert "at most 0.005 MB" in problem(upload(small, b"x" * 5001), 413)


def test_files_without_articles_are_refused(client):
    assert "is empty" in problem(upload(client, b"", "none.txt"), 422)
    assert "No article was found in odd.bin" in problem(upload(client, b"\0\1\2 odd", "odd.bin"), 422)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a"), io.BytesIO())
    assert "is an archive" in problem(upload(client, packed.getvalue(), "a.tar"), 422)


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("json", '"ui": "D006973"'),
        ("csv", "31452104,Amlodipine for hypertension,Journal of hypertension,,D006973,Hypertension,0.86"),
        ("ris", "KW  - Hypertension\r\n"),
        ("nbib", "MH  - Hypertension\n"),
        ("pubmed", '("Hypertension"[MeSH Terms])\nAND\n("Amlodipine"[MeSH Terms])\n'),
        ("ovid", "(exp Hypertension/)\nand\n(exp Amlodipine/)\n"),
    ],
)
def test_tags_are_exported(client, format, expected):
    tags = client.post("/api/tag", json=ARTICLE | {"evidence": True}).json()["tags"]
    response = client.post("/api/export", json={"format": format, "articles": [ARTICLE | {"tags": tags}]})
    assert response.status_code == 200 and expected in response.text
    if format == "json":
        assert response.json()[0]["tags"] == tags


def test_exports_that_make_no_sense_are_refused(client):
    def export(format, tags):
        return client.post("/api/export", json={"format": format, "articles": [ARTICLE | {"tags": tags}]})

    assert "no tag to search for" in problem(export("pubmed", []), 422)
    assert "format" in problem(export("docx", []), 422)
    assert "score" in problem(export("csv", [{"ui": "D1", "name": "x"}]), 422)
    odd = {"ui": "D1", "name": "x", "score": 1, "qualifiers": 5}
    assert "'qualifiers' must be a list" in problem(export("ris", [odd]), 422)


def test_major_topics_and_qualifiers_are_exported(client):
    tag = {"ui": "D006973", "name": "Hypertension", "score": 0.9, "tree_numbers": ["C14.907.489"]}
    tag |= {"major": True, "major_score": 0.8, "qualifiers": [{"name": "drug therapy", "major": True}]}
    for format, expected in {
        "nbib": "MH  - Hypertension/*drug therapy\n",
        "pubmed": '("Hypertension/drug therapy"[Majr])\n',
        "ovid": "(exp *Hypertension/dt)\n",
    }.items():
        body = {"format": format, "articles": [ARTICLE | {"tags": [tag]}]}
        assert expected in client.post("/api/export", json=body).text


def test_health_and_info(client):
    assert client.get("/api/health").json() == {"status": "ok", "waiting": 0}
    info = client.get("/api/info").json()
    assert (info["mesh_year"], info["descriptors"], info["journals"]) == (2024, 11, 3)
    assert info["presets"] == {"precision": 0.7, "recall": 0.06} and info["threshold"] == 0.4
    assert "D006801" in info["check_tags"] and info["limits"]["articles"] == 100


def test_a_server_whose_model_has_stopped_says_so(tagger):
    client = TestClient(create_app(tagger))
    assert "not running" in problem(client.get("/api/health"), 503)
    assert "not running" in problem(client.post("/api/tag", json=ARTICLE), 503)


def test_openapi_describes_every_route_and_its_errors(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/tag", "/api/tag-many", "/api/vocabulary", "/api/vocabulary/{ui}", "/api/health"} <= set(
        paths
    )
    assert {"200", "413", "422", "429", "503"} <= set(paths["/api/tag"]["post"]["responses"])


def test_the_page_asks_nothing_of_other_hosts(client):
    page = client.get("/")
    assert page.status_code == 200 and "default-src 'self'" in page.headers["content-security-policy"]
    for path in PAGE_FOLDER.iterdir():
        assert client.get(f"/{path.name}").status_code == 200
        text = path.read_text(encoding="utf-8")
        hosts = set(re.findall(r"https?://([\w.-]+)", text))
        # A link the reader may follow, and the name of the SVG format.
        assert hosts <= {"pubmed.ncbi.nlm.nih.gov", "www.w3.org"}, path.name
    assert client.get("/docs").status_code == 404


def test_examples_fit_the_limits():
    examples = json.loads((PAGE_FOLDER / "examples.json").read_text(encoding="utf-8"))
    assert len(examples) == 3
    for example in examples:
        assert example.keys() == {"name", "title", "abstract", "journal"}
        assert 100 < len(example["abstract"].split()) < 300
