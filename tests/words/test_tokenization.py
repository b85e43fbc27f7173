"""The tokenizer and the fast bulk path give the same words, on any text."""

import json
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from kenmesh_hf.errors import InputError
from kenmesh_hf.modeling.text_kenmesh import (
    STOP_WORDS,
    clear_tokenizer_state,
    content_words,
    encode_words,
    normalize,
)
from kenmesh_hf.words import build_tokenizer, build_vocabulary_words

WORDS = "patients il-6 covid-19 5-ht p53 naïve σοφοσ pad unk office μm 2021 10".split()
ODD_PIECES = [
    *"ßİıΣσςµμΩÅé½²₂Ⅳ①ﬁﬀ𝛼𝟙中日한あア،٣ก😀´`'’_-.,/[]()<>%\t\n\x00",
    *"\u0300\u0345\u00ad\u200b\u200d\u2010\u2011\u2013\u2212\ufeff\ufe0f\u1abf\u07fd\U00010781\U0001f9ec",
    *"e\u0301 A\u030a i\u0307 ΣΟΦΟΣ oﬃce ＩＬ－６ ２０２１".split(),
    *"the The IL-6 5-HT COVID-19 p53-dependent double-blind [PAD] [UNK] patient's".split(),
    " ",
]
SENTENCES = [
    "The effects of IL-6 on p53-dependent apoptosis in patients with COVID-19: a blind trial (n = 2,021).",
    "5-HT and 17-beta-estradiol: 10-20 mg/kg; CO2, H2O & α-synuclein at 37 °C, P<0.05 -- see [PAD] [UNK].",
    "Sjögren's syndrome — Ménière’s disease; β‐catenin, TGF‑β1, ΔF508; 10 µm; naïve T‐cells.",
]


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(WORDS)


def assert_same(tokenizer, text):
    encoding = tokenizer(text, return_offsets_mapping=True, verbose=False)
    assert encode_words([text], tokenizer.get_vocab()) == [encoding["input_ids"]]
    words = content_words(text)
    assert len(words) == len(encoding["offset_mapping"])
    for word, (start, end) in zip(words, encoding["offset_mapping"], strict=True):
        assert 0 <= start < end <= len(text)
        if text.isascii():
            assert text[start:end].lower() == word


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(ODD_PIECES) | st.characters(exclude_categories=["Cs"])).map("".join))
@example("İSTANBUL ΣΟΦΟΣ. ΑΣ' Σ")
@example("e\u0301\u0323\u0345 a\u1abf\u0301 \U0001f16c\u32ff")
def test_bulk_path_equals_tokenizer_on_odd_text(tokenizer, text):
    assert_same(tokenizer, text)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(" ".join(SENTENCES).split())).map(" ".join))
def test_bulk_path_equals_tokenizer_on_sentences(tokenizer, text):
    assert_same(tokenizer, text)


def test_every_character_reads_the_same_in_both(tokenizer):
    """Every 256 code points in one text, each inside a word, beside a hyphen and beside combining marks."""
    assigned = [*range(0, 0xD800, 256), *range(0xE000, 0x32000, 256), 0xE0000, 0xE0100, 0x10FF00]
    for first in assigned:
        text = " ".join(f"ab{c}cd \u0301{c}\u0323x {c}1-{c}e" for c in map(chr, range(first, first + 256)))
        backend = tokenizer.backend_tokenizer
        normalized = backend.normalizer.normalize_str(text)
        assert normalized == normalize(text), hex(first)
        pieces = [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normalized)]
        assert pieces == content_words(text), hex(first)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("IL-6, COVID-19 and 5-HT", ["il-6", "covid-19", "5-ht"]),
        ("p53-dependent, double-blind", ["p53", "dependent", "double", "blind"]),
        ("COVID-19-related il-2-", ["covid-19", "related", "il-2"]),
        ("COVID\u201119 β\u2010catenin TGF\u20111", ["covid-19", "catenin", "tgf-1"]),
        ("can\u00adcer can\u200bcer", ["cancer", "cancer"]),
        ("snake_case patient's patient´s", ["snake", "case", "patient", "patient"]),
        ("H₂O ＤＮＡ ﬁbrosis 10µm", ["h2o", "dna", "fibrosis", "10μm"]),
        ("Sjo\u0308gren", ["sjögren"]),
        ("the of a x 7 中 !?", []),
        ("", []),
        ("\ud800 lone surrogate", ["lone", "surrogate"]),
    ],
)
def test_content_words(text, words):
    assert content_words(text) == words


def test_offsets_point_into_the_original_text(tokenizer):
    text = "The oﬃce: ２０２１ \u200bIL\u20116, nai\u0308ve 😀 COVID\u00ad-19!"
    encoding = tokenizer(text, return_offsets_mapping=True)
    pieces = [text[start:end] for start, end in encoding["offset_mapping"]]
    assert pieces == ["oﬃce", "２０２１", "IL\u20116", "nai\u0308ve", "COVID\u00ad-19"]
    assert tokenizer.convert_ids_to_tokens(encoding["input_ids"]) == [
        "office",
        "2021",
        "il-6",
        "naïve",
        "covid-19",
    ]


def test_special_tokens_and_unknown_words(tokenizer):
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.padding_side) == (0, 1, "right")
    vocab = tokenizer.get_vocab()
    ids = tokenizer("[PAD] zebra [UNK] the p53")["input_ids"]
    assert ids == [vocab["pad"], 1, vocab["unk"], vocab["p53"]], "special names in a text are ordinary words"


def test_truncation_equals_bulk_truncation(tokenizer):
    text = " ".join(SENTENCES * 40)
    assert len(tokenizer(text, truncation=True)["input_ids"]) == tokenizer.model_max_length == 400
    ids = tokenizer(text, truncation=True, max_length=7)["input_ids"]
    assert encode_words([text, ""], tokenizer.get_vocab(), 7) == [ids, []]


def test_saved_folder_loads_without_this_package(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    script = (
        "import sys; sys.modules['kenmesh_hf'] = None\n"
        "from transformers import AutoTokenizer\n"
        f"t = AutoTokenizer.from_pretrained({str(tmp_path)!r})\n"
        f"print([t.is_fast, t.model_max_length, t({SENTENCES!r})['input_ids']])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ids = encode_words(SENTENCES, tokenizer.get_vocab())
    assert json.loads(result.stdout.splitlines()[-1].replace("True", "true")) == [True, 400, ids]


def test_saved_files_carry_no_state_of_an_earlier_call(tmp_path):
    tokenizer = build_tokenizer(WORDS)
    tokenizer.save_pretrained(tmp_path / "fresh")
    tokenizer(SENTENCES, padding=True, truncation=True, max_length=3)
    clear_tokenizer_state(tokenizer)
    tokenizer.save_pretrained(tmp_path / "used")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "fresh" / name).read_bytes() == (tmp_path / "used" / name).read_bytes()
    saved = json.loads((tmp_path / "used" / "tokenizer.json").read_text(encoding="utf-8"))
    assert saved["truncation"] is None and saved["padding"] is None
    again = AutoTokenizer.from_pretrained(tmp_path / "used")
    assert again.get_vocab() == tokenizer.get_vocab() and again.split_special_tokens


def test_vocabulary_is_ordered_and_limited():
    texts = ["zebra yak yak the the the x", "yak apple zebra", "rare"]
    assert build_vocabulary_words(texts, min_count=1) == ["yak", "zebra", "apple", "rare"]
    assert build_vocabulary_words(texts, min_count=2) == ["yak", "zebra"]
    assert build_vocabulary_words(texts, min_count=1, max_size=3) == ["yak", "zebra", "apple"]
    assert build_vocabulary_words([], min_count=1) == []


def test_required_words_are_kept_within_the_size():
    texts = ["yak yak yak", "zebra zebra", "rare"]
    names = ["Rare Diseases, of the", "Yak"]
    words = build_vocabulary_words(texts, min_count=2, max_size=3, required=names)
    assert words == ["yak", "rare", "diseases"]
    with pytest.raises(InputError, match="3 words.*Raise the size to 3"):
        build_vocabulary_words(texts, max_size=2, required=names)


@pytest.mark.parametrize("words", [["yak", "yak"], ["Yak"], ["two words"], ["the"], ["x"], [""], ["[PAD]"]])
def test_words_that_no_text_can_give_are_refused(words):
    with pytest.raises(InputError, match="vocabulary has"):
        build_tokenizer(words)


def test_stop_words_are_words():
    assert all(normalize(word) == word and word.isalpha() for word in STOP_WORDS)
