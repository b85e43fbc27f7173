"""What `kenmesh prepare` is told, with one description an option."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from .errors import InputError
from .modeling.proposals_kenmesh import CandidateOptions
from .options import option


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
    vector_epochs: int = option(10, "passes over the texts when word vectors are trained")
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
        for path in (*given, *self.pubmed, *self.pmc, *self.articles, *self.text):
            if path and not Path(path).exists():
                raise InputError(f"{path} does not exist; check the path.")
        for name in ("max_words", "embedding_size", "articles_per_file", "num_proc", "vector_epochs"):
            if getattr(self, name) < 1:
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
