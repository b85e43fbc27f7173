"""Readers of word2vec, GloVe and fastText files that keep only the words asked for."""

import gzip
import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from ..errors import InputError

_CHUNK = 1 << 24
_MAX_WORD = 1 << 16
_HEADER = re.compile(rb"(\d{1,12})[ \t]+(\d{1,6})[ \t\r]*\n")
_FASTTEXT_MAGIC = struct.pack("<i", 793712314)
_FASTTEXT_SUPERVISED = 3
_PICKLE = "a Python pickle; save it with gensim's save_word2vec_format and give that file"
# Beginnings of files that people hand over by mistake, and what to do with each.
_FOREIGN = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"BZh": "bzip2-compressed; unpack it first",
    b"\xfd7zXZ": "xz-compressed; unpack it first",
    b"\x93NUMPY": "a bare NumPy array without words; give a word2vec or fastText file",
    _FASTTEXT_MAGIC: "a gzipped fastText model, of which single rows cannot be read; unpack it first",
    **{bytes([0x80, protocol]): _PICKLE for protocol in range(2, 6)},
}


def read_vector_file(path: Path, wanted: set[str]) -> tuple[list[str], np.ndarray]:
    """Find the format of a file from its content; read the wanted words that it has and their vectors."""
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic == _FASTTEXT_MAGIC:
                words, matrix = _read_fasttext(file, path, wanted)
            elif magic[:2] == b"\x1f\x8b":
                words, matrix = _read_stream(cast(BinaryIO, gzip.open(file)), path, wanted)
            else:
                words, matrix = _read_stream(file, path, wanted)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is a damaged or cut-off gzip file ({error}). Fetch it again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not np.isfinite(matrix).all():
        raise InputError(f"{path} has vectors with values that are no finite numbers. Fetch the file again.")
    return words, matrix


def _read_stream(stream: BinaryIO, path: Path, wanted: set[str]) -> tuple[list[str], np.ndarray]:
    start = stream.read(_MAX_WORD)
    if not start.strip():
        raise InputError(f"{path} is empty. Give a word2vec, GloVe or fastText file.")
    for magic, advice in _FOREIGN.items():
        if start.startswith(magic):
            raise InputError(f"{path} is {advice}.")
    if header := _HEADER.match(start):
        count, dim, body = int(header[1]), int(header[2]), start[header.end() :]
    else:
        count, dim, body = None, len(start.split(b"\n", 1)[0].split()) - 1, start
    is_text = _is_text_row(body, dim)
    if dim < 1 or (count is None and not is_text):
        raise InputError(
            f"{path} is no word vector file: it begins neither with word2vec's line 'count dimensions' nor "
            "with a word and its numbers. Give a word2vec, GloVe or fastText file."
        )
    kept = _Kept(wanted, dim)
    rows = (_read_text if is_text else _read_binary)(_blocks(stream, body), path, kept)
    if count is not None and rows != count:
        raise InputError(
            f"{path} has {rows:,} words, but its first line promises {count:,}. Fetch the file again."
        )
    return kept.result()


def _is_text_row(body: bytes, dim: int) -> bool:
    line, newline, _ = body.partition(b"\n")
    fields = line.split()[1:]
    if not newline:  # the last number may be cut off
        fields = fields[: min(dim, len(fields) - (len(fields) < dim))]
    elif len(fields) != dim:
        return False
    try:
        return bool([float(field) for field in fields])
    except ValueError:
        return False


def _blocks(stream: BinaryIO, first: bytes) -> Iterator[bytes]:
    yield first
    while block := stream.read(_CHUNK):
        yield block


class _Kept:
    """The first vector of each wanted word; the exact spelling wins over one with capitals."""

    def __init__(self, wanted: set[str], dim: int) -> None:
        self.dim = dim
        self._wanted = {word.encode() for word in wanted}
        self._exact: dict[bytes, np.ndarray] = {}
        self._folded: dict[bytes, np.ndarray] = {}

    def wants(self, word: bytes) -> bool:
        return word in self._wanted or word.lower() in self._wanted

    def add(self, word: bytes, vector: np.ndarray) -> None:
        if word in self._wanted:
            self._exact.setdefault(word, vector)
        else:
            self._folded.setdefault(word.lower(), vector)

    def result(self) -> tuple[list[str], np.ndarray]:
        merged = self._folded | self._exact
        matrix = np.array(list(merged.values()), dtype=np.float32).reshape(len(merged), self.dim)
        return [word.decode() for word in merged], matrix


def _read_text(blocks: Iterator[bytes], path: Path, kept: _Kept) -> int:
    rows = 0
    for line in _lines(blocks):
        word, _, numbers = line.partition(b" ")
        if not line.strip():
            continue
        rows += 1
        if kept.wants(word):
            try:
                vector = np.array([float(number) for number in numbers.split()], dtype=np.float32)
            except ValueError:
                vector = np.empty(0, dtype=np.float32)
            if len(vector) != kept.dim:
                raise InputError(
                    f"{path}, word {rows:,} ({word.decode()}): {kept.dim} numbers should follow it, but do "
                    "not. Fetch the file again."
                )
            kept.add(word, vector)
    return rows


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    yield rest


def _read_binary(blocks: Iterator[bytes], path: Path, kept: _Kept) -> int:
    rows, rest, width = 0, b"", 4 * kept.dim
    for block in blocks:
        data, position = rest + block, 0
        while (space := data.find(b" ", position)) >= 0 and space + 1 + width <= len(data):
            # word2vec.c ends each vector with a line break, gensim does not.
            word = data[position:space].lstrip(b"\n")
            if kept.wants(word):
                kept.add(word, np.frombuffer(data, "<f4", kept.dim, space + 1).copy())
            position = space + 1 + width
            rows += 1
        rest = data[position:]
        if len(rest) > _MAX_WORD + width:
            raise InputError(f"{path}, word {rows + 1:,}: the word has no end. Fetch the file again.")
    return rows


def _read_fasttext(file: BinaryIO, path: Path, wanted: set[str]) -> tuple[list[str], np.ndarray]:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _FastText(data, path).read(wanted)
        except (struct.error, ValueError, IndexError) as error:
            raise InputError(
                f"{path} begins like a fastText model, but is damaged or cut off ({error}). Fetch it again."
            ) from error


class _FastText:
    """A fastText `.bin` model in place: arguments, dictionary, a row for each word and n-gram bucket."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data = data
        version, self.dim = struct.unpack_from("<2i", data, 4)
        model, self.bucket, self.minn, self.maxn = struct.unpack_from("<4i", data, 36)
        if version == 11 and model == _FASTTEXT_SUPERVISED:
            self.maxn = 0  # these were trained without n-grams, whatever the file says
        self.entries, self.words, _, _, self.pruned = struct.unpack_from("<3i2q", data, 64)
        self.path = path

    def read(self, wanted: set[str]) -> tuple[list[str], np.ndarray]:
        spellings = {word.encode() for word in wanted}
        ids, offset = self._find_words(spellings)
        buckets, offset = self._find_buckets(offset)
        table = self._open_table(offset)
        words, vectors = [], []
        for spelling in sorted(spellings):
            rows = [ids[spelling]] if spelling in ids else []
            for bucket in self._ngram_buckets(spelling):
                if buckets is None or bucket in buckets:
                    rows.append(self.words + (bucket if buckets is None else buckets[bucket]))
            if rows:
                words.append(spelling.decode())
                vectors.append(table[rows].mean(axis=0))
        return words, np.array(vectors, dtype=np.float32).reshape(len(words), self.dim)

    def _find_words(self, spellings: set[bytes]) -> tuple[dict[bytes, int], int]:
        exact: dict[bytes, int] = {}
        folded: dict[bytes, int] = {}
        position = 92
        for number in range(self.entries):
            end = self.data.find(b"\0", position)
            if end < 0:
                raise ValueError("the dictionary has no end")
            word = self.data[position:end]
            position = end + 10  # the closing zero, the count in 8 bytes, the kind in 1
            if number >= self.words:
                continue  # labels of a classifier stand after the words
            if word in spellings:
                exact[word] = number
            elif (lower := word.lower()) in spellings:
                folded.setdefault(lower, number)
        return folded | exact, position

    def _find_buckets(self, position: int) -> tuple[dict[int, int] | None, int]:
        # -1 means that no bucket was pruned; otherwise only the listed ones have a row.
        if self.pruned < 0:
            return None, position
        pairs = np.frombuffer(self.data, "<i4", 2 * self.pruned, position).reshape(-1, 2)
        return dict(pairs.tolist()), position + 8 * self.pruned

    def _open_table(self, position: int) -> np.ndarray:
        if self.data[position]:
            raise InputError(
                f"{self.path} is a quantised fastText model without plain vectors. "
                "Give the full .bin or the .vec."
            )
        rows, dim = struct.unpack_from("<2q", self.data, position + 1)
        if dim != self.dim or rows < self.words or position + 17 + 4 * rows * dim > len(self.data):
            raise ValueError("the matrix does not fit the header")
        return np.memmap(self.path, "<f4", "r", position + 17, (rows, dim))

    def _ngram_buckets(self, word: bytes) -> Iterator[int]:
        if self.maxn < 1 or self.bucket < 1:
            return
        characters = [character.encode() for character in f"<{word.decode()}>"]
        for start in range(len(characters)):
            for length in range(max(self.minn, 1), min(self.maxn, len(characters) - start) + 1):
                if length == 1 and start in (0, len(characters) - 1):
                    continue  # the signs for beginning and end are no n-grams of their own
                yield _fasttext_hash(b"".join(characters[start : start + length])) % self.bucket


def _fasttext_hash(ngram: bytes) -> int:
    # FNV-1a as fastText has it, where a byte is signed before it is widened.
    value = 2166136261
    for byte in ngram:
        value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return value
