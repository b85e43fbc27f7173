"""Texts enter; the words that a network knows, a tokenizer for them and their vectors leave."""

from .tokenization import build_tokenizer, build_vocabulary_words
from .word_vectors import WordVectors, build_embeddings, check_word2vec, read_word_vectors, train_word_vectors

__all__ = [
    "WordVectors",
    "build_embeddings",
    "build_tokenizer",
    "build_vocabulary_words",
    "check_word2vec",
    "read_word_vectors",
    "train_word_vectors",
]
