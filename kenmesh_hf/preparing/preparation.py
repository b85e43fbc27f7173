"""`kenmesh prepare`: from NLM's files to a training set whose masks hold nothing of the article itself."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file
from tqdm.auto import tqdm

from ..errors import need
from ..files import unfinished
from ..indexing import build_candidates, check_no_leak
from ..mesh import read_vocabulary
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..options import PrepareOptions
from ..reading import Article, PmidSet, read_articles
from ..sharing import SPLITS
from ..showing import check_plots
from ..words import (
    build_embeddings,
    build_tokenizer,
    build_vocabulary_words,
    check_word2vec,
    read_word_vectors,
    train_word_vectors,
)
from .articles import ARTICLES_FOLDER, article_file, prepare_articles
from .dataset import (
    PROCESSOR_FOLDER,
    REPORT_FILE,
    VECTORS_FILE,
    column_bytes,
    encode_file,
    write_rows,
)
from .report import build_report, measure_candidates, write_report
from .stages import Job, Stage, Stages, file_state

STAGES_FOLDER = ".stages"
DATA_FOLDER = "data"
WORDS_FILE = "words.txt"


def prepare(options: PrepareOptions, progress: bool = True) -> dict[str, Any]:
    """Prepares a dataset, or goes on where an earlier run stopped.

    Every stage writes its result under its real name only when it is whole. A stage that is done with the
    same inputs and options is not done again; what depends on a changed option is.

    Args:
        options: What to prepare.
        progress: Show bars.

    Returns:
        The report, which is also in `report.json` and, for people, in `report.md`.
    """
    options.check()
    _check_libraries(options)
    return _Preparation(options, progress).run()


def _check_libraries(options: PrepareOptions) -> None:
    """Tells what is missing before hours of reading."""
    check_plots()
    if not options.word_vectors:
        check_word2vec()
    if options.index == "dense":
        need("faiss", "cpu", "The dense neighbour index")


class Division(NamedTuple):
    """Articles divided into sets.

    Attributes:
        files: Article files of each split.
        fingerprint: Changes with what is in them.
    """

    files: dict[str, list[Path]]
    fingerprint: str


def divide_articles(options: PrepareOptions, progress: bool = True) -> Division:
    """The first half of `prepare` alone: reads the articles and divides them."""
    options.check()
    preparation = _Preparation(options, progress)
    _, divide = preparation.divide()
    return Division({split: preparation.article_files(split) for split in SPLITS}, divide.fingerprint)


class _Preparation:
    """The stages of one run, in their order."""

    def __init__(self, options: PrepareOptions, progress: bool):
        self.options, self.progress = options, progress
        self.out = Path(options.out)
        self.stages = Stages(self.out / STAGES_FOLDER)
        self.files: dict[str, list[int]] = {}

    def run(self) -> dict[str, Any]:
        # Without its report the folder is no finished dataset; it is written last.
        (self.out / REPORT_FILE).unlink(missing_ok=True)
        reading, divide = self.divide()
        vocabulary = read_vocabulary(self.options.mesh, self.options.mesh_trees)
        words = self._words(divide, vocabulary)
        vectors = self._vectors(divide, words)
        processor = self._processor(words, vectors, vocabulary)
        rows = self._rows(processor)
        measured = self._measure(processor)
        report = build_report(
            self.options,
            vocabulary,
            {
                "read": reading,
                "divide": [divide],
                "words": [words],
                "word vectors": [vectors],
                "candidates": [processor],
                "rows": rows,
                "measure": [measured],
            },
            self._data_files(),
        )
        write_report(report, self.out)
        return report

    def divide(self) -> tuple[list[Stage], Stage]:
        """The stages that read and divide; what comes after works on their files."""
        reading, divide = prepare_articles(self.stages, self.options, self.progress)
        self.files = divide.result["files"]
        return reading, divide

    def article_files(self, split: str) -> list[Path]:
        """Files of divided articles."""
        folder = self.out / ARTICLES_FOLDER
        return [article_file(folder, split, number) for number in range(len(self.files.get(split, [])))]

    def _data_files(self) -> dict[str, list[Path]]:
        folder = self.out / DATA_FOLDER
        return {
            split: [folder / f"{split}-{number:05d}.parquet" for number in range(len(sizes))]
            for split, sizes in self.files.items()
            if sizes
        }

    def _articles(self, *splits: str) -> Iterator[Article]:
        for split in splits:
            yield from read_articles(self.article_files(split), strict=True, every_version=True)

    def _texts(self, what: str) -> Iterator[str]:
        bar = tqdm(desc=what, total=sum(self.files["train"]), unit=" articles", disable=not self.progress)
        with bar:
            for article in self._articles("train"):
                yield f"{article.title} {article.abstract}"
                bar.update()

    def _words(self, divide: Stage, vocabulary: MeshVocabulary) -> Stage:
        options, target = self.options, self.stages.folder / WORDS_FILE

        def work() -> dict[str, Any]:
            words = build_vocabulary_words(
                self._texts("Counting words"), options.min_count, options.max_words, vocabulary.names
            )
            with unfinished(target) as path:
                path.write_text("\n".join(words), encoding="utf-8")
            return {"words": len(words)}

        mesh = [file_state(path) for path in (options.mesh, options.mesh_trees) if path]
        return self.stages.run(
            "words", [divide.fingerprint, options.min_count, options.max_words, mesh], [target], work
        )

    def _tokenizer(self) -> Any:
        words = (self.stages.folder / WORDS_FILE).read_text(encoding="utf-8").split("\n")
        return build_tokenizer(words, self.options.max_abstract_words)

    def _vectors(self, divide: Stage, words: Stage) -> Stage:
        options, target = self.options, self.out / VECTORS_FILE

        def work() -> dict[str, Any]:
            vocab = self._tokenizer().get_vocab()
            if options.word_vectors:
                vectors = read_word_vectors(options.word_vectors, vocab)
            else:
                vectors = train_word_vectors(
                    self._vector_texts(),
                    dim=options.embedding_size,
                    epochs=options.vector_epochs,
                    min_count=options.min_count,
                    workers=options.num_proc,
                    seed=options.seed,
                    progress=self.progress,
                )
            matrix, known = build_embeddings(vocab, vectors, options.seed)
            with unfinished(target) as path:
                save_file({"vectors": matrix}, path)
            return {"dim": matrix.shape[1], "words_with_vector": round(known, 4)}

        given = options.word_vectors and file_state(options.word_vectors)
        settings = given or [options.embedding_size, options.vector_epochs, options.seed]
        texts = [] if given else [file_state(path) for path in options.text]
        return self.stages.run("vectors", [words.fingerprint, settings, texts], [target], work)

    def _vector_texts(self) -> Iterator[str]:
        """Texts of the training set and of the files for text alone, but of no article that is held out."""
        yield from self._texts("Texts for word vectors")
        held_out = PmidSet(article.pmid for article in self._articles("validation", "test") if article.pmid)
        for article in read_articles(self.options.text, strict=self.options.strict):
            if not article.pmid or article.pmid not in held_out:
                yield f"{article.title} {article.abstract}"

    def _indexed_vectors(self) -> tuple[list[str], np.ndarray] | None:
        """Words with their vectors, if the neighbour index is made of them."""
        if self.options.index != "dense":
            return None
        vocab = self._tokenizer().get_vocab()
        return sorted(vocab, key=vocab.__getitem__), load_file(self.out / VECTORS_FILE)["vectors"]

    def _processor(self, words: Stage, vectors: Stage, vocabulary: MeshVocabulary) -> Stage:
        options, target = self.options, self.out / PROCESSOR_FOLDER

        def work() -> dict[str, Any]:
            bar = tqdm(
                self._articles("train"), "Indexing", sum(self.files["train"]), disable=not self.progress
            )
            candidates = build_candidates(
                list(bar),
                vocabulary,
                options.candidate_options(),
                options.seed,
                self._indexed_vectors(),
                self.progress,
            )
            held_out = list(self._articles("validation", "test"))
            check_no_leak(candidates, held_out)
            processor = KenMeSHProcessor(
                self._tokenizer(),
                options.max_title_words,
                options.max_abstract_words,
                candidates=candidates,
                vocabulary=vocabulary,
            )
            with unfinished(target) as folder:
                processor.save_pretrained(folder)
            return {
                "indexed": len(candidates.articles),
                "held_out_checked": len(held_out),
                "held_out_in_index": 0,
            }

        limits = [options.max_title_words, options.max_abstract_words]
        proposing = asdict(options.candidate_options())
        inputs = [words.fingerprint, proposing, limits, options.seed, KenMeSHCandidates.FEATURES]
        if options.index == "dense":
            inputs.append(vectors.fingerprint)
        return self.stages.run("processor", inputs, [target], work)

    def _rows(self, processor: Stage) -> list[Stage]:
        data, jobs = self._data_files(), []
        for split, targets in data.items():
            for source, target, size in zip(
                self.article_files(split), targets, self.files[split], strict=True
            ):
                arguments = (str(self.out / PROCESSOR_FOLDER), processor.fingerprint, source, target)
                inputs = [processor.fingerprint, source.name]
                jobs.append(Job(f"rows/{target.stem}", inputs, target, make_rows, arguments, size))
        wanted = {path for paths in data.values() for path in paths}
        for path in (self.out / DATA_FOLDER).glob("*.parquet*"):
            if path not in wanted:
                path.unlink()
        total = sum(job.weight for job in jobs)
        with tqdm(total=total, desc="Rows", unit=" articles", disable=not self.progress) as bar:
            return self.stages.run_all(jobs, self.options.num_proc, bar)

    def _measure(self, processor: Stage) -> Stage:
        def work() -> dict[str, Any]:
            folder = str(self.out / PROCESSOR_FOLDER)
            articles = {split: list(self._articles(split)) for split in SPLITS if self.files.get(split)}
            return measure_candidates(
                load_processor(folder, processor.fingerprint), articles, self.options.seed, self.progress
            )

        return self.stages.run("measure", [processor.fingerprint], [], work)


@lru_cache(maxsize=1)
def load_processor(folder: str, fingerprint: str) -> KenMeSHProcessor:
    """The processor, once in each process."""
    return KenMeSHProcessor.from_pretrained(folder)


def make_rows(folder: str, fingerprint: str, source: Path, target: Path) -> dict[str, Any]:
    """Rows of one file of articles, and how much room the candidates take."""
    with unfinished(target) as path:
        write_rows(encode_file(load_processor(folder, fingerprint), source), path)
    candidates, ids = column_bytes(target, "candidate_ids")
    _, numbers = column_bytes(target, "candidate_features")
    return {"candidates": candidates, "candidate_bytes": ids, "feature_bytes": numbers}
