"""MEDLINE and RIS."""

from places import DATA

from kenmesh_hf.reading import Heading, Qualifier, ReadReport, read_articles


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
        Heading("", "Carbon Dioxide", True, (Qualifier("Q000633", "toxicity", True),)),
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


def test_medline_headings_have_qualifiers(tmp_path):
    lines = ["*Zinc/*therapeutic use/blood", "*Diarrhea/drug therapy", "Aspirin/odd aspect", "*", ""]
    text = "PMID- 1\nTI  - One\n" + "".join(f"MH  - {line}\n" for line in lines)
    (article,), report = read(tmp_path, text)
    use, blood = Qualifier("Q000627", "therapeutic use", True), Qualifier("Q000097", "blood")
    assert report.ok
    assert article.headings == (
        Heading("", "Zinc", True, (use, blood)),
        Heading("", "Diarrhea", True, (Qualifier("Q000188", "drug therapy"),)),
        Heading("", "Aspirin", False, (Qualifier("", "odd aspect"),)),
    )


def test_a_medline_record_may_lack_its_pmid_but_not_its_title(tmp_path):
    articles, report = read(tmp_path, "PMID- \nTI  - One\n\nPMID- \nAB  - Two\n")
    assert [(article.pmid, article.title) for article in articles] == [(None, "One")]
    assert report.skipped == {"no PMID": 1}


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


def test_ris_keywords_have_qualifiers_where_they_are_nlms(tmp_path):
    lines = [
        "Zinc/*therapeutic use/adverseeffects",
        "*Diarrhea/dt [Drug Therapy]",
        "HIV/AIDS",
        "Acid/Base Balance/metabolism",
        "and/or/",
        "/",
    ]
    text = "TY  - JOUR\nTI  - One\n" + "".join(f"KW  - {line}\n" for line in lines) + "ER  - \n"
    (article,), report = read(tmp_path, text)
    use, harm = Qualifier("Q000627", "therapeutic use", True), Qualifier("Q000009", "adverse effects")
    assert report.ok
    assert article.headings == (
        Heading("", "Zinc", True, (use, harm)),
        Heading("", "Diarrhea", True, (Qualifier("Q000188", "drug therapy"),)),
        Heading("", "HIV/AIDS"),
        Heading("", "Acid/Base Balance", False, (Qualifier("Q000378", "metabolism"),)),
        Heading("", "and/or/"),
    )


def test_qualifiers_that_nlm_no_longer_has_are_told_apart_from_names(tmp_path):
    lines = ["Masks/utilization", "*Thorax/radiography/*ultrasonography", "Zinc/contraindications/blood"]
    text = "TY  - JOUR\nTI  - One\n" + "".join(f"KW  - {line}\n" for line in lines) + "ER  - \n"
    (article,), _ = read(tmp_path, text)
    assert article.headings == (
        Heading("", "Masks", False, (Qualifier("", "utilization"),)),
        Heading("", "Thorax", True, (Qualifier("", "radiography"), Qualifier("", "ultrasonography", True))),
        Heading("", "Zinc", False, (Qualifier("", "contraindications"), Qualifier("Q000097", "blood"))),
    )


def test_an_asterisk_may_stand_behind_a_name_as_on_pubmeds_pages(tmp_path):
    lines = ["Diarrhea / drug therapy* / blood", "Zinc*", "HIV/AIDS*"]
    text = "TY  - JOUR\nTI  - One\n" + "".join(f"KW  - {line}\n" for line in lines) + "ER  - \n"
    (article,), _ = read(tmp_path, text)
    therapy, blood = Qualifier("Q000188", "drug therapy", True), Qualifier("Q000097", "blood")
    assert article.headings == (
        Heading("", "Diarrhea", True, (therapy, blood)),
        Heading("", "Zinc", True),
        Heading("", "HIV/AIDS", True),
    )


def test_ris_damage(tmp_path):
    text = "TY  - JOUR\r\nER  - \r\nTY  - JOUR\rTI  - Good\rER  - \rTY  - JOUR\nTI  - Cut o"
    articles, report = read(tmp_path, text)
    assert [article.title for article in articles] == ["Good"]
    assert report.skipped == {"neither title nor abstract": 1, "record cut off (no ER line)": 1}
