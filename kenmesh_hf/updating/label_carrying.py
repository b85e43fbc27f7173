"""What a model has learned about its labels, carried part by part to the labels of another MeSH year."""

import numpy as np
import torch

from ..mesh import read_qualifiers
from ..modeling.associations_kenmesh import LinearModel, StoredPredictions, WordAssociations
from ..modeling.candidates_kenmesh import KenMeSHCandidates
from ..modeling.configuration_kenmesh import KenMeSHConfig
from ..modeling.headings_kenmesh import KenMeSHHeadings
from ..modeling.indexed_articles_kenmesh import IndexedArticles, LabelFrequencies
from ..modeling.journals_kenmesh import JournalTable
from ..modeling.lexicon_kenmesh import Lexicon
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.tensors_kenmesh import id_type
from ..modeling.text_kenmesh import UNK_TOKEN, content_words
from ..modeling.thresholds_kenmesh import Thresholds
from ..training import LABEL_BUFFERS, label_inputs, label_names
from .plan import UpdatePlan

_WORDS = "kenmesh.word_embeddings.weight"
_FREE_LABELS = "kenmesh.label_encoder.weight"
_LABEL_BIAS = "label_bias"


def carry_candidates(candidates: KenMeSHCandidates, plan: UpdatePlan) -> KenMeSHCandidates:
    """Candidates over the new labels; the indexed articles and their words stay as they are."""
    articles = _carry_articles(candidates.articles, plan)
    return KenMeSHCandidates(
        candidates.index,
        articles,
        _carry_journals(candidates.journals, plan),
        _carry_lexicon(candidates.lexicon, plan),
        _carry_associations(candidates.associations, plan),
        plan.new.edges(),
        len(plan.new),
        candidates.options,
        candidates.ranker,
        None if len(articles) else _carry_counts(candidates.frequencies, plan),
    )


def _carry_counts(frequencies: LabelFrequencies, plan: UpdatePlan) -> LabelFrequencies:
    kept = plan.old_to_new >= 0
    counts = np.zeros((2, len(plan.new)), np.int64)
    for new, old in zip(counts, frequencies.counts, strict=True):
        np.add.at(new, plan.old_to_new[kept], old[kept])
    return LabelFrequencies(counts, frequencies.sizes)


def _carry_articles(articles: IndexedArticles, plan: UpdatePlan) -> IndexedArticles:
    """Labels of the indexed articles, each once an article, with what is known of their headings."""
    size = len(plan.new)
    owner = np.repeat(np.arange(len(articles)), np.diff(articles.offsets))
    labels = plan.old_to_new[articles.labels]
    kept = np.flatnonzero(labels >= 0)
    # Of two headings that become one, the first tells.
    cells, first = np.unique(owner[kept] * size + labels[kept], return_index=True)
    offsets = np.searchsorted(cells // size, np.arange(len(articles) + 1))
    tensors = {"labels": (cells % size).astype(id_type(size)), "offsets": offsets.astype(np.uint32)}
    carried = IndexedArticles(articles.tensors | tensors)
    if articles.headings is None:
        return carried
    return carried.with_headings(articles.headings.select(np.arange(len(articles)), kept[first]))


def carry_headings(headings: KenMeSHHeadings, plan: UpdatePlan) -> KenMeSHHeadings:
    """What tells major topics and qualifiers; the new year's file says which go together, if it does."""
    given = plan.new.allowed_qualifiers
    qualifiers = read_qualifiers(vocabulary=plan.new) if given else headings.qualifiers
    aspects = headings.aspects.carried(plan.old_to_new)
    return KenMeSHHeadings(qualifiers, aspects, headings.majors, headings.pairs, headings.thresholds)


def _carry_journals(journals: JournalTable, plan: UpdatePlan) -> JournalTable:
    size = len(plan.new)
    journal = np.repeat(np.arange(len(journals.sizes)), np.diff(journals.offsets))
    labels = plan.old_to_new[journals.labels]
    kept = labels >= 0
    cells, place = np.unique(journal[kept] * size + labels[kept], return_inverse=True)
    counts = np.bincount(place, journals.counts[kept], len(cells))
    # An article may have carried two labels that are one now.
    counts = np.minimum(counts, journals.sizes[cells // size])
    tensors = {
        "offsets": np.searchsorted(cells // size, np.arange(len(journals.sizes) + 1)).astype(np.uint32),
        "labels": (cells % size).astype(id_type(size)),
        "counts": counts.astype(journals.counts.dtype),
    }
    return JournalTable(journals.tensors | tensors)


def _carry_lexicon(lexicon: Lexicon, plan: UpdatePlan) -> Lexicon:
    """The terms of the new year; a term that stays with its descriptor keeps what was learned about it."""
    new = Lexicon.build(plan.new.names, list(plan.new.entry_terms))
    old_labels = plan.old_to_new[lexicon.labels]
    rows: dict[tuple[int, int], int] = {}
    for row, key in enumerate(zip(lexicon.hashes.tolist(), old_labels.tolist(), strict=True)):
        # Of two descriptors that become one, the survivor knows best.
        if key not in rows or plan.new_to_old[key[1]] == lexicon.labels[row]:
            rows[key] = row
    keys = zip(new.hashes.tolist(), new.labels.tolist(), strict=True)
    source = np.array([rows.get(key, -1) for key in keys], np.int64)
    known = source >= 0
    tensors = dict(new.tensors) | {"base": lexicon.base}
    for name in ("found", "assigned"):
        counts = np.zeros((3, len(source)), lexicon.tensors[name].dtype)
        counts[:, known] = lexicon.tensors[name][:, source[known]]
        tensors[name] = counts
    return Lexicon(tensors)


def _carry_associations(associations: WordAssociations, plan: UpdatePlan) -> WordAssociations:
    """Words and terms with their weights for the labels that stay; new labels have none."""
    old_terms = associations.keys["terms"].astype(np.int64)
    terms = plan.old_to_new[old_terms]
    stays = (terms >= 0) & (plan.new_to_old[terms] == old_terms)
    stay = {kind: np.ones(len(keys), bool) for kind, keys in associations.keys.items()} | {"terms": stays}
    columns = np.concatenate([*stay.values(), [True]])
    carried = WordAssociations.pack(
        associations.keys | {"terms": terms[stays].astype(np.uint32)},
        associations.tensors["idf"][columns[:-1]],
        _carry_weights(associations.model, columns, plan),
        len(plan.new),
        [_carry_weights(model, columns, plan) for model in associations.parts],
        associations.tensors.get("part_of"),
    )
    if associations.stored is None:
        return carried
    return WordAssociations(carried.tensors | _carry_predictions(associations.stored, plan))


def _carry_weights(model: LinearModel, columns: np.ndarray, plan: UpdatePlan) -> LinearModel:
    """Weights of the inputs and labels that stay.

    Where two labels become one, both have their weights side by side: ridge regression is linear in what it
    predicts, so the sum is what would have been fitted.
    """
    labels = plan.old_to_new[model.labels]
    column = np.repeat(np.arange(len(columns)), np.diff(model.offsets))
    kept = (labels >= 0) & columns[column]
    place = (np.cumsum(columns) - 1)[column[kept]]
    return LinearModel(
        {
            "scales": model.tensors["scales"][columns],
            "offsets": np.searchsorted(place, np.arange(columns.sum() + 1)).astype(np.uint32),
            "labels": labels[kept].astype(id_type(len(plan.new))),
            "weights": model.tensors["weights"][kept],
        }
    )


def _carry_predictions(stored: StoredPredictions, plan: UpdatePlan) -> dict[str, np.ndarray]:
    """What version 0.1 stored of its training articles, for the labels that stay."""
    labels = plan.old_to_new[stored.labels]
    owner = np.repeat(np.arange(len(stored)), np.diff(stored.offsets))[labels >= 0]
    return {
        "left_out_offsets": np.searchsorted(owner, np.arange(len(stored) + 1)).astype(np.uint32),
        "left_out_labels": labels[labels >= 0].astype(id_type(len(plan.new))),
        "left_out_values": stored.values[labels >= 0],
    }


def carry_thresholds(thresholds: Thresholds, plan: UpdatePlan) -> Thresholds:
    """Each label's own threshold goes with it; a new label has the one for all."""
    per_label = thresholds.per_label
    if per_label is not None:
        known = plan.new_to_old >= 0
        carried = np.full(len(plan.new), thresholds.global_threshold, np.float32)
        carried[known] = per_label[plan.new_to_old[known]]
        per_label = carried
    return Thresholds(thresholds.global_threshold, per_label, thresholds.presets, thresholds.held_out)


def new_name_words(plan: UpdatePlan, word_ids: dict[str, int]) -> dict[str, list[int]]:
    """Words of new names that the tokenizer lacks, each with the known words that tell what it means.

    Those are the words of the descriptor's name and entry terms and of its parents' names.
    """
    edges = plan.new.edges()
    found: dict[str, list[int]] = {}
    for ui in (*plan.diff.added, *plan.diff.renamed):
        label = plan.new.label_of(ui)
        words = content_words(plan.new.names[label])
        if all(word in word_ids for word in words):
            continue
        parents = [plan.new.names[parent] for parent in edges[0, edges[1] == label]]
        texts = [plan.new.names[label], *plan.new.entry_terms[label], *parents]
        related = {word for text in texts for word in content_words(text) if word in word_ids}
        for word in words:
            if word not in word_ids:
                found.setdefault(word, []).extend(sorted(word_ids[near] for near in related))
    return found


@torch.no_grad()
def carry_network(
    model: KenMeSHForMeSHIndexing,
    plan: UpdatePlan,
    processor: KenMeSHProcessor,
    new_words: dict[str, list[int]],
) -> KenMeSHForMeSHIndexing:
    """A network over the new labels; every weight that belongs to no label is the same.

    Args:
        model: The network of the old year.
        plan: Which label becomes which.
        processor: Of the new year; it knows the new words, too, which come last.
        new_words: For each new word the ids of words that it starts like.
    """
    labels, word_ids = label_inputs(processor), processor.word_ids
    sizes = {
        "vocab_size": model.config.vocab_size + len(new_words),
        "num_label_tokens": len(labels["token_ids"]),
        "num_edges": labels["edges"].shape[1],
    }
    config = KenMeSHConfig(**(model.config.to_dict() | sizes | label_names(plan.new)))
    new = KenMeSHForMeSHIndexing(config)
    # mypy sees a method without its `self`: transformers wraps it.
    new.to(device=model.device, dtype=model.dtype)  # type: ignore[call-arg]
    before = model.state_dict()
    for name, weight in new.state_dict().items():
        if name == _WORDS:
            weight[: len(before[name])] = before[name]
            for word, related in new_words.items():
                weight[word_ids[word]] = before[name][related or [word_ids[UNK_TOKEN]]].mean(0)
        elif name in (_FREE_LABELS, _LABEL_BIAS):
            _carry_rows(before[name], weight, plan)
        elif name not in LABEL_BUFFERS:
            weight.copy_(before[name])
    if config.label_encoder == "gcn":
        new.kenmesh.set_labels(**labels)
    return new.train(model.training)


def _carry_rows(old: torch.Tensor, new: torch.Tensor, plan: UpdatePlan) -> None:
    """Values of labels; a new label's vector starts as the mean of its parents', its bias where all did."""
    known = torch.from_numpy(plan.new_to_old >= 0)
    new[known] = old[torch.from_numpy(plan.new_to_old)[known]]
    if new.dim() == 1:
        return
    edges = torch.from_numpy(plan.new.edges())
    for label in torch.nonzero(~known).flatten().tolist():
        parents = edges[0, edges[1] == label]
        parents = parents[known[parents]]
        new[label] = new[parents].mean(0) if len(parents) else old.mean(0)
