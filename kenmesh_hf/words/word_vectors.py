"""Word vectors as the network's start: trained on a corpus, or matched from a file to a vocabulary."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from tqdm.auto import tqdm

from ..errors import InputError, MismatchError, need
from ..modeling.text_kenmesh import PAD_TOKEN, UNK_TOKEN, content_words
from .word_vector_files import read_vector_file

_VECTORS_NAME = "word_vectors.safetensors"
_WORDS_NAME = "word_vectors.txt"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Distinct words and their vectors, float32 of shape `(words, dim)`."""

    words: list[str]
    matrix: np.ndarray

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or len(self.words) != len(self.matrix):
            raise MismatchError(
                f"There are {len(self.words):,} words for a matrix of shape {self.matrix.shape}. "
                "Word list and vectors must come from the same run; make them again."
            )

    def __len__(self) -> int:
        return len(self.words)

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Write `word_vectors.safetensors` and the word list `word_vectors.txt`, one word a line."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_file({"vectors": np.ascontiguousarray(self.matrix, dtype=np.float32)}, folder / _VECTORS_NAME)
        (folder / _WORDS_NAME).write_text("".join(f"{word}\n" for word in self.words), encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike) -> "WordVectors":
        """Read what `save_pretrained` wrote."""
        folder = Path(folder)
        try:
            text = (folder / _WORDS_NAME).read_text(encoding="utf-8")
            matrix = load_file(folder / _VECTORS_NAME)["vectors"]
        except (OSError, KeyError, UnicodeDecodeError, SafetensorError) as error:
            raise InputError(
                f"{folder} holds no usable {_WORDS_NAME} and {_VECTORS_NAME} ({error}). "
                "Give a folder that save_pretrained wrote, or a word2vec or fastText file."
            ) from error
        return cls(text.split("\n")[:-1], matrix)


def read_word_vectors(path: str | os.PathLike, words: Iterable[str]) -> WordVectors:
    """Read the vectors of `words` alone, in a memory that does not grow with the file.

    The format is found from the content: word2vec text or binary, GloVe text and fastText `.vec`, each also
    gzipped; fastText `.bin`, where words that it lacks are composed of their character n-grams; or a folder
    from `WordVectors.save_pretrained`. A word is taken as written, else in a spelling with capitals.
    """
    wanted = {word for word in words if word not in (PAD_TOKEN, UNK_TOKEN)}
    if Path(path).is_dir():
        stored = WordVectors.from_pretrained(path)
        rows = {word: row for row, word in enumerate(stored.words) if word in wanted}
        return WordVectors(list(rows), stored.matrix[list(rows.values())])
    return WordVectors(*read_vector_file(Path(path), wanted))


def build_embeddings(
    vocab: Mapping[str, int], vectors: WordVectors, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Make the embedding table of a vocabulary and tell the share of its words that have a vector.

    Words without a vector get normal noise as wide as the vectors, so that they neither shout nor vanish;
    `[PAD]` is zero.

    Args:
        vocab: Id of each word, as `tokenizer.get_vocab()` gives it.
        vectors: From `read_word_vectors` or `train_word_vectors`.
        seed: Of the noise.
    """
    rows = {word: row for row, word in enumerate(vectors.words) if word in vocab}
    if not rows:
        raise InputError(
            f"None of the {len(vocab):,} words of the vocabulary has a vector. "
            "Are the vectors of the same language as the texts?"
        )
    size = max(vocab.values()) + 1
    known = vectors.matrix[list(rows.values())].astype(np.float32)
    noise = np.random.default_rng(seed).standard_normal((size, known.shape[1]), dtype=np.float32)
    matrix = noise * known.std()
    matrix[[vocab[word] for word in rows]] = known
    matrix[vocab[PAD_TOKEN]] = 0
    countable = sum(word not in (PAD_TOKEN, UNK_TOKEN) for word in vocab)
    return matrix, len(rows) / countable


def train_word_vectors(
    texts: Iterable[str],
    *,
    dim: int = 200,
    window: int = 8,
    epochs: int = 10,
    min_count: int = 3,
    max_words: int | None = 80_000,
    negative: int = 5,
    skip_gram: bool = True,
    workers: int = 1,
    seed: int = 0,
    scratch: str | os.PathLike | None = None,
    progress: bool = True,
) -> WordVectors:
    """Train word2vec (skip-gram with negative sampling) on texts; words come the most frequent first.

    The words of the texts wait in a temporary file, so a corpus may be larger than the memory. One worker
    gives the same vectors each time; more are faster, but write to the same weights, so that runs differ.

    Args:
        texts: Training texts only, one an article; read once.
        dim: Length of a vector.
        window: Words on each side that a word predicts.
        epochs: Passes over the corpus.
        min_count: Rarer words get no vector.
        max_words: Most words to keep.
        negative: Noise words for each true one.
        skip_gram: False trains CBOW, which is faster and weaker on rare words.
        workers: Threads.
        seed: Of the start and the sampling.
        scratch: Folder of the temporary file; that of the system if None.
        progress: Show a bar over the epochs.
    """
    word2vec, callback = _import_gensim()
    descriptor, corpus = tempfile.mkstemp(suffix=".txt", prefix="kenmesh-words-", dir=scratch)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{' '.join(words)}\n" for text in texts if (words := content_words(text)))
        with tqdm(total=epochs, desc="Word vectors", unit="epoch", disable=not progress) as bar:
            model = word2vec(
                corpus_file=corpus,
                vector_size=dim,
                window=window,
                epochs=epochs,
                min_count=min_count,
                max_final_vocab=max_words,
                negative=negative,
                sample=1e-4,
                sg=int(skip_gram),
                workers=workers,
                seed=seed,
                callbacks=[callback(bar)],
            )
    except RuntimeError as error:
        raise InputError(
            f"The texts have no word that occurs {min_count} times, so there is nothing to train word "
            "vectors on. Give more texts or lower min_count."
        ) from error
    finally:
        os.unlink(corpus)
    keyed = model.wv
    order = sorted(keyed.index_to_key, key=lambda word: (-keyed.get_vecattr(word, "count"), word))
    return WordVectors(order, keyed.vectors[[keyed.key_to_index[word] for word in order]].astype(np.float32))


def check_word2vec() -> None:
    """Says that word vectors cannot be trained here, before the work that comes before it."""
    need("gensim", "train", "Training word vectors")


def _import_gensim():
    check_word2vec()
    from gensim.models import Word2Vec
    from gensim.models.callbacks import CallbackAny2Vec

    class EpochBar(CallbackAny2Vec):
        """Moves the bar on after each epoch."""

        def __init__(self, bar) -> None:
            self.bar = bar

        def on_epoch_end(self, model) -> None:
            self.bar.update()

    return Word2Vec, EpochBar
