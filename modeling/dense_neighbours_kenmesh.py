"""The paper's neighbours (eq. 8): cosine of IDF-weighted means of word vectors, searched with FAISS."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .postings_kenmesh import find_terms
from .word_counts_kenmesh import TermCounts

try:
    import faiss
except ImportError:  # the sparse index needs no FAISS
    faiss = None  # type: ignore[assignment]

FAISS_FILE = "neighbours.faiss"
# Up to this many articles an exact search takes milliseconds; beyond, a graph that finds nearly all does.
EXACT_SIZE = 200_000
GRAPH_LINKS = 32
# Queries on which a graph is compared with the exact search while it is built, and the share it must find.
CHECKED, LEAST_RECALL = 200, 0.95


def need_faiss() -> Any:
    """The library, or a sentence that says how to get it."""
    if faiss is None:
        raise ImportError(
            "Dense neighbours need FAISS: pip install 'kenmesh-hf[cpu]' (or [gpu]), or use the sparse index."
        )
    return faiss


class DenseNeighbours:
    """Mean word vectors of the training articles in a FAISS index.

    Args:
        tensors: Hashes of known words in order (`words`), their weights (`idf`) and vectors (`vectors`).
        index: The FAISS index.
    """

    def __init__(self, tensors: dict[str, np.ndarray], index: Any):
        self.tensors = tensors
        self.words, self.idf = tensors["words"], tensors["idf"].astype(np.float64)
        self.vectors = tensors["vectors"]
        self.index = index

    @property
    def description(self) -> str:
        """How neighbours are found, for people."""
        kind = type(self.index).__name__
        return f"mean word vectors of {self.index.ntotal:,} articles in FAISS ({kind})"

    @classmethod
    def build(
        cls, parts: Iterable[TermCounts], words: np.ndarray, vectors: np.ndarray, exact_size: int = EXACT_SIZE
    ) -> "DenseNeighbours":
        """Indexes articles.

        Args:
            parts: Their words, some articles at a time; gone through twice.
            words: Hash of each word that has a vector; of equal ones the mean is taken.
            vectors: `(words, dim)`.
            exact_size: More articles than this are searched through a graph.
        """
        known, place = np.unique(words, return_inverse=True)
        means = np.zeros((len(known), vectors.shape[1]))
        np.add.at(means, place, vectors)
        means /= np.bincount(place)[:, None]
        frequency = np.zeros(len(known))
        size = 0
        for counts in parts:
            found, there = find_terms(counts.hashes, known)
            np.add.at(frequency, found[there], 1)
            size += counts.size
        tensors = {
            "words": known,
            "idf": np.log((size + 1) / (frequency + 1)).astype(np.float32),
            "vectors": means.astype(np.float16),
        }
        neighbours = cls(tensors, None)
        neighbours.index = build_index(np.concatenate([*map(neighbours.embed, parts)]), exact_size)
        return neighbours

    def grow(self, counts: TermCounts) -> "DenseNeighbours":
        """The index with more articles; how rare a word is stays as it was."""
        stored = self.index.reconstruct_n(0, self.index.ntotal)
        return DenseNeighbours(
            self.tensors, build_index(np.concatenate([stored, self.embed(counts)]), EXACT_SIZE)
        )

    def embed(self, counts: TermCounts) -> np.ndarray:
        """`Σ idf·e / Σ idf` of each article at unit length, `(articles, dim)`; zero without a known word."""
        place, known = find_terms(counts.hashes, self.words)
        row = np.repeat(np.arange(len(counts.offsets) - 1), np.diff(counts.offsets))[known]
        weight = counts.counts[known] * self.idf[place[known]]
        total = np.zeros((len(counts.offsets) - 1, self.vectors.shape[1]))
        np.add.at(total, row, weight[:, None] * self.vectors[place[known]])
        length = np.linalg.norm(total, axis=1, keepdims=True)
        return np.divide(total, length, out=np.zeros_like(total), where=length > 0).astype(np.float32)

    def search(
        self, counts: TermCounts, k: int, exclude: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Nearest training articles of each query, itself left out, with their cosines, nearest first."""
        more = max((len(own) for own in exclude), default=0)
        similarities, articles = self.index.search(self.embed(counts), min(k + more, self.index.ntotal))
        found = []
        for own, near, cosine in zip(exclude, articles, similarities, strict=True):
            keep = (near >= 0) & (cosine > 0) & ~np.isin(near, own)
            found.append((near[keep][:k].astype(np.int64), cosine[keep][:k].astype(np.float64)))
        return found

    def similarities(
        self, hashes: np.ndarray, counts: np.ndarray, near: np.ndarray, own: np.ndarray
    ) -> np.ndarray:
        """Cosines of indexed articles with variants of a query; see `SparseNeighbours.similarities`."""
        words, variants = np.nonzero(counts.T > 0)[::-1]
        queries = TermCounts(
            hashes[words], counts[words, variants], np.searchsorted(variants, np.arange(counts.shape[1] + 1))
        )
        stored = np.stack([self.index.reconstruct(int(article)) for article in near])
        return np.maximum(stored @ self.embed(queries).T, 0)

    def save_index(self, folder: str | os.PathLike) -> None:
        """Writes the FAISS index; the arrays are stored with the candidates' others."""
        need_faiss().write_index(_on_cpu(self.index), str(Path(folder) / FAISS_FILE))

    @classmethod
    def load(cls, tensors: dict[str, np.ndarray], folder: str | os.PathLike) -> "DenseNeighbours":
        """Reads the index without copying it into memory, where its kind allows that."""
        library, path = need_faiss(), str(Path(folder) / FAISS_FILE)
        try:
            index = library.read_index(path, library.IO_FLAG_MMAP | library.IO_FLAG_READ_ONLY)
        except RuntimeError:
            index = library.read_index(path)
        return cls(tensors, index)


def build_index(vectors: np.ndarray, exact_size: int) -> Any:
    """An exact index for few vectors, a graph for many; on the GPU where FAISS has one."""
    library = need_faiss()
    exact = library.IndexFlatIP(vectors.shape[1])
    exact.add(vectors)
    if len(vectors) <= exact_size:
        return _on_gpu(exact)
    graph = library.IndexHNSWFlat(vectors.shape[1], GRAPH_LINKS, library.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 200
    graph.add(vectors)
    graph.hnsw.efSearch = 64
    while graph_recall(graph, exact, vectors) < LEAST_RECALL and graph.hnsw.efSearch < len(vectors):
        graph.hnsw.efSearch *= 2
    return graph


def graph_recall(graph: Any, exact: Any, vectors: np.ndarray, k: int = 100) -> float:
    """Share of the true nearest neighbours that the graph finds for some of its own vectors."""
    chosen = np.linspace(0, len(vectors) - 1, min(CHECKED, len(vectors))).astype(np.int64)
    k = min(k, len(vectors))
    truth, found = exact.search(vectors[chosen], k)[1], graph.search(vectors[chosen], k)[1]
    return float(np.mean([np.isin(right, near).mean() for right, near in zip(truth, found, strict=True)]))


def _on_gpu(index: Any) -> Any:
    library = need_faiss()
    if not getattr(library, "get_num_gpus", int)():
        return index
    return library.index_cpu_to_gpu(library.StandardGpuResources(), 0, index)


def _on_cpu(index: Any) -> Any:
    library = need_faiss()
    return library.index_gpu_to_cpu(index) if "Gpu" in type(index).__name__ else index


__all__ = ["DenseNeighbours"]
