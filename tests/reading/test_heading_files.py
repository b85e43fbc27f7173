"""Headings from other files join articles by their PMID."""

from pathlib import Path

import pytest

from kenmesh_hf.errors import InputError
from kenmesh_hf.reading import Article, Heading, Qualifier, join_headings, read_heading_files

ARTICLE = Article("Zinc", pmid="7", headings=(Heading("D015032", "Zinc"), Heading("D006801", "Humans")))


def test_major_topics_and_qualifiers_join_by_descriptor_or_name(tmp_path: Path):
    path = tmp_path / "headings.jsonl"
    path.write_text(
        '{"pmid": "7", "mesh": [{"name": "zinc", "qualifiers": [{"name": "adverseeffects", "major": true}]},'
        ' {"ui": "D003967", "name": "Diarrhea", "major": true}]}\n',
        encoding="utf-8",
    )
    known = read_heading_files([path])
    joined = join_headings(ARTICLE, known)
    zinc = Heading("D015032", "Zinc", True, (Qualifier("Q000009", "adverse effects", True),))
    assert joined.headings == (zinc, ARTICLE.headings[1])
    assert join_headings(Article("Other", pmid="8"), known) == Article("Other", pmid="8")
    assert join_headings(Article("No PMID"), known) == Article("No PMID")


def test_a_damaged_file_of_headings_is_refused(tmp_path: Path):
    path = tmp_path / "headings.jsonl"
    path.write_text('{"pmid": "7", "mesh": [{"ui": "D015032"}]}\n{"pmid": \n', encoding="utf-8")
    with pytest.raises(InputError, match="line 2"):
        read_heading_files([path])


def test_no_files_give_no_headings():
    assert read_heading_files([]) == {}
