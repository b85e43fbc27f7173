"""What a person sees on the terminal."""

from kenmesh_hf.reading import Article
from kenmesh_hf.tagging import tag_lines
from kenmesh_hf.tagging.terminal import evidence_text

TAG = {"ui": "D006801", "name": "Humans", "score": 0.97}


def test_tags_stand_below_their_article():
    lines = tag_lines(Article("A title", pmid="7"), [TAG, TAG | {"score": 0.2}], width=80)
    assert lines == [
        "PMID 7: A title",
        "  0.97 ██████████ D006801    Humans",
        "  0.20 ██         D006801    Humans",
    ]


def test_major_topics_and_qualifiers_stand_as_nlm_writes_them():
    tag = TAG | {"major": True, "qualifiers": [{"name": "blood", "major": True, "score": 0.7}]}
    assert tag_lines(Article("A"), [tag], width=80)[1].endswith("D006801    Humans/*blood")


def test_why_a_tag_is_major_and_has_a_qualifier_stands_below_it():
    why = {"carriers": 12, "agreeing": 7}
    words = [{"word": "Serum", "weight": 0.2}, {"word": "levels", "weight": 0.1}]
    blood = {"name": "blood", "major": True, "score": 0.7, "evidence": {**why, "words": words}}
    tag = TAG | {"major": True, "major_score": 0.8, "qualifiers": [blood, blood | {"evidence": None}]}
    lines = tag_lines(Article("A"), [tag | {"evidence": {"major": why | {"in_title": True}}}], width=120)
    assert lines[3:] == [
        " " * 18 + "↳ major 0.80: in the title · 7 of 12 similar articles with this heading have it so",
        " " * 18 + "↳ blood 0.70: 7 of 12 similar articles with this heading have it · words serum, levels",
    ]


def test_long_lines_are_cut_and_missing_things_said():
    lines = tag_lines(Article(abstract="word " * 50), [], width=40)
    assert len(lines[0]) == 40 and lines[0].endswith("…")
    assert lines[1] == "  no tag reaches the threshold"
    assert tag_lines(Article(), [TAG], width=80)[0] == "(no text)"


def test_reasons_in_one_line():
    evidence = {
        "words": [{"word": f"w{number}", "weight": 0.4 / 4**number} for number in range(6)],
        "against": [{"word": "rats", "weight": -0.12}],
        "neighbours": [{"pmid": str(number), "weight": 0.01} for number in range(5)],
        "journal": 0.314,
        "journal_weight": 0.027,
        "term": {"text": "human beings", "field": "title"},
    }
    assert evidence_text(evidence) == (
        "“human beings” in the title · words w0 0.40, w1 0.10, w2 0.03, w3 0.01 · against rats -0.12 · "
        "similar articles 0 0.01, 1 0.01, 2 0.01… · 31% of the journal 0.03"
    )
    # A weight that rounds to nothing is not written.
    assert evidence_text({"words": [{"word": "w", "weight": 0.004}]}) == "words w"
    assert (
        evidence_text({"words": [], "neighbours": [], "journal": None, "term": None}) == "the text as a whole"
    )
    assert "↳ the text as a whole" in tag_lines(Article("a"), [TAG | {"evidence": {}}], width=80)[2]
