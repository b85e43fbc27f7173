"""The report of agreement: its figures by hand, its page, and the commands."""

import csv
import json
import re
from contextlib import closing
from xml.etree import ElementTree

import pytest

from kenmesh_hf.commands import main
from kenmesh_hf.desk import (
    Decision,
    Desk,
    decide,
    hand_in,
    keep_tags,
    list_collections,
    open_collection,
    render_report,
    report_lines,
    score_agreement,
)
from kenmesh_hf.reading import Article, read_articles

ZINC, IRON, LEAD = ("D015032", "Zinc"), ("D007501", "Iron"), ("D007854", 'Lead <&> "it"')


def said(named, score, **more):
    ui, name = named
    return {"ui": ui, "name": name, "score": score, "threshold": 0.5, "tree_numbers": ["D01"]} | more


@pytest.fixture
def desk(tmp_path):
    """Three articles with Zinc and Iron proposed and Lead a suggestion; two are done."""
    with closing(Desk(tmp_path / "review.sqlite")) as desk:
        open_collection(desk, "export.ris", "Ana", [Article(f"Title {n}", pmid=str(n)) for n in (1, 2, 3)])
        tags = [
            said(
                ZINC,
                0.95,
                major=True,
                qualifiers=[{"ui": "Q000627", "name": "therapeutic use", "major": False}],
            ),
            said(IRON, 0.55, major=False, qualifiers=[]),
            said(LEAD, 0.15, major=False, qualifiers=[]),
        ]
        keep_tags(desk, "model-1", [(number, tags, None) for number in (1, 2, 3)])
        steps = [
            (1, "strike", IRON[0], {}),
            (1, "accept", LEAD[0], {}),
            (1, "major", ZINC[0], {"major": False}),
            (1, "qualify", ZINC[0], {"qualifiers": []}),
            (1, "done", None, {}),
            (2, "strike", IRON[0], {}),
            (2, "add", "D999", {"name": "Other"}),
            (2, "done", None, {}),
        ]
        versions = {1: 0, 2: 0}
        for place, (number, action, ui, more) in enumerate(steps):
            decision = Decision(
                f"step {place}", "Ana" if place else "Ben", versions[number], action, ui, **more
            )
            versions[number] = decide(desk, number, decision)["version"]
        yield desk


def test_figures_are_those_counted_by_hand(desk):
    report = score_agreement(desk)
    assert report["articles"] == {"todo": 1, "done": 2, "skipped": 0}
    # Zinc twice of Zinc and Iron twice; given are Zinc, Lead, Zinc, Other.
    assert (report["proposed"], report["kept"], report["agreed"]) == (4, 4, 2)
    assert (report["precision"], report["recall"], report["f1"]) == (0.5, 0.5, 0.5)
    assert report["struck"] == [{"ui": IRON[0], "name": "Iron", "articles": 2, "of": 2}]
    assert [(row["name"], row["articles"]) for row in report["added"]] == [(LEAD[1], 1), ("Other", 1)]
    assert "favours the model that proposed" in report["note"]
    assert report["people"] == {"Ana": 7, "Ben": 1} and report["models"] == {"model-1": 3}
    # Said to be major twice, decided so once; the qualifier was taken away once.
    assert (report["major"]["precision"], report["major"]["recall"]) == (0.5, 1.0)
    assert (report["qualifiers"]["agreed"], report["qualifiers"]["proposed"]) == (1, 2)
    kept = {row["from"]: row["kept"] for row in report["by_score"]}
    assert kept[0.9] == 1.0 and kept[0.5] == 0.0 and kept[0.1] == 0.5 and kept[0.2] is None


def test_an_empty_desk_has_a_report_too(tmp_path):
    with closing(Desk(tmp_path / "empty.sqlite")) as empty:
        report = score_agreement(empty)
        assert report["articles"]["done"] == 0 and report["f1"] == 0
        assert "Nothing is done yet" in render_report(report)
        assert report_lines(report)[0] == "0 articles done, 0 skipped, 0 to do"


def test_the_page_is_whole_and_shows_every_figure(desk):
    page = render_report(score_agreement(desk), ["/style.css"])
    assert "<style" not in page and "<script" not in page and ' style="' not in page
    assert "favours the model that proposed" in page
    assert "0.500" in page and "Lead &lt;&amp;&gt;" in page and "<&>" not in page
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 4
    for plot in plots:
        assert ElementTree.fromstring(plot).get("aria-label")
    assert "<style>" in render_report(score_agreement(desk))


def test_no_title_becomes_a_formula_of_a_spreadsheet(tmp_path):
    with closing(Desk(tmp_path / "odd.sqlite")) as odd:
        titles = ['=HYPERLINK("http://evil.example")', "+1", "-omics", "@SUM(A1)", "A=1"]
        open_collection(
            odd, "odd.ris", "Ana", [Article(title, pmid=str(n)) for n, title in enumerate(titles)]
        )
        rows = csv.reader("".join(hand_in(odd, "csv", only_done=False)).splitlines())
        assert [row[1] for row in rows] == ["title", *(f"'{title}" for title in titles[:4]), "A=1"]


def run(*arguments, capsys):
    code = main(["desk", *map(str, arguments)])
    return code, capsys.readouterr()


def test_commands_report_export_and_back_up(desk, tmp_path, capsys):
    code, told = run("report", desk.path, "--out", tmp_path / "agreement.html", capsys=capsys)
    assert "favours the model that proposed" in told.out
    assert code == 0 and "precision 0.500" in told.out and "struck most: Iron 2" in told.out
    assert "</svg>" in (tmp_path / "agreement.html").read_text(encoding="utf-8")
    code, told = run("report", desk.path, "--json", "--collection", "export.ris", capsys=capsys)
    assert json.loads(told.out)["agreed"] == 2
    code, told = run("export", desk.path, "--out", tmp_path / "done.nbib", capsys=capsys)
    assert code == 0 and [a.pmid for a in read_articles(tmp_path / "done.nbib")] == ["1", "2"]
    code, told = run("export", desk.path, "--out", tmp_path / "DONE.RIS", capsys=capsys)
    assert code == 0 and (tmp_path / "DONE.RIS").read_text(encoding="utf-8").startswith("TY  - ")
    code, told = run("export", desk.path, "--format", "pubmed", "--all", capsys=capsys)
    assert code == 0 and '"Zinc' in told.out
    assert run("backup", desk.path, tmp_path / "copy.sqlite", capsys=capsys)[0] == 0
    assert len(list(read_articles(tmp_path / "copy.sqlite"))) == 2


def test_files_are_put_on_a_desk_by_command(tmp_path, capsys):
    path = tmp_path / "two.jsonl"
    path.write_text('{"pmid": "1", "title": "One"}\n{broken\n', encoding="utf-8")
    code, told = run("open", tmp_path / "new.sqlite", path, "--who", "Ana", capsys=capsys)
    assert code == 3 and "two.jsonl: 1 article on the desk" in told.out and "broken JSON" in told.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["export", "{desk}", "--collection", "none"], "no collection 'none' on this desk; it has 1"),
        (["export", "{desk}", "--format", "docx"], "Unknown format 'docx'"),
        (["export", "{folder}/missing.sqlite"], "There is no desk"),
        (["export", "{desk}", "--out", "{folder}/done.jsonl.gz"], "would not be compressed"),
        (["backup", "{desk}", "{desk}"], "already there"),
        (["open", "{desk}", "{folder}/letter.txt"], "letter.txt: the format was not recognised"),
        (["open", "{desk}", "{folder}/empty.txt"], "no article to put on the desk in"),
        (["open", "{desk}", "{folder}/one.jsonl", "{folder}/none.jsonl"], "nothing was put on the desk"),
        (["open", "{folder}/letter.txt", "{folder}/one.jsonl"], "cannot be opened as a desk"),
        (["export", "{folder}"], "There is no desk"),
        (["report", "{desk}", "--out", "{folder}/none/page.html"], "none/page.html"),
    ],
)
def test_what_is_wrong_is_one_sentence(desk, tmp_path, capsys, arguments, sentence):
    for name, text in {"letter.txt": "Dear Sir,", "empty.txt": "", "one.jsonl": '{"title": "One"}'}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    filled = [text.format(desk=desk.path, folder=tmp_path) for text in arguments]
    code, told = run(*filled, capsys=capsys)
    assert code == 1 and sentence in told.err and "Traceback" not in told.err
    assert len(list_collections(desk)) == 1
