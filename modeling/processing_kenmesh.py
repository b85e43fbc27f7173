"""From an article's fields to everything the network takes: word ids, candidate labels and their evidence."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import snapshot_download
from transformers import BatchFeature, PreTrainedTokenizerFast, ProcessorMixin
from transformers.utils import logging

from .candidates_kenmesh import KenMeSHCandidates
from .checksums_kenmesh import check_checksums, is_weights, read_checksums, write_checksums
from .headings_kenmesh import KenMeSHHeadings
from .journals_kenmesh import Journal
from .pieces_kenmesh import Pieces, is_word_level
from .text_kenmesh import UNK_TOKEN, clear_tokenizer_state, content_spans, content_words, encode_words
from .thresholds_kenmesh import THRESHOLDS_NAME, Thresholds
from .vocabulary_kenmesh import VOCABULARY_FILE, MeshVocabulary

logger = logging.get_logger(__name__)

Texts = str | None | Sequence[str | None]
Journals = str | None | Sequence[Journal]
HUB_OPTIONS = ("cache_dir", "force_download", "local_files_only", "revision", "token")


def as_text(value: Any) -> str:
    """A text or number as a string; what is missing (None, or the NaN of a table) is an empty one."""
    if value is None or value != value:
        return ""
    if not isinstance(value, str | int):
        raise ValueError(f"Title, abstract and PMID of an article are texts, but one of them is {value!r}.")
    return str(value)


def as_journal(value: Any) -> str | list[str]:
    """The name of a journal, or its several names."""
    return [as_text(name) for name in value] if isinstance(value, list | tuple) else as_text(value)


def align_fields(**fields: Any) -> dict[str, list[Any]]:
    """Fields of one article or of many → for each field a list with one value an article.

    One journal may stand for all articles; every other field has a value for each of them.
    """
    one = all(value is None or isinstance(value, str | int) for value in fields.values())
    lists = {
        name: [value] if one else value if value is None or isinstance(value, str | int) else list(value)
        for name, value in fields.items()
    }
    lengths = {name: len(values) for name, values in lists.items() if isinstance(values, list)}
    given = {name: length for name, length in lengths.items() if fields[name] is not None}
    if not any(given.values()):
        raise ValueError("There is nothing to read: give a title, an abstract, or lists of them.")
    if len(set(given.values())) > 1:
        found = ", ".join(f"{length} of {name}" for name, length in given.items())
        raise ValueError(f"Each article needs one value of each field, but there are {found}.")
    for name, values in lists.items():
        if isinstance(values, str | int) and name != "journal":
            raise ValueError(f"`{name}` is one text, but other fields are lists; give a list of it too.")
    length = next(iter(given.values()))
    return {name: values if isinstance(values, list) else [values] * length for name, values in lists.items()}


def pad_rows(rows: Sequence[Any], fill: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of different length → a tensor `(batch, longest, …)` and the mask of what is real in it."""
    rows = [np.asarray(row) for row in rows]
    shape = max((row.shape for row in rows), key=len)[1:]
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(max(1, lengths.max())) < lengths[:, None]
    filled = [row for row in rows if len(row)]
    dtype = np.float32 if filled and filled[0].dtype.kind == "f" else np.int64
    padded = np.full((*mask.shape, *shape), fill, dtype)
    if filled:
        padded[mask] = np.concatenate(filled)
    return torch.from_numpy(padded), torch.from_numpy(mask)


def pad_batch(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Encoded articles → the model's inputs.

    Args:
        rows: For each article `input_ids` and, where there are any, `title_input_ids`, `candidate_ids` with
            `candidate_features`, and `labels`.
    """
    batch = {}
    for name, mask_name in {
        "input_ids": "attention_mask",
        "title_input_ids": "title_attention_mask",
        "candidate_ids": "candidate_mask",
    }.items():
        if name in rows[0]:
            batch[name], batch[mask_name] = pad_rows([row[name] for row in rows])
    if "candidate_features" in rows[0]:
        batch["candidate_features"] = pad_rows([row["candidate_features"] for row in rows])[0].float()
    if "labels" in rows[0]:
        batch["labels"] = pad_rows([row["labels"] for row in rows], fill=-100)[0]
    return batch


class KenMeSHProcessor(ProcessorMixin):
    """Tokenizer, candidate generator, vocabulary, thresholds and headings of one model.

    Args:
        tokenizer: The word-level tokenizer, or that of a text encoder.
        max_title_tokens: Titles are cut here.
        max_abstract_tokens: Abstracts are cut here.
        candidates: Proposes labels for an article; without it the network looks at every label.
        vocabulary: Names and places of the labels.
        thresholds: Cut between tags and no tags.
        headings: Tells major topics and qualifiers of tags.
    """

    attributes = ["tokenizer"]
    tokenizer_class = "AutoTokenizer"

    def __init__(
        self,
        tokenizer,
        max_title_tokens: int = 100,
        max_abstract_tokens: int = 400,
        candidates: KenMeSHCandidates | None = None,
        vocabulary: MeshVocabulary | None = None,
        thresholds: Thresholds | None = None,
        headings: KenMeSHHeadings | None = None,
    ):
        super().__init__(tokenizer)
        self.max_title_tokens = max_title_tokens
        self.max_abstract_tokens = max_abstract_tokens
        # Public attributes are written to processor_config.json; these have files of their own.
        self._candidates = candidates
        self._vocabulary = vocabulary
        self._thresholds = thresholds
        self._headings = headings
        self._word_ids: dict[str, int] | None = None
        self._pieces = None if is_word_level(tokenizer) else Pieces(tokenizer)
        self._check_labels()

    candidates = property(lambda self: self._candidates)
    vocabulary = property(lambda self: self._vocabulary)
    thresholds = property(lambda self: self._thresholds)
    headings = property(lambda self: self._headings)

    @property
    def tells_headings(self) -> bool:
        """Whether major topics and qualifiers can be told: that needs an index that knows of headings."""
        indexed = None if self._candidates is None else self._candidates.articles.headings
        return self._headings is not None and indexed is not None

    def with_parts(self, **parts: Any) -> "KenMeSHProcessor":
        """A processor like this one but for some parts, given by the names of the constructor's arguments."""
        own = {name: getattr(self, name) for name in ("tokenizer", "max_title_tokens", "max_abstract_tokens")}
        own |= {name: getattr(self, name) for name in ("candidates", "vocabulary", "thresholds", "headings")}
        return type(self)(**(own | parts))

    @property
    def word_ids(self) -> dict[str, int]:
        """Id of each word the tokenizer knows."""
        if self._word_ids is None:
            self._word_ids = self.tokenizer.get_vocab()
        return self._word_ids

    @property
    def pieces(self) -> Pieces | None:
        """How texts are cut into pieces of words for a text encoder; None where words stay whole."""
        return self._pieces

    def encode_texts(self, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
        """Token ids of each text, cut after so many."""
        if self._pieces is None:
            return encode_words(texts, self.word_ids, max_tokens)
        return self._pieces.encode(texts, max_tokens)

    def encode_names(self, names: Sequence[str]) -> list[list[int]]:
        """Token ids of each name of a label, never none.

        Words that the tokenizer does not know are left out; a name of such words only is one unknown word.
        """
        if self._pieces is not None:
            unknown = self.tokenizer.unk_token_id or 0
            return [ids or [unknown] for ids in self._pieces.pieces(names)]
        known = self.word_ids
        rows = [[known[word] for word in content_words(name) if word in known] for name in names]
        return [ids or [known[UNK_TOKEN]] for ids in rows]

    def token_spans(self, text: str, max_tokens: int) -> np.ndarray:
        """Where the tokens of a text stand in it that labels attend to: start and end, `(tokens, 2)`."""
        places = self._pieces.spans(text, max_tokens) if self._pieces is not None else content_spans(text)
        if places is None:
            places = self.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        return np.array(places[:max_tokens], np.int64).reshape(-1, 2)

    @property
    def model_input_names(self) -> list[str]:
        names = ["input_ids", "attention_mask", "title_input_ids", "title_attention_mask"]
        return names + ["candidate_ids", "candidate_mask", "candidate_features"] * (
            self._candidates is not None
        )

    def encode(
        self,
        title: Texts = None,
        abstract: Texts = None,
        journal: Journals = None,
        pmid: Texts = None,
        keep_findings: bool = False,
        keep_neighbours: bool = False,
    ) -> list[dict[str, Any]]:
        """Encoded articles, not yet padded; see `__call__`.

        With `keep_findings` each has what the sources of candidates said about it, by which `Reasons` go;
        with `keep_neighbours` what of it `headings` go by.
        """
        fields = align_fields(title=title, abstract=abstract, journal=journal, pmid=pmid)
        titles, abstracts, pmids = (
            list(map(as_text, fields[name])) for name in ("title", "abstract", "pmid")
        )
        rows: list[dict[str, Any]] = [
            {"title_input_ids": title_ids, "input_ids": abstract_ids}
            for title_ids, abstract_ids in zip(
                self.encode_texts(titles, self.max_title_tokens),
                self.encode_texts(abstracts, self.max_abstract_tokens),
                strict=True,
            )
        ]
        if self._candidates is None:
            logger.warning_once("This processor proposes no candidates: every label is attended, slowly.")
            return rows
        journals = list(map(as_journal, fields["journal"]))
        keep = {"keep_findings": keep_findings, "keep_neighbours": keep_neighbours}
        found = self._candidates(titles, abstracts, journals, pmids, **keep)
        for position, row in enumerate(rows):
            row["candidate_ids"], row["candidate_features"] = found.row(position)
            if found.findings:
                row["findings"] = found.findings[position]
        return rows

    def __call__(
        self,
        title: Texts = None,
        abstract: Texts = None,
        journal: Journals = None,
        pmid: Texts = None,
    ) -> BatchFeature:
        """Everything the model takes, for one article or many, as padded tensors.

        Args:
            title: Title or titles; may be missing.
            abstract: Abstract or abstracts; may be missing.
            journal: Journal title, abbreviation or NLM id; may be missing or unknown. One for all articles,
                or for each article one or a list of its names.
            pmid: PMIDs, by which an article that is in the index is kept from finding itself.
        """
        return BatchFeature(pad_batch(self.encode(title, abstract, journal, pmid)))

    def save_pretrained(
        self, save_directory: str | os.PathLike, push_to_hub: bool = False, **kwargs
    ) -> list[str]:
        """Writes every part and the code that reads it, with checksums.

        Args:
            save_directory: Folder, that of the model.
            push_to_hub: Send the processor to the Hub, too.
            **kwargs: `repo_id` (by default the folder's name), `token` and others of `push_to_hub`.
        """
        clear_tokenizer_state(self.tokenizer)
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        for part in (self._candidates, self._vocabulary, self._thresholds, self._headings):
            if part is not None:
                part.save_pretrained(folder)
        for source in sorted(Path(__file__).parent.glob("*_kenmesh.py")):
            shutil.copyfile(source, folder / source.name)
        files = super().save_pretrained(str(folder))
        write_checksums(folder)
        if push_to_hub:
            self.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)
        return files

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: str | os.PathLike, **kwargs
    ) -> "KenMeSHProcessor":
        """Reads the tokenizer and whichever other parts the folder or Hub repository holds."""
        folder = Path(pretrained_model_name_or_path)
        if not folder.is_dir():
            options = {name: kwargs[name] for name in HUB_OPTIONS if name in kwargs}
            folder = Path(snapshot_download(str(pretrained_model_name_or_path), **options))
        missing = check_checksums(folder, [name for name in read_checksums(folder) if not is_weights(name)])
        processor = super().from_pretrained(pretrained_model_name_or_path, **kwargs)
        if (folder / VOCABULARY_FILE).exists():
            processor._vocabulary = MeshVocabulary.from_pretrained(folder)
        if (folder / THRESHOLDS_NAME).exists():
            processor._thresholds = Thresholds.from_pretrained(folder)
        if KenMeSHHeadings.is_saved_in(folder):
            processor._headings = KenMeSHHeadings.from_pretrained(folder)
        if KenMeSHCandidates.is_saved_in(folder):
            try:
                processor._candidates = KenMeSHCandidates.from_pretrained(folder)
            except FileNotFoundError as error:
                logger.warning(f"{folder} comes without its candidate index ({', '.join(missing) or error}).")
        processor._check_labels()
        return processor

    @classmethod
    def _load_tokenizer_from_pretrained(
        cls, sub_processor_type, pretrained_model_name_or_path, subfolder="", **kwargs
    ):
        # AutoTokenizer would read the model's configuration first, with its many thousand labels.
        return PreTrainedTokenizerFast.from_pretrained(
            pretrained_model_name_or_path, subfolder=subfolder, **kwargs
        )

    def _check_labels(self):
        """Refuses parts that were made for different sets of labels."""
        if self._vocabulary is None:
            return
        labels = len(self._vocabulary)
        if self._candidates is not None and self._candidates.num_labels != labels:
            raise ValueError(
                f"The candidate index was built for {self._candidates.num_labels} labels, but the vocabulary "
                f"has {labels}; build the index again with this vocabulary."
            )
        if self._thresholds is not None and self._thresholds.per_label is not None:
            if len(self._thresholds.per_label) != labels:
                raise ValueError(
                    f"There are thresholds for {len(self._thresholds.per_label)} labels, but the vocabulary "
                    f"has {labels}; tune the thresholds again with this vocabulary."
                )


__all__ = ["KenMeSHProcessor"]
