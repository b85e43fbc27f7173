"""Word vectors: every format gives the same numbers, bad files give sentences, training is repeatable."""

import gzip
import struct
import subprocess
import sys

import numpy as np
import pytest
from gensim.models import FastText, KeyedVectors
from gensim.models.fasttext import save_facebook_model

from kenmesh_hf.errors import DependencyError, InputError, MismatchError
from kenmesh_hf.words import (
    WordVectors,
    build_embeddings,
    build_tokenizer,
    read_word_vectors,
    train_word_vectors,
    word_vector_files,
)

WORDS = ["the", "Heart", "liver", "naïve", "il-6", "heart", "Kidney"]
TEXTS = [
    "Renal failure of the kidney and hypertension in renal patients",
    "Myocardial infarction of the heart and hypertension in cardiac patients",
    "Kidney transplantation and renal failure",
    "Cardiac arrest, heart failure and myocardial infarction",
] * 30


@pytest.fixture(scope="module")
def matrix():
    return np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32)


@pytest.fixture(scope="module")
def fasttext():
    sentences = [text.lower().split() for text in TEXTS] + [["naïve", "μ-opioid"]] * 5
    return FastText(sentences, vector_size=8, min_count=2, epochs=2, bucket=500, workers=1, seed=1)


def write_word2vec(path, matrix, binary, newline=b""):
    rows = [f"{len(WORDS)} {matrix.shape[1]}\n".encode()]
    for word, vector in zip(WORDS, matrix, strict=True):
        text = " ".join(repr(float(value)) for value in vector).encode() + b"\n"
        rows.append(word.encode() + b" " + (vector.tobytes() + newline if binary else text))
    path.write_bytes(b"".join(rows))
    return path


def assert_vectors(vectors, matrix):
    found = dict(zip(vectors.words, vectors.matrix, strict=True))
    assert set(found) == {"heart", "liver", "naïve", "il-6", "kidney"}
    for word, row in {"heart": 5, "liver": 2, "naïve": 3, "il-6": 4, "kidney": 6}.items():
        np.testing.assert_allclose(found[word], matrix[row], rtol=1e-6)
    assert vectors.matrix.dtype == np.float32


WANTED = ["[PAD]", "[UNK]", "liver", "heart", "il-6", "naïve", "kidney", "spleen"]


@pytest.mark.parametrize("block_sizes", [(1 << 16, 1 << 24), (130, 40)])
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", ["text", "glove", "binary", "binary with line breaks", "gensim binary"])
def test_every_layout_gives_the_wanted_words(tmp_path, matrix, monkeypatch, kind, zipped, block_sizes):
    monkeypatch.setattr(word_vector_files, "_MAX_WORD", block_sizes[0])
    monkeypatch.setattr(word_vector_files, "_CHUNK", block_sizes[1])
    path = tmp_path / "vectors"
    if kind == "gensim binary":
        keyed = KeyedVectors(5)
        keyed.add_vectors(WORDS, matrix)
        keyed.save_word2vec_format(str(path), binary=True)
    else:
        write_word2vec(path, matrix, kind.startswith("binary"), b"\n" if "breaks" in kind else b"")
    if kind == "glove":
        path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    if zipped:
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert_vectors(read_word_vectors(path, WANTED), matrix)


def test_a_long_first_line_is_still_text(tmp_path):
    vector = np.random.default_rng(0).standard_normal(6000)
    path = tmp_path / "wide.vec"
    path.write_text("1 6000\nheart " + " ".join(map(str, vector)) + "\n")
    assert path.stat().st_size > 1 << 16
    np.testing.assert_allclose(read_word_vectors(path, ["heart"]).matrix[0], vector, rtol=1e-6)


def test_fasttext_model_gives_known_and_composed_words(tmp_path, fasttext):
    path = tmp_path / "model.bin"
    save_facebook_model(fasttext, str(path))
    wanted = ["renal", "hypertension", "naïve", "hypertensive", "μ-receptor", "ab"]
    vectors = read_word_vectors(path, wanted)
    assert sorted(vectors.words) == sorted(wanted)
    assert "hypertensive" not in fasttext.wv.key_to_index
    for word, vector in zip(vectors.words, vectors.matrix, strict=True):
        np.testing.assert_allclose(vector, fasttext.wv[word], rtol=1e-4, atol=1e-6, err_msg=word)


def test_fasttext_model_without_ngrams_composes_nothing(tmp_path):
    model = FastText([text.lower().split() for text in TEXTS], vector_size=4, min_count=2, max_n=0, epochs=1)
    path = tmp_path / "model.bin"
    save_facebook_model(model, str(path))
    vectors = read_word_vectors(path, ["renal", "hypertensive"])
    assert vectors.words == ["renal"]
    np.testing.assert_allclose(vectors.matrix[0], model.wv["renal"], rtol=1e-4)


def test_bad_fasttext_models_are_named(tmp_path, fasttext):
    path = tmp_path / "model.bin"
    save_facebook_model(fasttext, str(path))
    good = path.read_bytes()
    for size in (6, 70, 95, 300, len(good) // 2 - 600):
        path.write_bytes(good[:size])
        with pytest.raises(InputError, match="damaged or cut off.*Fetch it again"):
            read_word_vectors(path, ["renal"])
    flag = good.index(struct.pack("<?2q", False, len(fasttext.wv) + 500, 8))
    path.write_bytes(good[:flag] + b"\x01" + good[flag + 1 :])
    with pytest.raises(InputError, match="quantised"):
        read_word_vectors(path, ["renal"])
    path.write_bytes(gzip.compress(good))
    with pytest.raises(InputError, match="gzipped fastText model"):
        read_word_vectors(path, ["renal"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"Dear reader, this is a letter.\nYours\n", "no word vector file"),
        (b"\x00\x01\x02\x03", "no word vector file"),
        (b"3 0\n", "no word vector file"),
        (b"2 3\nheart 1 2 3\n", "has 1 words, but its first line promises 2"),
        (b"2 3\nliver 1 2 3\nheart 1 2\n", r"word 2 \(heart\): 3 numbers"),
        (b"2 3\nliver 1 2 3\nheart 1 2 x\n", r"word 2 \(heart\): 3 numbers"),
        (b"2 3\nliver 1 2 3\nheart 1 2 nan\n", "no finite numbers"),
        (b"2 3\nheart " + bytes(11), "has 0 words, but its first line promises 2"),
        (b"2 3\nheart " + bytes(12) + b"liver ", "has 1 words, but its first line promises 2"),
        (b"2 3\n" + b"x" * 200_000, "the word has no end"),
        (b"1 3\nheart " + np.full(3, np.nan, "<f4").tobytes(), "no finite numbers"),
        (b"PK\x03\x04abc", "zip archive"),
        (b"\x80\x04\x95abc", "pickle.*save_word2vec_format"),
        (gzip.compress(b"2 3\nheart 1 2 3\n" * 50)[:-12], "damaged or cut-off gzip"),
    ],
)
def test_bad_files_are_named(tmp_path, content, message):
    path = tmp_path / "bad.vec"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_word_vectors(path, ["heart"])
    assert str(path) in str(caught.value)


def test_missing_file_and_wrong_folder_are_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_word_vectors(tmp_path / "absent.bin", ["heart"])
    with pytest.raises(InputError, match="holds no usable word_vectors.txt"):
        read_word_vectors(tmp_path, ["heart"])


def test_memory_does_not_grow_with_the_file(tmp_path):
    """A file of 200 MB is read in a process that may not take 150 MB more than it has after its imports."""
    path = tmp_path / "large.bin"
    with open(path, "wb") as file:
        file.write(b"250000 200\n")
        for number in range(250_000):
            file.write(b"w%d " % number + struct.pack("<f", number) * 200)
    script = (
        "import resource, sys\n"
        "from kenmesh_hf.words import read_word_vectors\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "vectors = read_word_vectors(sys.argv[1], ['w7', 'w249999'])\n"
        "print(vectors.matrix[:, 0].tolist(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    output = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    values, kilobytes = output.stdout.rsplit(" ", 1)
    assert values == "[7.0, 249999.0]"
    assert int(kilobytes) < 150_000


def test_embeddings_of_a_vocabulary(matrix):
    vocab = build_tokenizer(["heart", "spleen", "liver", "lung"]).get_vocab()
    table, coverage = build_embeddings(vocab, WordVectors(WORDS, matrix * 3), seed=4)
    assert table.shape == (6, 5) and table.dtype == np.float32 and coverage == 0.5
    np.testing.assert_array_equal(table[vocab["heart"]], matrix[5] * 3)
    np.testing.assert_array_equal(table[vocab["liver"]], matrix[2] * 3)
    assert not table[0].any() and table[1].any() and table[vocab["spleen"]].any()
    again, _ = build_embeddings(vocab, WordVectors(WORDS, matrix * 3), seed=4)
    np.testing.assert_array_equal(table, again)


def test_noise_is_as_wide_as_the_vectors(matrix):
    words = [f"word{number}" for number in range(3000)]
    vectors = WordVectors(["heart", "liver"], matrix[[5, 2]] * 7)
    table, _ = build_embeddings(build_tokenizer(["heart", "liver", *words]).get_vocab(), vectors)
    assert table[4:].std() == pytest.approx(vectors.matrix.std(), rel=0.05)


def test_vectors_of_another_language_are_refused(matrix):
    vocab = build_tokenizer(["herz", "leber"]).get_vocab()
    with pytest.raises(InputError, match="None of the 4 words"):
        build_embeddings(vocab, WordVectors(WORDS, matrix))


def test_training_is_repeatable_and_ordered():
    first = train_word_vectors(TEXTS, dim=8, epochs=2, seed=3, progress=False)
    second = train_word_vectors(iter(TEXTS), dim=8, epochs=2, seed=3, progress=False)
    assert first.words == second.words and first.matrix.shape == (len(first), 8)
    np.testing.assert_array_equal(first.matrix, second.matrix)
    assert first.words[:4] == ["failure", "renal", "cardiac", "heart"], "by count, then by alphabet"
    assert "the" not in first.words and "of" not in first.words
    other = train_word_vectors(TEXTS, dim=8, epochs=2, seed=5, progress=False)
    assert not np.array_equal(first.matrix, other.matrix)


def test_training_keeps_the_frequent_words_and_shows_progress(capsys):
    vectors = train_word_vectors(
        [*TEXTS, "rare word"], dim=4, epochs=2, max_words=4, skip_gram=False, workers=2
    )
    assert 0 < len(vectors) <= 4 and "rare" not in vectors.words
    assert "Word vectors: 100%" in capsys.readouterr().err


@pytest.mark.parametrize("texts", [[], ["", "the of"], ["each word once"]])
def test_nothing_to_train_on_is_said(texts):
    with pytest.raises(InputError, match="no word that occurs 3 times"):
        train_word_vectors(texts, progress=False)


def test_missing_gensim_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(DependencyError, match=r"kenmesh-hf\[train\]"):
        train_word_vectors(TEXTS)


def test_save_and_load(tmp_path, matrix):
    vectors = WordVectors(WORDS, matrix)
    vectors.save_pretrained(tmp_path)
    again = WordVectors.from_pretrained(tmp_path)
    assert again.words == WORDS
    np.testing.assert_array_equal(again.matrix, matrix)
    part = read_word_vectors(tmp_path, ["liver", "spleen"])
    assert part.words == ["liver"]
    np.testing.assert_array_equal(part.matrix, matrix[[2]])


def test_words_and_vectors_of_different_runs_are_refused(tmp_path, matrix):
    WordVectors(WORDS, matrix).save_pretrained(tmp_path)
    (tmp_path / "word_vectors.txt").write_text("heart\nliver\n")
    with pytest.raises(MismatchError, match="2 words for a matrix of shape"):
        WordVectors.from_pretrained(tmp_path)
