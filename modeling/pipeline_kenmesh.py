"""`pipeline("mesh-indexing")`: articles in, MeSH descriptors with scores and reasons out."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from transformers import Pipeline

from .heading_counts_kenmesh import Tags
from .heading_reasons_kenmesh import HeadingReasons
from .modeling_kenmesh import UNSCORED, KenMeSHForMeSHIndexing
from .processing_kenmesh import KenMeSHProcessor, as_journal, as_text, pad_batch
from .reasons_kenmesh import Reasons

FIELDS = ("title", "abstract", "journal", "pmid")
# Articles are sorted by length within this many batches: little padding, and still a constant memory.
SORTED_BATCHES = 8
_CHOICES = {
    "top_k",
    "threshold",
    "preset",
    "include",
    "exclude",
    "check_tags",
    "qualifiers",
    "evidence_words",
}
_CANDIDATES = ("candidate_ids", "candidate_mask", "candidate_features")


def as_article(value: Any) -> dict[str, Any]:
    """A string, or a mapping with any of title, abstract, journal and pmid → the four fields.

    The first line of a string of several lines is the title; a single line is an abstract. Other keys of a
    mapping are passed over, so that rows of a dataset can be given as they are.
    """
    if isinstance(value, str):
        title, newline, rest = value.strip().partition("\n")
        value = {"title": title, "abstract": rest} if newline else {"abstract": title}
    if not isinstance(value, Mapping):
        raise ValueError(
            f"An article is a string or a dict with title, abstract, journal and pmid, but this is {value!r}."
        )
    if not any(field in value for field in FIELDS):
        raise ValueError(f"An article has none of {', '.join(FIELDS)}, only {', '.join(map(str, value))}.")
    texts = {field: as_text(value.get(field)) for field in FIELDS if field != "journal"}
    return texts | {"journal": as_journal(value.get("journal"))}


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Consecutive lists of at most `size` items."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def map_by_length(
    items: Iterable[Any],
    size: int,
    length: Callable[[Any], int],
    prepare: Callable[[list[Any]], Any],
    finish: Callable[[Any], Sequence[Any]],
) -> Iterator[tuple[Any, Any]]:
    """Each item with its result, in order, though items of similar length are worked on together.

    Args:
        items: Any number of items; a few batches of them are held at a time.
        size: Most items of a batch.
        length: Length of an item.
        prepare: Makes of a batch what `finish` takes; runs in a thread, a batch ahead.
        finish: Gives the results of a batch.
    """
    for window in batches(items, size * SORTED_BATCHES):
        order = sorted(range(len(window)), key=lambda i: length(window[i]))
        parts = list(batches(order, size))
        prepared = prepare_ahead(prepare, [[window[i] for i in part] for part in parts])
        results: dict[int, Any] = {}
        for part, ready in zip(parts, prepared, strict=True):
            results.update(zip(part, finish(ready), strict=True))
        yield from ((item, results[i]) for i, item in enumerate(window))


def prepare_ahead(prepare: Callable[[list[Any]], Any], parts: list[list[Any]]) -> Iterator[Any]:
    """What `prepare` makes of each part; while one is used, a thread prepares the next."""
    ready = prepare(parts[0])
    with ThreadPoolExecutor(1) as thread:
        for part in parts[1:]:
            coming = thread.submit(prepare, part)
            yield ready
            ready = coming.result()
    yield ready


class MeSHIndexingPipeline(Pipeline):
    """Tags articles with MeSH descriptors.

    A call takes one article or many (a list, a generator, a `datasets` column) and these options:

    Args:
        top_k: Most tags an article gets. Given alone, the best ones whatever their score.
        threshold: Least score of a tag. Without it and `top_k`, the model's own thresholds (or 0.5) decide.
        preset: `"precision"` or `"recall"`: another of the model's own thresholds.
        include: Only these descriptors (`"D006801"`) or branches (`"C04"`), all below them included.
        exclude: Never these descriptors or branches.
        check_tags: Whether check tags (Humans, Male, Adult …) may be given.
        qualifiers: Whether tags tell their qualifiers, where the model can; major topics are told anyhow.
        evidence: Say why: words, neighbours, journal share and matched term of each tag.
        evidence_words: Most words named for a tag.
        batch_size: Articles the network reads at once.
    """

    processor: KenMeSHProcessor
    model: KenMeSHForMeSHIndexing

    _load_processor = True  # type: ignore[assignment]
    _load_tokenizer = False  # type: ignore[assignment]
    _load_image_processor = False  # type: ignore[assignment]
    _load_video_processor = False  # type: ignore[assignment]
    _load_feature_extractor = False  # type: ignore[assignment]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        vocabulary = self.processor.vocabulary
        if vocabulary is None:
            raise ValueError("The processor has no MeSH vocabulary, so labels have no names.")
        id2label: dict[int, str] = self.model.config.id2label or {}  # type: ignore[assignment]
        if len(id2label) != len(vocabulary) or any(id2label[i] != ui for i, ui in enumerate(vocabulary.uis)):
            raise ValueError(
                f"The weights know {len(id2label)} labels that are not the {len(vocabulary)} descriptors of "
                "the vocabulary beside them; the two come from different models."
            )
        candidates, known = self.processor.candidates, self.model.config.num_evidence_features
        if candidates is not None and known not in (0, len(candidates.FEATURES)):
            raise ValueError(
                f"The weights know {known} numbers a candidate, but the candidate index beside them gives "
                f"{len(candidates.FEATURES)}; the two come from different models."
            )
        self.model.eval()

    def _sanitize_parameters(self, batch_size: int | None = None, evidence: bool | None = None, **choice):
        unknown = choice.keys() - _CHOICES
        if unknown:
            names = ", ".join(sorted(_CHOICES | {"batch_size", "evidence"}))
            raise TypeError(f"Unknown option {sorted(unknown)[0]!r}; the options are {names}.")
        forward = {} if evidence is None else {"evidence": evidence}
        return {}, {}, {name: value for name, value in choice.items() if value is not None} | forward

    def __call__(self, inputs: Any, **options) -> Any:  # type: ignore[override]
        """Tags of one article as a list, of a list as a list of lists, of anything else as a generator."""
        size = options.pop("batch_size", None) or self._batch_size or 32
        if size < 1:
            raise ValueError(f"`batch_size` is {size}; it must be at least 1.")
        choice = self._postprocess_params | self._sanitize_parameters(**options)[2]
        # Worked out here and not in the generator, so that wrong options are told at once.
        least, top_k = self.least_scores(choice), choice.get("top_k")
        if top_k is not None and top_k < 1:
            raise ValueError(f"`top_k` is {top_k}; it must be at least 1.")
        if isinstance(inputs, str | Mapping):
            return next(self._tag_all([inputs], 1, least, choice))
        tags = self._tag_all(inputs, size, least, choice)
        return list(tags) if isinstance(inputs, Sequence) else tags

    def _tag_all(
        self, inputs: Iterable[Any], size: int, least: np.ndarray, choice: dict[str, Any]
    ) -> Iterator[list[dict[str, Any]]]:
        evidence = choice.get("evidence", False)

        def finish(batch: dict[str, Any]) -> list[list[dict[str, Any]]]:
            return self.postprocess(self.forward(batch, evidence=evidence), least=least, **choice)

        articles, prepare = map(as_article, inputs), partial(self.preprocess, evidence=evidence)
        for _, tags in map_by_length(articles, size, _length, prepare, finish):
            yield tags

    def preprocess(  # type: ignore[override]
        self, articles: list[dict[str, Any]], evidence: bool = False
    ) -> dict[str, Any]:
        fields = {field: [article[field] for article in articles] for field in FIELDS}
        told = self.processor.tells_headings
        rows = self.processor.encode(**fields, keep_findings=evidence, keep_neighbours=told)
        findings = [row.get("findings") for row in rows]
        return {"articles": articles, "inputs": pad_batch(rows), "findings": findings}

    def _forward(self, batch: dict[str, Any], evidence: bool = False) -> dict[str, Any]:  # type: ignore[override]
        output = self.model(**batch["inputs"], output_features=evidence)
        shown = output.features
        compared = {"channels": shown.channels, "keys": shown.label_features} if evidence else {}
        return batch | {"logits": output.logits} | compared

    def postprocess(  # type: ignore[override]
        self,
        outputs: dict[str, Any],
        least: np.ndarray,
        top_k: int | None = None,
        evidence: bool = False,
        evidence_words: int = 8,
        qualifiers: bool = True,
        **choice,
    ) -> list[list[dict[str, Any]]]:
        logits = outputs["logits"].float()
        scores = logits.sigmoid().numpy(force=True)
        rows = zip(logits.numpy(force=True), scores, strict=True)
        chosen = [choose_labels(*row, least, top_k) for row in rows]
        tags = [[self._tag(label, score) for label, score in zip(*row, strict=True)] for row in chosen]
        if evidence:
            reasons = Reasons(self.model, self.processor, evidence_words)
            labels = [labels for labels, _ in chosen]
            why = reasons(
                outputs["articles"], outputs["findings"], labels, outputs["channels"], outputs["keys"]
            )
            for row, told in zip(tags, why, strict=True):
                for tag, reason in zip(row, told, strict=True):
                    tag["evidence"] = reason
        if self.processor.tells_headings and any(tags):
            self._tell_headings(outputs, chosen, [tag for row in tags for tag in row], qualifiers)
        return tags

    def _tell_headings(
        self,
        outputs: dict[str, Any],
        chosen: Sequence[tuple[np.ndarray, np.ndarray]],
        tags: list[dict[str, Any]],
        qualifiers: bool,
    ) -> None:
        """Adds to the tags of a batch whether they are major topics, their qualifiers and, if asked, why."""
        processor, headings, findings = self.processor, self.processor.headings, outputs["findings"]
        inputs = [outputs["inputs"][name].numpy(force=True) for name in _CANDIDATES]
        proposed = [(labels[mask], numbers[mask]) for labels, mask, numbers in zip(*inputs, strict=True)]
        known = Tags.of([labels for labels, _ in chosen], proposed, processor.candidates.ranker)
        scores = np.concatenate([scores for _, scores in chosen])
        numbers = headings.numbers(processor.candidates, processor.vocabulary)
        said = headings.score(numbers, known, scores, findings)
        for tag, told in zip(tags, headings.describe(said, scores, qualifiers), strict=True):
            tag |= told
        if tags and "evidence" in tags[0]:
            HeadingReasons(headings, numbers).add(outputs["articles"], findings, known, tags)

    def least_scores(self, choice: Mapping[str, Any]) -> np.ndarray:
        """Least score at which each label becomes a tag; infinite for labels that were not asked for.

        Args:
            choice: Options of a call; the others are passed over.
        """
        vocabulary, thresholds = self.processor.vocabulary, self.processor.thresholds
        labels = np.arange(len(vocabulary))
        threshold, preset = choice.get("threshold"), choice.get("preset")
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"`threshold` is {threshold}; scores are probabilities, so it must be in 0 … 1.")
        if threshold is None and preset is None and choice.get("top_k") is not None:
            threshold = 0.0
        if threshold is not None:
            least = np.full(len(labels), threshold, np.float32)
        elif thresholds is not None:
            least = thresholds.of(labels, preset)
        elif preset is not None:
            raise ValueError("This model has no thresholds of its own, so no presets; use `threshold`.")
        else:
            least = np.full(len(labels), 0.5, np.float32)
        allowed = np.ones(len(labels), bool)
        if choice.get("include"):
            allowed[:] = False
            allowed[self._labels_in(choice["include"])] = True
        if choice.get("exclude"):
            allowed[self._labels_in(choice["exclude"])] = False
        if choice.get("check_tags") is False:
            allowed[vocabulary.check_tags] = False
        return np.where(allowed, least, np.float32(np.inf))

    def _labels_in(self, branches: str | Sequence[str]) -> np.ndarray:
        branches = [branches] if isinstance(branches, str) else branches
        return np.concatenate([self.processor.vocabulary.labels_in(branch) for branch in branches])

    def _tag(self, label: int, score: float) -> dict[str, Any]:
        vocabulary = self.processor.vocabulary
        return {
            "ui": vocabulary.uis[label],
            "name": vocabulary.names[label],
            "score": float(score),
            "tree_numbers": list(vocabulary.tree_numbers[label]),
        }

    def save_pretrained(self, save_directory: str | os.PathLike, **kwargs):
        """Saves the model and everything of the processor: a folder that can be loaded or pushed as it is."""
        self.model.save_pretrained(save_directory, **kwargs)
        self.processor.save_pretrained(save_directory, **kwargs)


def _length(article: dict[str, Any]) -> int:
    return len(article["abstract"])


def choose_labels(
    logits: np.ndarray, scores: np.ndarray, least: np.ndarray, top_k: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Labels whose score reaches its least value, best first, and their scores."""
    labels = np.flatnonzero((scores >= least) & (logits > UNSCORED / 2))
    labels = labels[np.argsort(-logits[labels], kind="stable")][:top_k]
    return labels, scores[labels]


__all__ = ["MeSHIndexingPipeline"]
