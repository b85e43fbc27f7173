"""Any format from any place: detection, folders, archives, standard input, and writing."""

import bz2
import gzip
import io
import json
import lzma
import sys
import tarfile
from dataclasses import replace

import pytest
from places import DATA

from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Article, Heading, Qualifier, ReadReport, read_articles, write_articles
from kenmesh_hf.reading.articles import FORMATS

FILES = {
    "pubmed": "citations.xml",
    "bioc": "bioc.xml",
    "json": "bioc.json",
    "medline": "citations.nbib",
    "ris": "citations.ris",
    "csv": "citations.csv",
}
USE, BLOOD = Qualifier("Q000627", "therapeutic use", True), Qualifier("Q000097", "blood")
ARTICLES = [
    Article(
        title='A "quoted", title',
        abstract="First; second | third\twith tab. Ünïcode ≤ 5.",
        pmid="1",
        journal="Journal of invented medicine",
        year=2020,
        headings=(
            Heading("D000818", "Animals"),
            Heading("D008460", "Meat, Raw", True),
            Heading("D015032", "Zinc", True, (USE, BLOOD)),
            Heading("D003967", "Diarrhea", True, (BLOOD,)),
            Heading("D003969", "Diarrhea, Infantile", False, (BLOOD,)),
        ),
        journal_abbreviation="J Invent Med",
        nlm_id="9900001",
        pmcid="PMC1",
        date="2020-06-05",
        indexing_method="Curated",
        date_completed="2020-11-20",
        version=2,
    ),
    Article(title="A title alone"),
]


# What MEDLINE's lines have no place for.
UNHELD = {"indexing_method": None, "version": None}


def read(path, **options):
    report = ReadReport()
    return list(read_articles(path, report=report, **options)), report


def tar_of(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_format_is_found_from_content(tmp_path, format, compress):
    expected, _ = read(DATA / FILES[format])
    path = tmp_path / "no-suffix"
    path.write_bytes(compress((DATA / FILES[format]).read_bytes()))
    found, report = read(path)
    assert found == expected and len(found) >= 2 and report.ok
    assert read(path, format=format)[0] == expected


@pytest.mark.parametrize("format", FILES)
def test_standard_input(monkeypatch, format):
    data = (DATA / FILES[format]).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read("-")[0] == read(DATA / FILES[format])[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("format", ["medline", "ris", "csv"])
def test_text_in_odd_encodings(tmp_path, format, encoding):
    text = (DATA / FILES[format]).read_text(encoding="utf-8").replace("Effect", "Ärger")
    path = tmp_path / "a"
    path.write_bytes(text.encode(encoding))
    articles, report = read(path)
    assert articles[0].title.startswith("Ärger")
    assert report.ok and bool(report.notes) == (encoding == "cp1252")


def test_folder_reads_every_file_once(tmp_path):
    for format in ("medline", "ris"):
        (tmp_path / FILES[format]).write_bytes((DATA / FILES[format]).read_bytes())
    (tmp_path / "a.xml.gz.md5").write_text("MD5 = 0")
    (tmp_path / ".hidden").write_text("x")
    articles, report = read(tmp_path)
    assert [article.pmid for article in articles] == ["90000001", "90000002", None]
    assert report.skipped == {"duplicate PMID": 1}


def test_archive_members_are_read_and_never_extracted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "PMC0/PMC1.xml": (DATA / "bioc.xml").read_bytes(),
        "../../escape.xml": (DATA / "citations.xml").read_bytes(),
        "/absolute.xml": (DATA / "citations.xml").read_bytes(),
        "new.xml": (DATA / "citations.xml").read_bytes().replace(b">900000", b">800000"),
    }
    path = tmp_path / "a.tar.gz"
    path.write_bytes(tar_of(files))
    articles, report = read(path)
    pmids = [article.pmid for article in articles]
    assert pmids == ["90000001", "90000002", "80000001", "80000002", "80000003"]
    assert report.skipped == {"unsafe file name in an archive": 2}
    assert [item.name for item in tmp_path.iterdir()] == ["a.tar.gz"]
    with pytest.raises(InputError, match="escape.xml"):
        list(read_articles(path, strict=True))


def test_links_in_an_archive_are_not_followed(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        link = tarfile.TarInfo("link.xml")
        link.type, link.linkname = tarfile.SYMTYPE, str(DATA / "citations.xml")
        tar.addfile(link)
    articles, report = read(path)
    assert articles == [] and report.skipped == {"not a file (a link or device) in an archive": 1}


def test_truncated_archive_keeps_whole_members(tmp_path):
    rows = "".join(json.dumps({"title": f"{n * 7919 % 1000003} {n}"}) + "\n" for n in range(30000))
    data = tar_of({"a.xml": (DATA / "bioc.xml").read_bytes(), "b.jsonl": rows.encode()})
    path = tmp_path / "a.tar.gz"
    path.write_bytes(data[: len(data) // 2])
    articles, report = read(path)
    assert len(articles) > 2 and articles[0].pmid == "90000001"
    assert not report.ok and "compressed file cut off or damaged" in report.skipped


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b" \n", "empty file"),
        (gzip.compress(b"", mtime=0), "empty file"),
        (b"\x1f\x8b\x08", "compressed file cut off or damaged"),
        (b"<html><body>Not found</body></html>", "file not usable"),
        (b"<?xml version='1.0'?><nlm-dtd/>", "file not usable"),
        (b"Dear reader, this is a letter.", "file not usable"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00", "file not usable"),
    ],
)
def test_unusable_files_are_named(tmp_path, content, reason):
    path = tmp_path / "a"
    path.write_bytes(content)
    articles, report = read([path, DATA / "citations.ris"])
    assert len(articles) == 2 and report.skipped == {reason: 1}
    assert str(path) in report.examples[reason][0]
    with pytest.raises(InputError, match=str(path)):
        list(read_articles(path, strict=True))


def test_wrong_root_says_what_was_found(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text("<?xml version='1.0'?><!-- c --><DescriptorRecordSet/>")
    with pytest.raises(InputError, match="'DescriptorRecordSet'.*PubmedArticleSet"):
        list(read_articles(path, strict=True))


def test_missing_path_and_unknown_format_fail_at_once(tmp_path):
    with pytest.raises(InputError, match="nowhere.xml does not exist"):
        read_articles(tmp_path / "nowhere.xml")
    with pytest.raises(InputError, match=FORMATS[0]):
        read_articles(DATA / "citations.xml", format="docx")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.jsonl.gz", "a.csv.gz"])
def test_what_is_written_reads_back(tmp_path, name):
    assert write_articles(iter(ARTICLES), tmp_path / name) == 2
    articles, report = read(tmp_path / name)
    assert articles == ARTICLES and report.ok
    assert [item.name for item in tmp_path.iterdir()] == [name]


def test_uis_of_unknown_names_and_names_of_unknown_uis_read_back(tmp_path):
    new = (Qualifier("Q999999", "new aspect"), Qualifier("Q999998", None, True))
    odd = [
        Article(title="A", headings=(Heading("D000818", None, False, new), Heading("D015032", None, True)))
    ]
    for name in ("a.jsonl", "a.csv", "a.tsv"):
        write_articles(odd, tmp_path / name)
        assert read(tmp_path / name)[0] == odd


def test_ris_keeps_what_ris_can_hold(tmp_path):
    write_articles(ARTICLES, tmp_path / "a.ris")
    (first, second), report = read(tmp_path / "a.ris")
    assert report.ok and second == ARTICLES[1]
    assert (first.title, first.pmid, first.date, first.pmcid) == (
        ARTICLES[0].title,
        "1",
        "2020-06-05",
        "PMC1",
    )
    assert first.headings == tuple(replace(heading, ui="") for heading in ARTICLES[0].headings)


def test_medline_keeps_what_medline_can_hold(tmp_path):
    long = replace(ARTICLES[0], pmid="2", title="A title of many words " * 9 + "TI - PMID- 3")
    write_articles([*ARTICLES, long], tmp_path / "a.nbib")
    lines = (tmp_path / "a.nbib").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "PMID- 1" and max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith("MH")][:5] == [
        "MH  - Animals",
        "MH  - *Meat, Raw",
        "MH  - Zinc/*therapeutic use/blood",
        "MH  - *Diarrhea/blood",
        "MH  - Diarrhea, Infantile/blood",
    ]
    articles, report = read(tmp_path / "a.nbib")
    names = tuple(replace(heading, ui="") for heading in ARTICLES[0].headings)
    expected = [
        replace(article, headings=names, abstract=" ".join(article.abstract.split()), **UNHELD)
        for article in (ARTICLES[0], long)
    ]
    assert report.ok and articles == [expected[0], ARTICLES[1], expected[1]]


def test_line_ends_in_a_title_cannot_forge_ris_lines(tmp_path):
    write_articles([Article(title="A\nER  - \nTY  - JOUR\nTI  - B")], tmp_path / "a.ris")
    assert [article.title for article in read(tmp_path / "a.ris")[0]] == ["A ER - TY - JOUR TI - B"]


def test_no_articles_give_a_valid_file(tmp_path):
    assert write_articles([], tmp_path / "a.csv") == 0
    assert read(tmp_path / "a.csv")[1].ok


def test_writing_to_standard_output(capsys):
    write_articles(ARTICLES, "-")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [article.to_dict() for article in ARTICLES]


def test_a_failed_write_leaves_nothing(tmp_path):
    def failing():
        yield ARTICLES[0]
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_articles(failing(), tmp_path / "a.jsonl")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="one of jsonl"):
        write_articles(ARTICLES, tmp_path / "a.docx")
    with pytest.raises(InputError, match="Cannot write"):
        write_articles(ARTICLES, tmp_path / "no" / "folder" / "a.csv")
