"""The web page in a real browser: type, tag, click a tag, see its words, change the threshold, download."""

import csv
import json
import threading

import pytest
import uvicorn
from chromium import PHONE, BrowserPage, open_browser, page_faults, requested
from patience import wait_until
from web_double import TaggerDouble

from kenmesh_hf.serving.app import create_app

pytestmark = pytest.mark.browser

TITLE = "Amlodipine 🧬 for hypertension"
ABSTRACT = "Men and women with hypertension took amlodipine. Cancer was rare."


@pytest.fixture(scope="module")
def address():
    """A running server."""
    config = uvicorn.Config(create_app(TaggerDouble()), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, address, tmp_path):
    """The freshly loaded page, downloads going to an empty folder."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    Page(browser).prefer("")
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    browser.get(address)
    page = Page(browser)
    wait_until(lambda: page.all(".example"))
    yield page
    assert not page_faults(browser)


class Page(BrowserPage):
    """What a person does with the page."""

    def write(self, selector, text):
        """Typing; characters the driver cannot press are pasted."""
        field = self.one(selector)
        field.clear()
        if text.isascii():
            field.send_keys(text)
        else:
            event = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
            self.run(event, field, text)

    def tag(self, title=TITLE, abstract=ABSTRACT, journal="Journal of hypertension"):
        for name, text in {"title": title, "abstract": abstract, "journal": journal}.items():
            self.write(f"#{name}", text)
        self.one("#tag").click()

    def tags(self):
        return self.texts(".tag .name")

    def marks(self, field):
        return self.texts(f"#reading-{field} mark")

    def set_threshold(self, value):
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
        self.run(script, self.one("#threshold"), value)


@pytest.fixture
def tagged(page):
    page.tag()
    wait_until(page.tags)
    return page


def test_typed_text_gets_tags_by_category(tagged):
    assert tagged.tags() == ["Hypertension", "Neoplasms", "Amlodipine"]
    assert tagged.texts(".category h3") == ["Diseases C", "Chemicals and Drugs D"]
    assert tagged.text("#count") == "3 of the 11 best descriptors"
    assert tagged.text("#reading-title") == TITLE and tagged.text("#reading-abstract") == ABSTRACT
    widths = [bar.value_of_css_property("width") for bar in tagged.all(".fill")]
    assert widths == sorted(widths, reverse=True) != [widths[0]] * 3


def test_a_clicked_tag_shows_what_it_rests_on(tagged):
    tagged.one("#tag-D006973").click()
    assert tagged.marks("title") == tagged.marks("abstract") == ["hypertension"]
    wait_until(lambda: "C14.907.489" in tagged.text("#why-D006973"))
    why = tagged.text("#why-D006973")
    assert "“hypertension” in the title" in why and "31452104" in why
    assert "31% of the articles of Journal of hypertension have it 0.05" in why
    # What the score would lose without each: a word, a word against it, a similar article.
    assert "hypertension 0.50" in why and "trial −0.07" in why and "31452104 0.03" in why
    assert "Cardiovascular Diseases" in why and "Vascular Diseases" in why
    link = tagged.one("#why-D006973 a").get_attribute("href")
    assert link == "https://pubmed.ncbi.nlm.nih.gov/31452104/"
    tagged.one("#tag-D017311").click()
    assert tagged.marks("title") == ["Amlodipine"] and tagged.marks("abstract") == ["amlodipine"]
    assert not tagged.one("#why-D006973").is_displayed()
    tagged.one("#tag-D017311").click()
    assert tagged.marks("title") == []


def test_major_topics_have_a_star_and_qualifiers_stand_behind_the_name(page, tmp_path):
    page.tag(title=f"{TITLE}, starred")
    wait_until(page.tags)
    assert page.tags() == ["Hypertension/drug therapy★", "Neoplasms", "Amlodipine★"]
    assert page.one("#tag-D006973 .star").get_attribute("aria-label") == "major topic"
    page.one("#tag-D006973").click()
    wait_until(lambda: "Under drug therapy" in page.text("#why-D006973"))
    why = page.text("#why-D006973")
    assert "It stands in the title; 15 of 20 similar articles with this heading have it as one 0.80" in why
    assert "9 of 12 similar articles with this heading have it; words “amlodipine” 0.62" in why
    page.run("document.getElementById('format').value = 'nbib'")
    page.one("#download").click()
    wait_until(lambda: list(tmp_path.glob("*.nbib")))
    assert "MH  - Hypertension/*drug therapy" in next(tmp_path.glob("*.nbib")).read_text()


def test_stronger_words_are_darker(page):
    page.tag(abstract="Injury, wound and, again, injury; trauma.", title="")
    wait_until(page.tags)
    page.one("#tag-D014947").click()
    shades = [
        float(page.run("return arguments[0].style.getPropertyValue('--shade')", mark))
        for mark in page.all("#reading mark")
    ]
    assert shades == [1.0, 0.5, 1.0, 0.333]


def test_threshold_presets_and_check_tags_answer_at_once(tagged):
    tagged.set_threshold(0.81)
    assert tagged.tags() == ["Hypertension", "Neoplasms"]
    assert tagged.text("#threshold-value") == "0.81"
    tagged.one("#cut-recall").click()
    assert len(tagged.tags()) == 11 and "Humans" in tagged.tags()
    tagged.one("#check-tags").click()
    assert "Humans" not in tagged.tags() and "Mice" not in tagged.tags()
    tagged.set_threshold(0.99)
    assert tagged.tags() == [] and "No descriptor is left" in tagged.text("#count")


def test_branches_are_shown_and_hidden(tagged):
    tagged.write("#branch", "Diseases [C]")
    tagged.one("#only").click()
    wait_until(lambda: tagged.tags() == ["Hypertension", "Neoplasms"])
    tagged.write("#branch", "C14")
    tagged.one("#without").click()
    wait_until(lambda: tagged.tags() == ["Neoplasms"])
    tagged.write("#branch", "Elbow")
    tagged.one("#only").click()
    wait_until(lambda: "no branch or descriptor “Elbow”" in tagged.text("#branch-problem"))
    for _ in range(2):
        tagged.one("#branches button").click()
    assert len(tagged.tags()) == 3
    tagged.one("#tag-D009369").click()
    tagged.all("#why-D009369 button")[-1].click()
    assert tagged.tags() == ["Hypertension", "Amlodipine"]


def downloaded(folder, name):
    path = folder / name
    wait_until(path.exists)
    return path.read_bytes().decode()


def test_shown_tags_are_downloaded(tagged, tmp_path):
    tagged.set_threshold(0.81)
    texts = {}
    for format, name in {"json": "mesh-tags.json", "csv": "mesh-tags.csv", "pubmed": "mesh-tags.txt"}.items():
        tagged.one(f"#format option[value={format}]").click()
        tagged.one("#download").click()
        texts[format] = downloaded(tmp_path, name)
    [article] = json.loads(texts["json"])
    assert article["title"] == TITLE and [tag["name"] for tag in article["tags"]] == [
        "Hypertension",
        "Neoplasms",
    ]
    assert [row["ui"] for row in csv.DictReader(texts["csv"].splitlines())] == ["D006973", "D009369"]
    assert texts["pubmed"] == '("Hypertension"[MeSH Terms] OR "Neoplasms"[MeSH Terms])\n'


def test_tags_are_copied(tagged, browser, address):
    permission = {"origin": address, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", permission)
    tagged.one("#format option[value=ovid]").click()
    tagged.one("#copy").click()
    wait_until(lambda: tagged.text("#export-note") == "Copied.")
    copied = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == "(exp Hypertension/ or exp Neoplasms/)\nand\n(exp Amlodipine/)\n"


def test_examples_are_one_click_away(page):
    for example in range(3):
        if example:
            page.one("#edit").click()
        page.all(".example")[example].click()
        wait_until(lambda: page.one("#reading").is_displayed())
        assert page.tags()


def test_journals_are_suggested(page):
    page.write("#journal", "hyper")
    wait_until(lambda: len(page.all("#journal-names option")) == 2)
    assert page.one("#journal-names option").get_attribute("value") == "Journal of hypertension"


def test_an_article_of_a_file_is_picked_by_its_pmid(page, tmp_path):
    path = tmp_path / "citations.jsonl"
    rows = [{"pmid": str(100 + n), "title": f"Heparin, part {n}", "year": 2020} for n in range(30)]
    path.write_text("\n".join([*map(json.dumps, rows), "{broken"]))
    page.one("#file").send_keys(str(path))
    wait_until(lambda: page.text("#loaded-note") == "citations.jsonl: 30 articles, 1 record not readable")
    page.write("#loaded-filter", "117")
    [option] = page.all("#loaded-list option")
    option.click()
    assert page.one("#title").get_attribute("value") == "Heparin, part 17"
    page.one("#tag").click()
    wait_until(lambda: page.tags() == ["Heparin"])
    page.one("#format option[value=ris]").click()
    page.one("#download").click()
    text = downloaded(tmp_path, "mesh-tags.ris")
    assert "AN  - 117\r\n" in text and "KW  - Heparin\r\n" in text and "PY  - 2020\r\n" in text


def test_a_file_without_articles_is_explained(page, tmp_path):
    path = tmp_path / "odd.bin"
    path.write_bytes(b"\0\1 nothing")
    page.one("#file").send_keys(str(path))
    wait_until(lambda: "No article was found in odd.bin" in page.text("#problem"))


def test_empty_and_huge_input_are_explained(page):
    page.one("#tag").click()
    assert "There is no text to tag" in page.text("#problem")
    page.run("document.getElementById('abstract').value = 'word '.repeat(5000)")
    page.one("#tag").click()
    assert page.text("#problem") == "The abstract has 25,000 characters; shorten it to at most 20,000."
    page.write("#abstract", "Mice.")
    page.one("#tag").click()
    wait_until(lambda: page.tags() == ["Mice"])
    assert not page.one("#problem").is_displayed()


def test_everything_works_from_the_keyboard(page):
    page.run("document.getElementById('title').focus()")
    page.press(*"Hypertension", "TAB", *"Heparin in mice", "TAB", "TAB", "ENTER")
    wait_until(page.tags)
    focused = "return document.activeElement.id"
    assert page.run(focused) == "results"
    for _ in range(30):
        if page.run(focused).startswith("tag-"):
            break
        page.press("TAB")
    assert page.run(focused) == "tag-D006973"
    page.press("ENTER")
    assert page.marks("title") == ["Hypertension"]
    page.press("ARROW_DOWN", "SPACE")
    assert page.run(focused) == "tag-D006493" and page.marks("abstract") == ["Heparin"]
    page.press("ESCAPE")
    assert page.marks("abstract") == []


def test_a_phone_shows_everything_without_sideways_scrolling(page, browser):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.tag(title="x" * 300, abstract="Injury, injuries, wound, wounds, trauma and traumas of humans.")
    wait_until(page.tags)
    width = "return document.documentElement.scrollWidth"
    page.one("#tag-D014947").click()
    wait_until(lambda: "C26" in page.text("#why-D014947"))
    # Six that speak for it, one against.
    assert len(page.all("#why-D014947 .words mark")) == 7
    assert page.run(width) <= 360
    # One of the longest tree numbers there are.
    page.one("#tag-D006801").click()
    wait_until(lambda: "B01.050.150.900" in page.text("#why-D006801"))
    assert page.run(width) <= 360
    assert min(tag.size["height"] for tag in page.all(".tag")) >= 44


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, scheme):
    page.prefer(scheme)
    assert page.breaches() == []
    page.tag(TITLE + " starred")
    wait_until(page.tags)
    for tag in ("D006973", "D017311"):
        page.one(f"#tag-{tag}").click()
        wait_until(lambda tag=tag: "Place in MeSH" in page.text(f"#why-{tag}"))
        assert page.breaches() == []
    page.one("#branch").send_keys("C14")
    page.one("#only").click()
    wait_until(lambda: page.texts("#branches li"))
    page.one("summary").click()
    assert page.breaches() == []
    page.one("#edit").click()
    page.write("#title", "")
    page.write("#abstract", "")
    page.one("#tag").click()
    wait_until(lambda: page.one("#problem").is_displayed())
    assert page.breaches() == []


def test_nothing_is_asked_of_other_hosts(tagged, browser, address):
    tagged.one("#tag-D006973").click()
    wait_until(lambda: "C14" in tagged.text("#why-D006973"))
    asked = requested(browser)
    assert asked and all(url.startswith(address) for url in asked)
