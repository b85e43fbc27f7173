"""Who may talk to a desk: forged hosts and origins, frames, tokens."""

import re

import pytest
from fastapi.testclient import TestClient
from web_double import TaggerDouble

from kenmesh_hf.serving import DeskSettings
from kenmesh_hf.serving.app import create_app, desk_settings, serve
from kenmesh_hf.serving.desk_guard import is_local

HERE = "http://127.0.0.1:8000"
TOKEN = "a token that nobody guesses"
QUOTED = f'"{TOKEN}"'


@pytest.fixture
def client(tmp_path):
    with TestClient(
        create_app(TaggerDouble(), desk=DeskSettings(str(tmp_path / "d.sqlite"))), base_url=HERE
    ) as client:
        yield client


@pytest.fixture
def remote(tmp_path):
    settings = DeskSettings(str(tmp_path / "d.sqlite"), token=TOKEN)
    with TestClient(create_app(TaggerDouble(), desk=settings), base_url="http://library.example") as client:
        yield client


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9", "LOCALHOST", "[::1]:8000", "127.0.0.1"])
def test_names_of_this_machine_are_answered(client, host):
    assert client.get("/api/desk", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "",
        "[::1",
        "localhost@evil.example",
        "0.0.0.0",
    ],
)
@pytest.mark.parametrize("path", ["/api/desk", "/desk/", "/", "/api/info"])
def test_other_names_are_refused(client, host, path):
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 421 and "names of this machine" in answer.json()["detail"]


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8000", "file://", "http://["],
)
def test_other_pages_can_neither_write_nor_read(client, origin):
    for send in (client.get, client.post, client.delete, client.options):
        answer = send("/api/desk/collections?who=x&name=y", headers={"Origin": origin})
        assert answer.status_code == 403, answer.text
        assert "access-control-allow-origin" not in answer.headers


def test_the_name_that_is_listened_to_is_answered(tmp_path):
    settings = desk_settings(tmp_path / "d.sqlite", TaggerDouble(), "127.0.0.2")
    with TestClient(create_app(TaggerDouble(), desk=settings), base_url="http://127.0.0.2:8000") as client:
        assert client.get("/api/desk").status_code == 200
        assert client.get("/api/desk", headers={"Host": "127.0.0.3"}).status_code == 421


def test_the_desk_is_there_without_the_slash_too(client):
    answer = client.get("/desk")
    assert answer.status_code == 200 and answer.url.path == "/desk/" and "KenMeSH desk" in answer.text


def test_our_own_page_may(client):
    answer = client.post("/api/desk/collections/1/undo", json={"who": "Ana"}, headers={"Origin": HERE})
    assert answer.status_code == 404


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_sends_for_another_site_is_refused(client, site):
    mode = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert client.get("/api/desk", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get("/api/desk", headers=mode).status_code == 403
    assert client.post("/desk/", headers=mode).status_code == 403
    assert (
        client.get(
            "/desk/index.html", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        ).status_code
        == 403
    )
    # A link to the desk may be followed.
    assert client.get("/desk/", headers=mode).status_code == 200


def test_every_answer_forbids_frames_and_foreign_scripts(client):
    for path in ("/desk/", "/api/desk", "/api/desk/articles/1", "/"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert (
            "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        )
        assert headers["x-frame-options"] == "DENY"


def test_the_pages_of_the_desk_have_no_inline_script_or_style(client):
    page = client.get("/desk/").text
    assert '<script type="module" src=' in page
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", page)


def test_on_a_network_nobody_comes_in_without_the_token(remote):
    for path in ("/api/desk", "/desk/", "/", "/style.css", "/api/info", "/openapi.json"):
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Cookie": "kenmesh_desk=wrong"},
            {"Authorization": TOKEN},
        ):
            answer = remote.get(path, headers=headers)
            assert answer.status_code == 401 and "needs its token" in answer.json()["detail"]
    assert remote.get("/desk/?token=wrong").status_code == 401
    assert remote.post("/api/desk/collections?who=a&token=x", content=b"").status_code == 401


def test_the_token_in_the_address_becomes_a_cookie(remote):
    answer = remote.get("/desk/", params={"token": TOKEN, "collection": "3"}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/desk/?collection=3"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie
    assert remote.get("/api/desk").status_code == 200
    foreign = remote.post(
        "/api/desk/collections/1/undo", json={"who": "A"}, headers={"Origin": "http://evil.example"}
    )
    assert foreign.status_code == 403


def test_cookies_of_other_programs_lock_nobody_out(remote):
    for other in ("a b=c d", 'x={"y": [1, 2]}', "=", "kenmesh", "ä=ö", 'q="'):
        for cookie in (f"{other}; kenmesh_desk={QUOTED}", f"kenmesh_desk={QUOTED}; {other}"):
            answer = remote.get("/api/desk", headers={"Cookie": cookie.encode()})
            assert answer.status_code == 200, cookie


def test_programs_give_the_token_as_a_bearer(remote):
    assert remote.get("/api/desk", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_token_is_made_for_addresses_that_others_reach(tmp_path, monkeypatch):
    assert desk_settings(tmp_path / "d", None, "127.0.0.1").token is None
    first, second = (desk_settings(tmp_path / "d", None, "0.0.0.0") for _ in range(2))
    assert first.token and first.token != second.token and len(first.token) >= 32
    monkeypatch.setenv("KENMESH_DESK_TOKEN", "mine")
    assert desk_settings(tmp_path / "d", TaggerDouble(), "::").token == "mine"


def test_the_address_that_is_printed_leads_in_whatever_the_token_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KENMESH_DESK_TOKEN", "a+b & c%d=ä;#")
    apps = []
    monkeypatch.setattr("uvicorn.run", lambda app, **options: apps.append(app))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    serve(TaggerDouble(), host="0.0.0.0", desk=tmp_path / "d.sqlite")
    address = re.search(r"is at http://0\.0\.0\.0:8000(/desk/\?\S+)\n", capsys.readouterr().out)[1]
    with TestClient(apps[0], base_url="http://library.example") as client:
        assert client.get(address).status_code == 200
        assert client.get("/api/desk").status_code == 200


def test_which_addresses_are_of_this_machine_only():
    assert all(map(is_local, ("127.0.0.1", "127.0.0.2", "localhost", "::1", "[::1]")))
    assert not any(map(is_local, ("0.0.0.0", "::", "192.168.1.2", "library.example", "")))
