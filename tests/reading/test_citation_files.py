"""MEDLINE and RIS."""

from places import DATA

from kenmesh_hf.reading import Heading, ReadReport, read_articles


def read(tmp_path, text, **options):
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    report = ReadReport()
    return list(read_articles(path, report=report, **options)), report


def test_medline_fields():
    first, second = read_articles(DATA / "citations.nbib")
    assert first.title.endswith("long enough to go on in the next line.")
    assert first.abstract == "BACKGROUND: Mice breathe - as all do. METHODS: We looked."
    assert (first.pmid, first.pmcid, first.nlm_id) == ("90000001", "PMC9000001", "9900001")
    assert first.journal == "Journal of invented medicine & biology"
    assert (first.date, first.year) == ("2020-06-05", 2020)
    assert (first.date_completed, first.date_revised) == ("2020-11-20", "2021-01-09")
    assert first.headings == (
        Heading("", "Animals"),
        Heading("", "Carbon Dioxide", True),
        Heading("", "Mice", True),
    )
    assert (second.title, second.year) == ("[A translated title].", 1978)


def test_medline_damage(tmp_path):
    text = (
        "stray\nPMID- 1\nTI  - One\n\nPMID- none\nTI  - Two\n\nPMID- 1\nTI  - Again\n\nPMID- 3\nTI  - Three"
    )
    articles, report = read(tmp_path, text)
    assert [article.title for article in articles] == ["One", "Three"]
    assert report.skipped == {"line outside a record": 1, "no PMID": 1, "duplicate PMID": 1}
    assert report.examples["no PMID"][0].endswith("line 5")


def test_ris_fields():
    first, second = read_articles(DATA / "citations.ris")
    assert (first.title, first.abstract) == (
        "Effect of carbon dioxide on mice",
        "Mice breathe. They really do.",
    )
    assert (first.pmid, first.pmcid, first.date) == ("90000001", "PMC9000001", "2020-06-05")
    assert first.headings == (Heading("", "Animals"), Heading("", "Mice", True))
    assert (second.title, second.journal, second.year, second.pmid) == (
        "A title alone",
        "Z Erfund",
        1979,
        None,
    )


def test_ris_damage(tmp_path):
    text = "TY  - JOUR\r\nER  - \r\nTY  - JOUR\rTI  - Good\rER  - \rTY  - JOUR\nTI  - Cut o"
    articles, report = read(tmp_path, text)
    assert [article.title for article in articles] == ["Good"]
    assert report.skipped == {"neither title nor abstract": 1, "record cut off (no ER line)": 1}
