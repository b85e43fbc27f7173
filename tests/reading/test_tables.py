"""JSON Lines, JSON, CSV and TSV."""

import json

import pytest
from places import DATA

from kenmesh_hf.reading import Article, Heading, Qualifier, ReadReport, read_articles, write_articles


def read(tmp_path, text, **options):
    path = tmp_path / "a"
    path.write_bytes(text.encode())
    report = ReadReport()
    return list(read_articles(path, report=report, **options)), report


def test_jsonl_skips_only_the_bad_lines(tmp_path):
    good = [json.dumps({"pmid": str(n), "title": f"T{n}"}) for n in range(3)]
    unfit = ["[1]", '{"title": 3.5}', '{"title": "A", "mesh": 7}', '{"title": "A", "year": 1e999}', "{}"]
    bad = ['{"title": "cut', *unfit, '{"pmid": "1", "title": "again"}', "[" * 100_000]
    articles, report = read(tmp_path, "\n".join([good[0], *bad, "", good[1], good[2]]), format="jsonl")
    assert [article.title for article in articles] == ["T0", "again", "T2"]
    assert report.skipped == {"broken JSON": 2, "not an article": 5, "duplicate PMID": 1}
    assert report.examples["broken JSON"][0].split(" (")[0].endswith("line 2")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("many", [True, False])
def test_json_lists_and_single_objects(tmp_path, indent, many):
    rows = [{"title": "Ä" * 50, "abstract": '"documents" are [ ] nothing'}, {"title": "B"}]
    articles, report = read(tmp_path, json.dumps(rows if many else rows[0], indent=indent))
    assert [article.title for article in articles] == (["Ä" * 50, "B"] if many else ["Ä" * 50])
    assert report.ok


def test_a_number_that_python_does_not_read_is_told(tmp_path):
    articles, report = read(tmp_path, f'[{{"title": "A"}}, {{"title": "B", "year": {"9" * 5000}}}]')
    assert [article.title for article in articles] == ["A"] and report.skipped == {"broken JSON": 1}


def test_csv_as_pubmed_exports_it():
    first, second = read_articles(DATA / "citations.csv")
    assert (first.title, first.journal, first.year) == ('Effect of "CO2", and air', "J Invent Med Biol", 2020)
    assert first.abstract.split() == ["Two", "lines."]
    assert first.headings == (Heading("D000818", "Animals"), Heading("D051379", "Mice", True))
    assert (second.pmid, second.headings) == (None, (Heading("", "Humans"),))


def test_a_cell_of_headings_with_qualifiers(tmp_path):
    cell = "D015032 *Zinc/tu [Therapeutic Use]|D003967/*drugtherapy|HIV/AIDS| * |"
    (article,), report = read(tmp_path, f"title,mesh\nA,{cell}\n")
    assert report.ok
    assert article.headings == (
        Heading("D015032", "Zinc", True, (Qualifier("Q000627", "therapeutic use"),)),
        Heading("D003967", None, True, (Qualifier("Q000188", "drug therapy", True),)),
        Heading("", "HIV/AIDS"),
    )


def test_what_follows_a_slash_behind_a_descriptors_ui_is_a_qualifier_whatever_it_is(tmp_path):
    articles = [
        Article("A", headings=(Heading("D008397", "Masks", True, (Qualifier("", "new aspect", True),)),)),
        Article("B", headings=(Heading("", "HIV/AIDS"), Heading("D008397", "Masks"))),
    ]
    for name in ("a.csv", "a.tsv"):
        write_articles(articles, tmp_path / name)
        assert list(read_articles(tmp_path / name)) == articles
    (tmp_path / "a.csv").write_text("title,mesh\nA,D008397 Masks/new aspect\n", encoding="utf-8")
    (article,) = read_articles(tmp_path / "a.csv")
    assert article.headings == (Heading("D008397", "Masks", False, (Qualifier("", "new aspect"),)),)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters(tmp_path, delimiter):
    text = f"sep={delimiter}\ntitle{delimiter}Abstract\nA{delimiter}B\n"
    (article,), report = read(tmp_path, text)
    assert (article.title, article.abstract) == ("A", "B") and report.ok


def test_bad_rows_are_counted(tmp_path):
    text = 'pmid,title,year\n1,One,2000\n2,Two,soon\n3,,2000\n4,a,b,c,d\n\n5,Five,2005\n6,"never closed\n'
    articles, report = read(tmp_path, text)
    assert [article.pmid for article in articles] == ["1", "5"]
    assert report.skipped == {"not an article": 3, "broken row": 1}


def test_a_table_needs_text_columns(tmp_path):
    articles, report = read(tmp_path, "a,b\n1,2\n", format="csv")
    assert articles == [] and report.skipped == {"no title or abstract column": 1}
