"""PubMed XML: every field, versions and deletions, and every kind of damage."""

import gzip
import io
import sys
import tracemalloc

import pytest
from places import DATA

from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Heading, PmidSet, Qualifier, ReadReport, read_articles

CITATIONS = DATA / "citations.xml"


def record(pmid, title="A title", version=1, extra="", attributes=""):
    """Write one invented record as NLM does."""
    return (
        f'<PubmedArticle>\n<MedlineCitation Status="MEDLINE"{attributes} Owner="NLM">\n'
        f'<PMID Version="{version}">{pmid}</PMID>\n<Article PubModel="Print"><Journal><JournalIssue><PubDate>'
        f"<Year>2020</Year></PubDate></JournalIssue><Title>J</Title></Journal>\n"
        f"<ArticleTitle>{title}</ArticleTitle></Article>{extra}\n</MedlineCitation>\n</PubmedArticle>\n"
    )


def article_set(*records, head='<?xml version="1.0" encoding="utf-8"?>\n', tail="</PubmedArticleSet>\n"):
    return head + "<PubmedArticleSet>\n" + "".join(records) + tail


def read(path, **options):
    report = ReadReport()
    return list(read_articles(path, report=report, **options)), report


@pytest.fixture
def write(tmp_path):
    def write(content, name="a.xml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_every_field():
    (first, second, third), report = read(CITATIONS)
    assert report.ok and report.read == 3
    assert first.title == "Effect of CO2 on Mus musculus with p<0.05."
    assert first.abstract == (
        "BACKGROUND: Mice breathe CO2 & air. METHODS & DATA: We gave 10 mice α-tocopherol. All lived."
    )
    assert (first.pmid, first.version, first.pmcid) == ("90000001", 1, "PMC9000001")
    assert first.journal == "Journal of invented medicine & biology"
    assert (first.journal_abbreviation, first.nlm_id) == ("J Invent Med Biol", "9900001")
    assert (first.year, first.date) == (2020, "2020-06-05")
    assert (first.date_completed, first.date_revised) == ("2020-11-20", "2021-01-09")
    assert first.headings == (
        Heading("D000818", "Animals", False),
        Heading("D002245", "Carbon Dioxide", True, (Qualifier("Q000633", "toxicity", True),)),
        Heading("D051379", "Mice", True),
    )
    assert first.human_indexed
    assert (second.indexing_method, second.human_indexed) == ("Automated", False)
    assert (second.title, second.date, second.pmcid) == ("[A translated title].", "1978-12", None)
    assert (third.title, third.date, third.headings) == ("Un título.", "2021", ())


@pytest.mark.parametrize(
    ("published", "date"),
    [
        ("<Year>2020</Year><Month>09</Month><Day>31</Day>", "2020-09-31"),
        ("<Year>2020</Year><Month>13</Month>", "2020"),
        ("<MedlineDate>2020 Apr 17-21</MedlineDate>", "2020-04-17"),
        ("<MedlineDate>2020 Winter</MedlineDate>", "2020"),
        ("<MedlineDate>Summer 1999</MedlineDate>", "1999"),
        ("<MedlineDate>undated</MedlineDate>", None),
        ("", None),
    ],
)
def test_dates(write, published, date):
    text = article_set(record(1)).replace("<Year>2020</Year>", published)
    (article,), _ = read(write(text))
    assert article.date == date
    assert article.year == (int(date[:4]) if date else None)


def test_comments_cdata_and_single_quotes_are_understood(write):
    title = "A<!-- <ArticleTitle>no</ArticleTitle> --> B <![CDATA[< & <PMID>5</PMID>]]><?pi x?>"
    mesh = "<MeshHeadingList><MeshHeading><DescriptorName UI='D1' MajorTopicYN='Y'>One</DescriptorName>"
    extra = mesh + "</MeshHeading></MeshHeadingList>"
    (article,), report = read(write(article_set(record(1, title, extra=extra))))
    assert report.ok
    assert article.title == "A B < & <PMID>5</PMID>"
    assert article.headings == (Heading("D1", "One", True),)


def mesh_list(*headings: str) -> str:
    return (
        f"<MeshHeadingList>{''.join(f'<MeshHeading>{h}</MeshHeading>' for h in headings)}</MeshHeadingList>"
    )


def test_qualifiers_and_major_topics(write):
    descriptor = '<DescriptorName UI="D015032" MajorTopicYN="{}">Zinc</DescriptorName>'.format
    use = '<QualifierName UI="Q000627" MajorTopicYN="{}">therapeutic use</QualifierName>'.format
    dose = '<QualifierName UI="Q000008" MajorTopicYN="N">administration &amp; dosage</QualifierName>'
    new = '<QualifierName UI="Q999999" MajorTopicYN="N">invented &lt; aspect</QualifierName>'
    nameless = '<DescriptorName MajorTopicYN="N">Zinc</DescriptorName>'
    extra = mesh_list(
        descriptor("N") + use("Y") + "\n  " + dose,
        descriptor("Y") + use("N"),
        descriptor("N") + use("N") + new,
        nameless + use("Y"),
    )
    (article,), report = read(write(article_set(record(1, extra=extra))))
    therapeutic, starred = (Qualifier("Q000627", "therapeutic use", major) for major in (False, True))
    assert report.ok
    assert article.headings == (
        Heading("D015032", "Zinc", True, (starred, Qualifier("Q000008", "administration & dosage"))),
        Heading("D015032", "Zinc", True, (therapeutic,)),
        Heading("D015032", "Zinc", False, (therapeutic, Qualifier("Q999999", "invented < aspect"))),
        Heading("", None, True, (starred,)),
    )


def test_other_roots(write):
    single = record(1)
    old = single.replace("<PubmedArticle>\n", "").replace("</PubmedArticle>\n", "")
    for text in (single, f"<MedlineCitationSet>\n{old}</MedlineCitationSet>", old):
        articles, report = read(write(text))
        assert [article.pmid for article in articles] == ["1"] and report.ok


def test_concatenated_downloads_are_one_file(write):
    articles, report = read(write(article_set(record(1)) + article_set(record(2))))
    assert [article.pmid for article in articles] == ["1", "2"] and report.ok


def test_newest_version_wins_whatever_the_order(write):
    versions = [record(1, "v3", 3), record(2, "only"), record(1, "v2", 2), record(1, "v1", 1)]
    for order in (versions, versions[::-1]):
        articles, report = read(write(article_set(*order)))
        assert sorted(article.title for article in articles) == ["only", "v3"]
        assert report.ok and report.notes["older version of a PMID"] == 2


def test_duplicates_are_counted_and_the_last_kept(write):
    path = write(article_set(record(1, "first"), record(1, "second")))
    articles, report = read(path)
    assert [article.title for article in articles] == ["second"]
    assert report.skipped == {"duplicate PMID": 1}
    with pytest.raises(InputError, match="record 1 .*PMID 1: duplicate PMID"):
        list(read_articles(path, strict=True))
    assert len(read(path, every_version=True)[0]) == 2


def test_deletions(write):
    deletion = (
        '<DeleteCitation>\n<PMID Version="1">2</PMID>\n<PMID Version="1">77</PMID>\n</DeleteCitation>\n'
    )
    path = write(article_set(record(1), record(2), deletion))
    articles, report = read(path)
    assert [article.pmid for article in articles] == ["1"]
    assert report.ok and report.notes["deleted by NLM"] == 1
    assert "2" in report.deleted and "77" in report.deleted and "1" not in report.deleted


def test_newer_files_replace_and_delete(write, tmp_path):
    write(article_set(record(1, "old"), record(2), record(3)), "pubmed20n0001.xml")
    deletion = '<DeleteCitation><PMID Version="1">2</PMID></DeleteCitation>'
    write(article_set(record(1, "new"), deletion), "pubmed20n0002.xml")
    articles, report = read(tmp_path)
    assert [(article.pmid, article.title) for article in articles] == [("1", "new"), ("3", "A title")]
    assert report.ok and report.notes["replaced or deleted by a newer file"] == 2


def test_seen_pmids_carry_over(write):
    seen = PmidSet(["1"])
    articles, _ = read(write(article_set(record(1), record(2))), seen=seen)
    assert [article.pmid for article in articles] == ["2"]
    assert "2" in seen


def test_standard_input_is_read_once_but_versions_still_hold(monkeypatch):
    text = article_set(record(1, "old", 1), record(1, "new", 2)).encode()
    for data in (text, gzip.compress(text)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        articles, report = read("-")
        assert [article.title for article in articles] == ["new"] and report.ok


def test_broken_record_costs_only_itself(write):
    broken = record(2).replace("</ArticleTitle>", "</ArticleTitel>")
    path = write(article_set(record(1), broken, record(3)))
    articles, report = read(path)
    assert [article.pmid for article in articles] == ["1", "3"]
    assert report.skipped == {"broken XML": 1}
    (place,) = report.examples["broken XML"]
    assert str(path) in place and "record 2 at byte" in place
    with pytest.raises(InputError, match="record 2"):
        list(read_articles(path, strict=True))


def test_record_without_end_does_not_swallow_the_next(write):
    open_record = record(2).replace("</PubmedArticle>", "")
    articles, report = read(write(article_set(record(1), open_record, record(3))))
    assert [article.pmid for article in articles] == ["1", "3"]
    assert report.skipped == {"broken XML": 1}


@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_truncated_gzip_keeps_what_was_complete(write, keep):
    data = gzip.compress(article_set(*(record(n, f"Title {n * n}") for n in range(1, 2000))).encode())
    path = write(data[: int(len(data) * keep)], "a.xml.gz")
    articles, report = read(path)
    assert len(articles) > 100
    assert [article.pmid for article in articles] == [str(n) for n in range(1, len(articles) + 1)]
    assert report.skipped["compressed file cut off or damaged"] == 1 and not report.ok
    assert report.examples["compressed file cut off or damaged"][0].startswith(f"{path}, after ")
    with pytest.raises(InputError):
        list(read_articles(path, strict=True))


def test_file_cut_off_between_and_inside_records(write):
    _, report = read(write(article_set(record(1), tail="")))
    assert report.read == 1 and report.skipped == {"file cut off (its last tag is missing)": 1}
    _, report = read(write(article_set(record(1), record(2)[:150], tail="")))
    assert report.read == 1 and report.skipped == {"record cut off": 1}


def test_garbage_between_records_is_told(write):
    articles, report = read(write(article_set(record(1), "&&& junk\n", record(2))))
    assert len(articles) == 2
    assert report.skipped == {"something unknown between records": 1}


def test_books_are_noted(write):
    book = '<PubmedBookArticle><BookDocument><PMID Version="1">9</PMID></BookDocument></PubmedBookArticle>'
    articles, report = read(write(article_set(record(1), book, record(2))))
    assert [article.pmid for article in articles] == ["1", "2"]
    assert report.ok and report.notes["book, not an article"] == 1


def test_missing_pmid(write):
    articles, report = read(write(article_set(record(""), record(2))))
    assert [article.pmid for article in articles] == ["2"] and report.skipped == {"no PMID": 1}


def test_entity_bomb_never_expands(write):
    layers = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE PubmedArticleSet [<!ENTITY e0 "ha">{layers}]>\n'
    tracemalloc.start()
    articles, report = read(write(article_set(record(1, "&e11;"), record(2), head=bomb)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [article.pmid for article in articles] == ["2"] and report.skipped == {"broken XML": 1}
    assert peak < 20_000_000


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_odd_encodings(write, encoding):
    head = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n'
    articles, report = read(write(article_set(record(1, "Über Öl"), head=head).encode(encoding)))
    assert [article.title for article in articles] == ["Über Öl"] and report.ok


def test_undeclared_latin_1_is_read_and_noted(write):
    text = article_set(record(1, "Über Öl"), record(2, "plain")).encode("latin-1")
    articles, report = read(write(text))
    assert [article.title for article in articles] == ["Über Öl", "plain"]
    assert report.ok and report.notes == {"not UTF-8, read as Windows-1252": 1}


def test_unknown_encoding_names_the_file(write):
    path = write(article_set(record(1), head='<?xml version="1.0" encoding="klingon"?>'))
    _, report = read(path)
    assert report.skipped == {"file not usable": 1}
    with pytest.raises(InputError, match="klingon"):
        list(read_articles(path, strict=True))


def test_memory_stays_that_of_a_record(write):
    path = write(
        gzip.compress(article_set(*(record(n, "w" * 9000) for n in range(3000))).encode()), "a.xml.gz"
    )
    tracemalloc.start()
    count = sum(1 for _ in read_articles(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 3000
    assert peak < 12_000_000
