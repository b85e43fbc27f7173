"""Texts in pieces of words: what the tokenizer itself gives, where pieces stand, and tags made of them."""

import pytest
from tiny_encoder import tiny_tokenizer
from tiny_model import UNSEEN

from kenmesh_hf import load
from kenmesh_hf.modeling.pieces_kenmesh import Pieces, is_word_level
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.words import build_tokenizer

TEXTS = ["Babali mobake.", "il-6 (p53) liliti,naïve  β?", "", "   ", "[SEP] babali [CLS]", "ba" * 300]


def test_the_kind_of_a_tokenizer_is_seen():
    assert is_word_level(build_tokenizer(["heart"])) and not is_word_level(tiny_tokenizer())
    assert KenMeSHProcessor(build_tokenizer(["heart"])).pieces is None


def test_ids_are_those_of_the_tokenizer():
    tokenizer, pieces = tiny_tokenizer(), Pieces(tiny_tokenizer())
    assert (pieces.before, pieces.after) == ([2], [3])
    for text, ids in zip(TEXTS, pieces.encode(TEXTS, 20), strict=True):
        expected = tokenizer(text, truncation=True, max_length=20, split_special_tokens=True)["input_ids"]
        assert ids == (expected if text.strip() else [])
    assert pieces.encode([], 20) == []
    assert pieces.encode(["babali"], 2) == [[2, 3]]


def test_special_tokens_in_a_text_are_text():
    [ids] = Pieces(tiny_tokenizer()).encode(["[SEP] babali [CLS]"], 50)
    assert ids.count(2) == ids.count(3) == 1


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_stand_where_they_are_said_to(text):
    processor = KenMeSHProcessor(tiny_tokenizer())
    [row] = processor.encode(abstract=[text])
    spans = processor.token_spans(text, processor.max_abstract_tokens)
    assert len(spans) == max(0, len(row["input_ids"]) - 2)
    for token, (start, end) in zip(row["input_ids"][1:-1], spans.tolist(), strict=True):
        piece = processor.tokenizer.convert_ids_to_tokens(token).removeprefix("##")
        assert piece in (text[start:end].lower(), "[UNK]", "i")


def test_a_tokenizer_that_cuts_and_pads_is_told_not_to():
    """Sentence encoders are saved with a tokenizer that does both."""
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.enable_truncation(8)
    tokenizer.backend_tokenizer.enable_padding(length=8)
    [short, long] = Pieces(tokenizer).encode(["ba", "babali " * 9], 30)
    assert len(short) == 3 and len(long) == 29


def test_names_are_spelled_in_pieces_without_special_tokens():
    processor = KenMeSHProcessor(tiny_tokenizer())
    names = processor.encode_names(["Babali Moke", "\u200b"])
    assert processor.tokenizer.convert_ids_to_tokens(names[0]) == ["ba", "##ba", "##li", "mo", "##ke"]
    assert names[1] == [processor.tokenizer.unk_token_id]


def test_words_of_a_reason_are_words_of_the_text(encoder_tagger):
    row = {"title": f"(Naïve) [SEP] {UNSEEN[0].title}", "abstract": f"β-Catenin; {UNSEEN[0].abstract}"}
    [tags] = encoder_tagger([row], evidence=True, evidence_words=50, top_k=5)
    found = {word["word"] for tag in tags for word in tag["evidence"]["words"] + tag["evidence"]["against"]}
    for tag in tags:
        for word in tag["evidence"]["words"] + tag["evidence"]["against"]:
            text, start, end = row[word["field"]], word["start"], word["end"]
            assert text[start:end] == word["word"]
            around = text[max(0, start - 1) : start] + text[end : end + 1]
            assert not any(sign.isalnum() for sign in around)
    assert len(found) > 10


def test_a_saved_tagger_gives_the_same_tags(encoder_tagger, encoder_model):
    rows = [article.as_input() for article in UNSEEN[:6]]
    again = load(encoder_model)
    assert again.processor.max_title_tokens == 24 and again.processor.pieces.before == [2]
    expected = encoder_tagger(rows, top_k=5, evidence=True)
    assert again(rows, top_k=5, evidence=True) == expected
