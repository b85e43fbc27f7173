"""`kenmesh prepare`: from NLM's files to a training set whose masks hold nothing of the article itself."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file
from tqdm.auto import tqdm

from ..errors import need
from ..files import unfinished
from ..indexing import ArticleDigest, DigestFiles, build_lexicon, build_tables, check_no_leak, fit_ranker
from ..mesh import read_qualifiers, read_vocabulary
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.checksums_kenmesh import write_checksums
from ..modeling.lexicon_kenmesh import Lexicon
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.tensors_kenmesh import save_tensors
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
from .articles import Mesh, article_file, prepare_articles
from .dataset import (
    ARTICLES_FOLDER,
    DATA_FOLDER,
    PROCESSOR_FOLDER,
    REPORT_FILE,
    VECTORS_FILE,
    column_bytes,
    encode_file,
    write_rows,
)
from .report import build_report, measure_candidates, write_report
from .stages import Engine, Job, Stage, Stages, file_state

STAGES_FOLDER = ".stages"
WORDS_FILE = "words.txt"
DIGESTS_FOLDER = "digests"
# What a digest holds; another name lets those of an earlier version be made again.
DIGESTED = "articles, words, terms, journals, headings"
# Files from which articles are drawn where some must do for all: reading them all again would take long.
SAMPLED_FILES = 20
# Texts that word vectors are trained on, each pass counted: few need several passes, many need one.
VECTOR_TEXTS, MOST_PASSES = 400_000, 10


def prepare(options: PrepareOptions, progress: bool = True, engine: Engine | None = None) -> dict[str, Any]:
    """Prepares a dataset, or goes on where an earlier run stopped.

    Every stage writes its result under its real name only when it is whole. A stage that is done with the
    same inputs and options is not done again; what depends on a changed option is.

    Args:
        options: What to prepare.
        progress: Show bars.
        engine: Where the work is done; on this machine by default.

    Returns:
        The report, which is also in `report.json` and, for people, in `report.md`.
    """
    options.check()
    _check_libraries(options)
    return _Preparation(options, progress, engine).run()


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

    def __init__(self, options: PrepareOptions, progress: bool, engine: Engine | None = None):
        self.options, self.progress = options, progress
        self.out = Path(options.out)
        self.stages = Stages(self.out / STAGES_FOLDER, engine)
        self.files: dict[str, list[int]] = {}

    def run(self) -> dict[str, Any]:
        # Without its report the folder is no finished dataset; it is written last.
        (self.out / REPORT_FILE).unlink(missing_ok=True)
        reading, divide = self.divide()
        vocabulary = read_vocabulary(self.options.mesh, self.options.mesh_trees)
        words = self._words(divide, vocabulary)
        vectors = self._vectors(divide, words)
        digests = self._digests(divide)
        processor = self._processor(words, vectors, digests, vocabulary)
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
                "digests": digests,
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

        inputs = [divide.fingerprint, options.min_count, options.max_words, self._mesh_state()]
        return self.stages.run("words", inputs, [target], work)

    def _mesh_state(self) -> list[Any]:
        return [file_state(path) for path in (self.options.mesh, self.options.mesh_trees) if path]

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
                    epochs=self._vector_passes(),
                    min_count=options.min_count,
                    workers=options.num_proc,
                    seed=options.seed,
                    scratch=self.stages.folder,
                    progress=self.progress,
                )
            matrix, known = build_embeddings(vocab, vectors, options.seed)
            save_tensors({"vectors": matrix}, target)
            return {"dim": matrix.shape[1], "words_with_vector": round(known, 4)}

        given = options.word_vectors and file_state(options.word_vectors)
        settings = given or [options.embedding_size, self._vector_passes(), options.seed]
        texts = [] if given else [file_state(path) for path in options.text]
        return self.stages.run("vectors", [words.fingerprint, settings, texts], [target], work)

    def _vector_passes(self) -> int:
        passes = round(VECTOR_TEXTS / max(sum(self.files["train"]), 1))
        return self.options.vector_epochs or min(max(passes, 1), MOST_PASSES)

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

    def _digests(self, divide: Stage) -> list[Stage]:
        """What the tables of candidates need of the training articles, file by file."""
        folder, mesh = self.stages.folder / DIGESTS_FOLDER, (self.options.mesh, self.options.mesh_trees)
        inputs, jobs = [divide.fingerprint, self._mesh_state(), DIGESTED], []
        for source, size in zip(self.article_files("train"), self.files["train"], strict=True):
            target = folder / source.name.replace(".jsonl.gz", ".safetensors")
            name = f"{DIGESTS_FOLDER}/{target.stem}"
            jobs.append(Job(name, [*inputs, source.name], target, make_digest, (mesh, source, target), size))
        return self._run_all(jobs, "Digesting")

    def _run_all(self, jobs: list[Job], what: str) -> list[Stage]:
        total = sum(job.weight for job in jobs)
        with tqdm(total=total, desc=what, unit=" articles", disable=not self.progress) as bar:
            return self.stages.run_all(jobs, self.options.num_proc, bar)

    def _processor(
        self, words: Stage, vectors: Stage, digests: list[Stage], vocabulary: MeshVocabulary
    ) -> Stage:
        options, target = self.options, self.out / PROCESSOR_FOLDER

        def work() -> dict[str, Any]:
            files = [self.stages.folder / f"{stage.name}.safetensors" for stage in digests]
            candidates = build_tables(
                DigestFiles(files),
                vocabulary,
                build_lexicon(vocabulary),
                options.candidate_options(),
                self._indexed_vectors(),
                self.progress,
            )
            fit_ranker(candidates, self._some_articles("train"), vocabulary, options.seed)
            checked = self._check_held_out(candidates)
            processor = KenMeSHProcessor(
                self._tokenizer(),
                options.max_title_words,
                options.max_abstract_words,
                candidates=candidates,
                vocabulary=vocabulary,
            )
            with unfinished(target) as folder:
                processor.save_pretrained(folder)
                if vocabulary.allowed_qualifiers:
                    read_qualifiers(vocabulary=vocabulary).save_pretrained(folder)
                    write_checksums(folder)
            return {
                "indexed": len(candidates.articles),
                "index": candidates.index.description,
                "held_out_checked": checked,
                "held_out_in_index": 0,
            }

        limits = [options.max_title_words, options.max_abstract_words]
        proposing = asdict(options.candidate_options())
        inputs = [words.fingerprint, proposing, limits, options.seed, KenMeSHCandidates.FEATURES]
        if options.index == "dense":
            inputs.append(vectors.fingerprint)
        return self.stages.run("processor", inputs, [target], work)

    def _check_held_out(self, candidates: KenMeSHCandidates) -> int:
        """Makes sure that no held-out article is in the index; gives their number."""
        checked = 0
        for path in (path for split in ("validation", "test") for path in self.article_files(split)):
            articles = list(read_articles(path, strict=True, every_version=True))
            check_no_leak(candidates, articles)
            checked += len(articles)
        return checked

    def _some_articles(self, split: str) -> list[Article]:
        """The articles of some files of a split; of all of them where they are few."""
        files = self.article_files(split)
        chosen = np.random.default_rng(self.options.seed).permutation(len(files))[:SAMPLED_FILES]
        return list(
            read_articles([files[number] for number in np.sort(chosen)], strict=True, every_version=True)
        )

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
        return self._run_all(jobs, "Rows")

    def _measure(self, processor: Stage) -> Stage:
        def work() -> dict[str, Any]:
            folder = str(self.out / PROCESSOR_FOLDER)
            splits = [split for split in SPLITS if self.files.get(split)]
            measured = {}
            for split in tqdm(splits, "Measuring candidates", unit=" splits", disable=not self.progress):
                articles, seed = self._some_articles(split), self.options.seed
                measured[split] = measure_candidates(
                    load_processor(folder, processor.fingerprint), articles, seed
                )
            return measured

        return self.stages.run("measure", [processor.fingerprint], [], work)


@lru_cache(maxsize=1)
def load_terms(mesh: Mesh) -> tuple[MeshVocabulary, Lexicon]:
    """A vocabulary and its terms, once in each process."""
    vocabulary = read_vocabulary(*mesh)
    return vocabulary, build_lexicon(vocabulary)


def make_digest(mesh: Mesh, source: Path, target: Path) -> dict[str, Any]:
    """Digests one file of articles."""
    articles = list(read_articles(source, strict=True, every_version=True))
    target.parent.mkdir(parents=True, exist_ok=True)
    ArticleDigest.of(articles, *load_terms(mesh)).save(target)
    return {"articles": len(articles)}


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
