"""The desk in a real browser: a review by keyboard alone, kills and reloads, two people, a phone, axe."""

import sys
import threading
from contextlib import closing

import httpx
import pytest
import uvicorn
from chromium import PHONE, BrowserPage, open_browser, page_faults, requested
from desk_load import DeskServer, free_port
from patience import PATIENCE, wait_until
from places import ROOT
from web_double import TaggerDouble

from kenmesh_hf.desk import Desk, keep_tags, open_collection, show_article, tag_again
from kenmesh_hf.reading import Article, write_articles
from kenmesh_hf.serving import DeskSettings, create_app

pytestmark = pytest.mark.browser

ABSTRACT = "Men and women with hypertension took amlodipine. Thrombosis was rare; heparin was not given."


@pytest.fixture
def server(tmp_path):
    command = [sys.executable, ROOT / "tests" / "desk_server.py", tmp_path / "review.sqlite"]
    with DeskServer(command, free_port()) as server:
        yield server


@pytest.fixture
def records(tmp_path):
    """20 records as PubMed exports them, each with four proposals, Hypertension and Thrombosis first."""
    path = tmp_path / "export.nbib"
    articles = [
        Article(f"Blood pressure, part {n}", ABSTRACT, pmid=str(500 + n), year=2020) for n in range(20)
    ]
    write_articles(articles, path)
    return path


@pytest.fixture(scope="module")
def browsers(tmp_path_factory):
    """Browsers of two people."""
    drivers = []
    try:
        drivers += [open_browser(tmp_path_factory.mktemp("profile")) for _ in range(2)]
        yield drivers
    finally:
        for driver in drivers:
            driver.quit()


class DeskPage(BrowserPage):
    """What a person does at the desk."""

    def visit(self, server, name=""):
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.prefer("")
        self.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        self.driver.get(f"http://127.0.0.1:{server.port}/desk/")
        self.run(
            "localStorage.clear(); if (arguments[0]) localStorage.setItem('kenmesh-name', arguments[0])", name
        )
        self.driver.get(f"http://127.0.0.1:{server.port}/desk/")
        wait_until(lambda: self.text("#who") == (name or "Your name…"))
        return self

    def shows(self, title):
        wait_until(lambda: self.text("#reading-title") == title and self.headings(), f"the article {title!r}")

    def headings(self):
        return self.texts("#proposals .name")

    def saved(self):
        wait_until(
            lambda: self.run("return localStorage.getItem('kenmesh-waiting')") in (None, "[]"), "saving"
        )

    def kept(self):
        return self.texts(".decision.kept .name")


def skip_articles(server, who, count):
    """Somebody skips the first articles, without a browser."""
    address = f"http://127.0.0.1:{server.port}/api/desk/articles"
    with httpx.Client(timeout=PATIENCE) as client:
        for number in range(1, count + 1):
            body = {"key": f"{who} skips {number}", "who": who, "version": 0, "action": "skip"}
            assert client.post(f"{address}/{number}/decisions", json=body).status_code == 200


@pytest.fixture
def ana(browsers, server):
    page = DeskPage(browsers[0]).visit(server)
    yield page
    assert not page_faults(page.driver)


@pytest.fixture
def ben(browsers, server):
    page = DeskPage(browsers[1]).visit(server, "Ben")
    yield page
    assert not page_faults(page.driver)


@pytest.fixture
def opened(ana, server, records):
    """Ana's page with the file opened and tagged."""
    ana.one("#file").send_keys(str(records))
    wait_until(lambda: ana.one("#name-dialog").is_displayed())
    ana.press(*"Ana", "ENTER")
    wait_until(lambda: server.get("/api/desk")["collections"])
    wait_until(lambda: server.get("/api/desk")["collections"][0]["tagged"] == 20)
    ana.shows("Blood pressure, part 0")
    return ana


def names(server, number, **wanted):
    """Names of an article's tags that are as wanted."""
    tags = server.get(f"/api/desk/articles/{number}")["tags"]
    return [tag["name"] for tag in tags if all(tag[key] == value for key, value in wanted.items())]


def test_a_whole_review_by_keyboard_alone_with_kills_and_reloads(opened, server):
    page = opened
    assert page.focused() == "tag-D006973"
    for number in range(1, 21):
        page.shows(f"Blood pressure, part {number - 1}")
        page.press("s" if number % 2 else "a", "j", "m")
        page.saved()
        if number == 4:
            page.press("d", *"cancer", "ENTER", "ESCAPE")
            wait_until(lambda: any(name.startswith("Neoplasms") for name in page.kept()))
            page.press("u", "r")
            wait_until(lambda: "Made again" in page.text("#news"))
        if number == 7:
            page.driver.refresh()
            page.shows("Blood pressure, part 0")
            page.press(*"nnnnnn")
            page.shows("Blood pressure, part 6")
            assert page.text("#who") == "Ana"
        if number == 11:
            server.kill()
            page.press("j", "s")
            wait_until(lambda: "Not saved yet" in page.text("#problem"))
            server.start()
            wait_until(lambda: not page.one("#problem").is_displayed())
            page.saved()
        page.press("l" if number == 20 else "f")
        page.saved()
    [counts] = server.get("/api/desk")["collections"]
    assert (counts["done"], counts["skipped"], counts["todo"]) == (19, 1, 0)
    for number in range(1, 21):
        first = {"decision": "struck" if number % 2 else "accepted"}
        assert "Hypertension" in names(server, number, **first), number
        assert names(server, number, major=True) == ["Thrombosis"], number
    assert "Neoplasms" in names(server, 4, kept=True) and "Amlodipine" in names(server, 11, decision="struck")
    assert all(url.startswith(f"http://127.0.0.1:{server.port}/") for url in requested(page.driver))


def test_what_was_not_saved_is_saved_by_the_next_visit(opened, server):
    server.kill()
    opened.press("s")
    wait_until(lambda: "Not saved yet" in opened.text("#problem"))
    opened.driver.get("about:blank")
    server.start()
    opened.driver.get(f"http://127.0.0.1:{server.port}/desk/")
    wait_until(lambda: names(server, 1, decision="struck") == ["Hypertension"])


def test_keys_are_shown_and_can_be_switched_off(opened, server):
    opened.press("?")
    wait_until(lambda: opened.one("#help-dialog").is_displayed())
    assert "make it a major topic" in opened.text("#keys")
    opened.one("#single-keys").click()
    opened.press("ESCAPE", "s")
    opened.one(".decision .strike").click()
    wait_until(lambda: names(server, 1, decision="struck") == ["Hypertension"])
    assert server.get("/api/desk/articles/1")["version"] == 1


def test_undo_waits_for_what_was_typed_just_before_and_goes_across_articles(opened, server):
    opened.press("s", "n")
    opened.shows("Blood pressure, part 1")
    opened.press("s", "u", "u")
    opened.shows("Blood pressure, part 0")
    wait_until(lambda: "Article 1 of 20" in opened.text("#place"))
    for number in (1, 2):
        wait_until(lambda number=number: names(server, number, decision="struck") == [])
    opened.press("r", "r")
    opened.shows("Blood pressure, part 1")
    wait_until(lambda: names(server, 2, decision="struck") == ["Hypertension"])
    assert names(server, 1, decision="struck") == ["Hypertension"]


def test_the_descriptor_chosen_with_the_arrows_is_added(opened, server):
    opened.press("d", *"ca")
    wait_until(lambda: len(opened.texts("#add-choices li")) == 2)
    opened.press("ARROW_DOWN", "ENTER")
    wait_until(lambda: names(server, 1, decision="accepted"))
    assert names(server, 1, decision="accepted") == ["Neoplasms"]
    opened.press("ESCAPE")
    assert opened.focused().startswith("tag-")


def test_escape_leads_from_every_field_back_to_the_headings(opened):
    for field in ("words", "descriptor", "add"):
        opened.run("document.getElementById(arguments[0]).focus()", field)
        opened.press("ESCAPE")
        assert opened.focused().startswith("tag-"), field


def test_redo_has_the_keys_that_other_programs_have(opened, server):
    opened.press("s", "j", "s", "u")
    wait_until(lambda: server.get("/api/desk/articles/1")["version"] == 3)
    opened.press_together("CONTROL", "SHIFT", "z")
    wait_until(lambda: server.get("/api/desk/articles/1")["version"] == 4)
    assert names(server, 1, decision="struck") == ["Hypertension", "Thrombosis"]
    opened.press_together("CONTROL", "z")
    wait_until(lambda: server.get("/api/desk/articles/1")["version"] == 5)
    assert names(server, 1, decision="struck") == ["Hypertension"]


def test_a_long_list_stays_where_it_is_while_much_changes(ana, server, tmp_path):
    articles = [Article(f"Heparin, part {n}", pmid=str(n + 1)) for n in range(350)]
    write_articles(articles, tmp_path / "long.nbib")
    ana.run("localStorage.setItem('kenmesh-name', 'Ana')")
    ana.one("#file").send_keys(str(tmp_path / "long.nbib"))
    wait_until(lambda: len(ana.all(".row-button")) == 100)
    wait_until(lambda: server.get("/api/desk")["collections"][0]["tagged"] == 350)
    ana.one("#more").click()
    wait_until(lambda: len(ana.all(".row-button")) == 200)
    ana.one("#row-150").click()
    ana.shows("Heparin, part 149")
    ana.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/changes*"]})
    skip_articles(server, "Ben", 250)
    ana.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    wait_until(lambda: ana.texts("#row-3 .row-state") == ["skipped"])
    assert len(ana.all(".row-button")) == 200
    ana.press("n")
    ana.shows("Heparin, part 150")


def test_who_works_through_what_is_to_do_misses_nothing(ana, server, tmp_path):
    articles = [Article(f"Heparin, part {n}", pmid=str(n + 1)) for n in range(150)]
    write_articles(articles, tmp_path / "long.nbib")
    ana.run("localStorage.setItem('kenmesh-name', 'Ana')")
    ana.one("#file").send_keys(str(tmp_path / "long.nbib"))
    wait_until(lambda: len(ana.all(".row-button")) == 100)
    wait_until(lambda: server.get("/api/desk")["collections"][0]["tagged"] == 150)
    ana.one("#state option[value=todo]").click()
    wait_until(lambda: ana.text("#total") == "150" and len(ana.all(".row-button")) == 100)
    skip_articles(server, "Ana", 90)
    wait_until(lambda: ana.texts("#row-90 .row-state") == ["skipped"])
    ana.one("#row-100").click()
    ana.shows("Heparin, part 99")
    ana.press("n")
    ana.shows("Heparin, part 100")
    assert "Article 101 of 150" in ana.text("#place")
    assert ana.texts(".row-title") == [article.title for article in articles]


def test_text_typed_before_the_next_article_is_there_is_no_command(opened):
    slow = {"offline": False, "latency": 700, "downloadThroughput": -1, "uploadThroughput": -1}
    opened.driver.execute_cdp_cmd("Network.enable", {})
    opened.driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    opened.press("f", "d", *"blood pressure, h")
    assert opened.one("#add").get_attribute("value") == "blood pressure, h"
    opened.press("ENTER")
    opened.shows("Blood pressure, part 1")
    wait_until(lambda: "Hypertension" in opened.kept())
    opened.press("ESCAPE", "f", "/", *"part 13")
    assert opened.one("#words").get_attribute("value") == "part 13"
    wait_until(lambda: opened.text("#total") == "1")
    opened.driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow | {"latency": 0})


def test_reasons_filters_and_handing_in(opened, server):
    opened.press("e")
    wait_until(lambda: opened.texts("#reading-abstract mark") == ["hypertension"])
    wait_until(lambda: "C14.907.489" in opened.text("#why-D006973"))
    opened.press("f", "/", *"part 13")
    wait_until(lambda: opened.text("#total") == "1")
    opened.one("#words").clear()
    opened.one("#words").send_keys(" ")
    opened.one("#state option[value=done]").click()
    wait_until(lambda: opened.texts(".row-title") == ["Blood pressure, part 0"])
    opened.one("#state option[value='']").click()
    opened.one("#descriptor").send_keys("blood pressure, h")
    wait_until(lambda: opened.texts("#descriptor-choices li"))
    opened.one("#descriptor").send_keys("\n")
    wait_until(lambda: opened.text("#total") == "20" and opened.one("#descriptor").get_attribute("value"))
    opened.one("#hand-in").click()
    opened.one("#format option[value=pubmed]").click()
    opened.one("#download").click()
    wait_until(lambda: opened.text("#hand-in-note") == "Saved as collection-1.txt.")
    opened.driver.get(opened.one("#report").get_attribute("href"))
    assert opened.text("h1") == "Agreement: export.nbib" and len(opened.all("svg")) >= 2
    assert opened.breaches() == []


def test_what_another_person_does_appears_and_conflicts_are_asked_about(opened, ben, server):
    ana = opened
    ben.shows("Blood pressure, part 0")
    ana.press("s")
    wait_until(lambda: "struck out by Ana" in ben.text("#proposals"))
    assert ben.text("#news") == "Ana changed this article."
    # Ben does not hear of what Ana does next.
    ben.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/changes*"]})
    ana.press("j", "s")
    ana.saved()
    ben.press("a")
    wait_until(lambda: ben.one("#conflict-dialog").is_displayed())
    assert "Ana changed this article after you saw it" in ben.text("#conflict-text")
    assert "struck out Thrombosis" in ben.text("#conflict-list")
    assert ben.breaches() == []
    ben.press("ENTER")
    wait_until(lambda: not ben.one("#conflict-dialog").is_displayed())
    assert names(server, 1, decision="struck") == ["Hypertension", "Thrombosis"]
    ana.press("j", "s")
    ana.saved()
    ben.press("a")
    wait_until(lambda: ben.one("#conflict-dialog").is_displayed())
    ben.press("TAB", "ENTER")
    wait_until(lambda: names(server, 1, decision="accepted") == ["Hypertension"])
    assert names(server, 1, decision="struck") == ["Thrombosis", "Amlodipine"]


def test_who_leaves_a_conflict_leaves_all_that_was_decided_on_the_same_sight(opened, ben, server):
    ben.shows("Blood pressure, part 0")
    ben.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/changes*"]})
    opened.press("s")
    opened.saved()
    keys = """for (const key of ["j", "s", "m", "f"]) {
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    }"""
    ben.run(keys)
    wait_until(lambda: ben.one("#conflict-dialog").is_displayed())
    wait_until(lambda: len(ben.run("return JSON.parse(localStorage.getItem('kenmesh-waiting'))")) == 3)
    ben.press("ENTER")
    ben.saved()
    article = server.get("/api/desk/articles/1")
    assert (article["version"], article["state"]) == (1, "todo")
    # Once it was looked at, decisions are made as ever; whoever insists makes all of them.
    opened.press("s")
    opened.saved()
    ben.press("p")
    ben.shows("Blood pressure, part 0")
    opened.press("s")
    opened.saved()
    ben.run(keys)
    wait_until(lambda: ben.one("#conflict-dialog").is_displayed())
    ben.press("TAB", "ENTER")
    wait_until(lambda: server.get("/api/desk/articles/1")["state"] == "done")


def test_what_was_decided_at_one_desk_never_comes_to_another(opened, server, tmp_path):
    server.kill()
    opened.press("s", "f")
    wait_until(lambda: "Not saved yet" in opened.text("#problem"))
    with closing(Desk(tmp_path / "other.sqlite")) as other:
        open_collection(other, "other.nbib", "Ben", [Article("Hypertension at another desk")])
        with other.writing() as connection:
            connection.execute("UPDATE collection SET opened_at = '2020-01-01T00:00:00+00:00'")
    server.command[-2] = str(tmp_path / "other.sqlite")
    server.start()
    wait_until(lambda: opened.texts("#reading-title") == ["Hypertension at another desk"])
    opened.saved()
    article = server.get("/api/desk/articles/1")
    assert (article["version"], article["state"]) == (0, "todo")


def test_what_another_model_says_appears(opened, server, tmp_path):
    with closing(Desk(tmp_path / "review.sqlite")) as desk:
        opened.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/changes*"]})
        tag = {"ui": "D051379", "name": "Mice", "score": 0.9, "threshold": 0.5, "tree_numbers": []}
        # The server tags with its own model whatever it finds untagged first.
        for count in range(100):
            tag_again(desk, 1, f"model {count}")
            keep_tags(desk, f"model {count}", [(1, [tag], None)])
            if show_article(desk, 1)["model"] == f"model {count}":
                break
        opened.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        wait_until(lambda: opened.headings() == ["Mice"])


@pytest.fixture
def guarded(tmp_path):
    """Address of a desk with a token, and what was decided at it."""
    port = free_port()
    app = create_app(TaggerDouble(), desk=DeskSettings(str(tmp_path / "guarded.sqlite"), token="secret"))
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(PATIENCE)


def test_what_was_decided_without_the_token_is_saved_once_it_is_given(ana, guarded, records):
    ana.driver.get(f"{guarded}/desk/?token=secret")
    ana.run("localStorage.setItem('kenmesh-name', 'Ana')")
    ana.one("#file").send_keys(str(records))
    ana.shows("Blood pressure, part 0")
    # As when the server is started again, with another token.
    ana.driver.delete_all_cookies()
    ana.press("s")
    wait_until(lambda: "Not saved yet. This desk needs its token" in ana.text("#problem"))
    ana.driver.get(f"{guarded}/desk/?token=secret")
    ana.shows("Blood pressure, part 0")
    ana.saved()
    wait_until(lambda: "struck out by Ana" in ana.text("#proposals"))


def test_a_link_with_the_token_on_another_page_leads_to_the_desk(ana, server, guarded):
    # Another site to the browser, which knows nothing of ports: a message in a web mail, say.
    ana.driver.get(f"http://localhost:{server.port}/desk/")
    ana.run("location.href = arguments[0]", f"{guarded}/desk/?token=secret")
    wait_until(lambda: ana.driver.current_url.startswith(guarded))
    wait_until(lambda: ana.all("#nothing"))
    assert ana.text("h1") == "KenMeSH desk" and "token" not in ana.driver.current_url


def test_a_phone_shows_everything_without_sideways_scrolling(opened, browsers):
    opened.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    width = "return document.documentElement.scrollWidth"
    opened.one(".decision .tag").click()
    wait_until(lambda: "C14" in opened.text("#why-D006973"))
    assert opened.run(width) <= 360
    opened.one(".decision .accept").click()
    wait_until(lambda: "accepted by Ana" in opened.text("#proposals"))
    small = [
        button.get_attribute("id")
        for button in opened.all("main button, header button")
        if 0 < button.size["height"] < 44
    ]
    assert small == []
    opened.one("#hand-in").click()
    assert opened.run(width) <= 360 and opened.breaches() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened, scheme):
    opened.prefer(scheme)
    opened.press("s", "j", "a", "j", "m", "e")
    wait_until(lambda: "Place in MeSH" in opened.text("#proposals"))
    opened.saved()
    assert opened.breaches() == []
    opened.press("d", *"ca")
    wait_until(lambda: opened.texts("#add-choices li"))
    assert opened.breaches() == []
    opened.press("ESCAPE", "ESCAPE", "?")
    wait_until(lambda: opened.one("#help-dialog").is_displayed())
    assert opened.breaches() == []
    opened.press("ESCAPE")
    opened.one("#hand-in").click()
    assert opened.breaches() == []
    opened.driver.get(opened.one("#report").get_attribute("href"))
    assert opened.text("h1") == "Agreement: export.nbib" and opened.breaches() == []


def test_an_empty_desk_is_accessible_and_bad_files_are_explained(ana, tmp_path):
    assert ana.one("#nothing").is_displayed() and ana.breaches() == []
    (tmp_path / "odd.bin").write_bytes(b"\0\1 nothing")
    ana.one("#file").send_keys(str(tmp_path / "odd.bin"))
    wait_until(lambda: ana.one("#name-dialog").is_displayed())
    assert ana.breaches() == []
    ana.press(*"Ana", "ENTER")
    wait_until(lambda: "No article was found in odd.bin" in ana.text("#problem"))
