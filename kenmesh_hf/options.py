"""What long work is told, with one description an option: command line and documentation take it from here.

They stand apart from the work itself so that help comes at once, before torch and transformers are loaded.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from .errors import InputError
from .modeling.proposals_kenmesh import CandidateOptions

# Without evidence nothing else says at first that most candidates are wrong.
START_BIAS = -5.0


def option(default: Any, help: str) -> Any:
    """A dataclass field with a description; a list or dict is copied for each object."""
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata={"help": help})
    return field(default=default, metadata={"help": help})


@dataclass
class PrepareOptions:
    """What to prepare, from what, and how."""

    mesh: str = option("", "MeSH: descYYYY.xml(.gz), dYYYY.bin or a table")
    out: str = option("", "folder of the prepared dataset")
    pubmed: list[str] = option([], "PubMed XML files, or folders of them")
    pmc: list[str] = option(
        [], "BioC-PMC files, folders or archives: only citations of these articles are taken"
    )
    articles: list[str] = option([], "labelled articles in any other format, such as JSONL")
    headings: list[str] = option(
        [], "files with the headings of the same citations, joined by PMID: major topics and qualifiers"
    )
    mesh_trees: str | None = option(None, "mtreesYYYY.bin, if the MeSH file has no tree numbers")
    validation: str | None = option(None, "validation articles, taken as they are; then nothing is split off")
    test: str | None = option(None, "test articles, taken as they are; then nothing is split off")
    validation_size: int = option(1500, "articles before the test set in time that become the validation set")
    test_size: int = option(1500, "newest articles, which become the test set")
    split_by: Literal["date", "pmid"] = option("date", "newest by date of publication, or by PMID")
    title_only: bool = option(False, "train on citations without abstract, too; they are never held out")
    human_only: bool = option(True, "leave out citations whose headings a program chose")
    strict: bool = option(False, "stop at the first record that cannot be read")
    max_words: int = option(60_000, "most words the network knows")
    min_count: int = option(
        3, "a word of fewer occurrences in training texts is unknown, unless MeSH names have it"
    )
    max_title_words: int = option(100, "titles are cut here")
    max_abstract_words: int = option(400, "abstracts are cut here")
    embedding_size: int = option(128, "length of a word vector that is trained")
    word_vectors: str | None = option(
        None, "word2vec or fastText file to take vectors from instead of training them"
    )
    vector_epochs: int | None = option(
        None, "passes over the texts when word vectors are trained (10, fewer over more than 40,000 texts)"
    )
    text: list[str] = option([], "more article files, whose texts only train word vectors")
    sources: list[str] = option(list(CandidateOptions().sources), "what proposes candidates")
    index: str = option("sparse", "how neighbours are found: sparse (weighted words) or dense (FAISS)")
    neighbours: int = option(CandidateOptions().neighbours, "nearest training articles that vote")
    words: int = option(CandidateOptions().words, "labels that fit the article's words best")
    journal_threshold: float = option(
        CandidateOptions().journal_threshold,
        "a label with a greater share of its journal's articles is a candidate",
    )
    max_candidates: int | None = option(CandidateOptions().max_candidates, "best candidates that are kept")
    recent: int = option(0, "articles of this year or later count more: their words, their headings")
    articles_per_file: int = option(2000, "articles in a file of the dataset, the unit of work for a process")
    num_proc: int = option(1, "processes")
    seed: int = option(0, "random seed")

    def check(self) -> None:
        """Refuses what cannot be prepared before any work is done."""
        for name, needed in (("mesh", "a MeSH file"), ("out", "a folder to write to")):
            if not getattr(self, name):
                raise InputError(f"Preparing needs {needed}; give --{name}.")
        if not self.pubmed and not self.articles:
            raise InputError("There are no articles to prepare; give --pubmed or --articles.")
        if self.pmc and not self.pubmed:
            raise InputError(
                "PMC articles have no headings of their own; give their citations with --pubmed."
            )
        given = [self.mesh, self.mesh_trees, self.validation, self.test, self.word_vectors]
        for path in (*given, *self.pubmed, *self.pmc, *self.articles, *self.headings, *self.text):
            if path and not Path(path).exists():
                raise InputError(f"{path} does not exist; check the path.")
        for name in ("max_words", "embedding_size", "articles_per_file", "num_proc", "vector_epochs"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(
                    f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be at least 1."
                )
        self.candidate_options()

    def candidate_options(self) -> CandidateOptions:
        """The same choices in the words of `KenMeSHCandidates`."""
        chosen = {
            field.name: getattr(self, field.name)
            for field in fields(CandidateOptions)
            if hasattr(self, field.name)
        }
        try:
            return CandidateOptions(**chosen)
        except ValueError as error:
            raise InputError(str(error)) from error


@dataclass
class RayOptions:
    """Where work is spread to. Without an address, over a Ray of this machine's own."""

    address: str | None = option(
        None, "Ray cluster: auto (where this machine is part of one), HOST:PORT or ray://HOST:10001"
    )
    workers: int | None = option(None, "workers, each with a core of its own (default: as many as there are)")
    gpus_per_worker: float | None = option(None, "GPUs of a worker; 0.25 lets four share one (default: none)")

    def check(self) -> None:
        """Refuses what cannot be before anything is started."""
        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers is {self.workers}; it must be at least 1.")
        if self.gpus_per_worker is not None and self.gpus_per_worker < 0:
            raise InputError(f"--gpus-per-worker is {self.gpus_per_worker:g}; it cannot be negative.")


@dataclass
class RayPrepareOptions(RayOptions):
    """The same for `kenmesh prepare`, and what the node must have on which it builds what is built once."""

    build_cpus: int = option(1, "cores for what is built once: words, vectors, index")
    build_memory: float | None = option(None, "gigabytes of memory that the node must have free for that")

    def check(self) -> None:
        super().check()
        if self.build_cpus < 1:
            raise InputError(f"--build-cpus is {self.build_cpus}; it must be at least 1.")
        if self.build_memory is not None and self.build_memory < 0:
            raise InputError(f"--build-memory is {self.build_memory:g}; it cannot be negative.")


@dataclass
class TrainingOptions:
    """How to train. The defaults are the paper's; `PRESETS` has others."""

    epochs: int = option(20, "most passes over the training articles")
    max_steps: int = option(0, "stop after this many steps; 0: after the epochs")
    patience: int = option(3, "stop after this many epochs without a better validation MiF")
    batch_size: int = option(32, "articles in a step of one process")
    learning_rate: float = option(3e-4, "Adam's learning rate in the first epoch")
    decay: float = option(0.9, "the learning rate is multiplied by this after every epoch")
    clip_norm: float = option(5.0, "largest norm of a gradient")
    average: float = option(
        0.0,
        "save a running mean of the weights; each step leaves this share of it, such as 0.999",
    )
    dropout: float = option(0.2, "dropout right after the word embeddings, and after an encoder")
    encoder: str | None = option(
        None,
        "folder or Hub name of a pretrained text encoder, such as a BERT, in place of word vectors, biLSTM "
        "and convolutions (beyond the paper; made for a GPU)",
    )
    encoder_tokens: int = option(512, "abstracts are cut here for an encoder, which may end earlier")
    encoder_learning_rate: float = option(3e-5, "learning rate of the encoder's last layer")
    layer_decay: float = option(0.9, "that rate is multiplied by this for each layer below the last")
    gradient_checkpointing: bool = option(False, "compute the encoder's layers twice to save memory")
    bf16: bool = option(False, "compute in bfloat16 on a CPU, too; a GPU that can does so anyhow")
    evidence: bool = option(False, "add what the numbers of a candidate say to its score (beyond the paper)")
    label_bias: bool = option(False, "learn a bias for each label")
    loss_labels: str = option("all", "labels the loss runs over: all, candidates or sampled")
    word_path: bool = option(
        False, "add the word vectors to what the biLSTM or encoder makes of them (beyond the paper)"
    )
    residual: bool = option(False, "add a convolution's input to its output")
    two_channels: bool = option(True, "off: read title and abstract as one text (ablation a)")
    convolutions: bool = option(True, "off: no dilated convolutions (ablation b)")
    label_graph: bool = option(True, "off: a free vector for each label (ablation c)")
    mask: bool = option(True, "off: every label is attended, candidate or not (ablation d)")
    title_only: bool = option(False, "train on citations without abstract, too, if the dataset has any")
    since: int = option(0, "leave out training articles known to be older than this year")
    validation_articles: int = option(5000, "validation articles that are scored, at most")
    num_workers: int = option(0, "processes that read rows ahead; they change the speed and nothing else")
    seed: int = option(1, "random seed")

    def check(self) -> None:
        """Refuses what cannot be trained before any work is done."""
        for name, least in (
            ("batch_size", 1),
            ("max_steps", 0),
            ("validation_articles", 1),
            ("num_workers", 0),
            ("encoder_tokens", 3),
        ):
            if getattr(self, name) < least:
                raise InputError(
                    f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be at least {least}."
                )
        if not 0 <= self.average < 1:
            raise InputError(f"--average is {self.average}; it must be at least 0 and below 1.")

    def network_settings(self) -> dict[str, Any]:
        """The same choices in the words of `KenMeSHConfig`."""
        return {
            "embedding_dropout": self.dropout,
            "label_bias": self.label_bias,
            "initial_label_bias": START_BIAS if self.label_bias and not self.evidence else 0.0,
            "word_path": self.word_path,
            "loss_labels": self.loss_labels,
            "residual_convolutions": self.residual,
            "two_channels": self.two_channels,
            "label_encoder": "gcn" if self.label_graph else "free",
            "mask_labels": self.mask,
        } | ({} if self.convolutions else {"dilation_rates": []})


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "small": {
        "epochs": 3,
        "patience": 2,
        "learning_rate": 1e-3,
        "decay": 0.5,
        "dropout": 0.3,
        "evidence": True,
        "label_bias": True,
        "loss_labels": "candidates",
        "word_path": True,
        "residual": True,
    },
}


def options_for(preset: str = "paper", **changes: Any) -> TrainingOptions:
    """The options of a preset, some of them changed."""
    if preset not in PRESETS:
        raise InputError(f"There is no preset {preset!r}; choose from {', '.join(PRESETS)}.")
    known = {item.name for item in fields(TrainingOptions)}
    if unknown := sorted(changes.keys() - known):
        raise InputError(
            f"There is no training option {unknown[0]!r}; the options are {', '.join(sorted(known))}."
        )
    return TrainingOptions(**(PRESETS[preset] | changes))
