"""A fresh network for a processor: its labels, its word vectors, a good start for the evidence weights."""

import copy
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from transformers import PreTrainedModel

from ..errors import MismatchError
from ..modeling.configuration_kenmesh import KenMeSHConfig
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from .encoder import load_encoder

# How the evidence weights are trained before the network: a few million candidates, some seconds.
START_ARTICLES, START_EPOCHS, START_BATCH, START_RATE = 6000, 6, 4096, 3e-3
# The untrained network is noise at first, so its score begins with a small weight beside the evidence.
START_SCALE = 0.1
# An attention score is a product of word features with word features: larger vectors would saturate it.
WORD_SPREAD = 0.1
LABEL_BUFFERS = tuple(f"kenmesh.label_encoder.{name}" for name in ("token_ids", "token_offsets", "edges"))


def label_inputs(processor: KenMeSHProcessor) -> dict[str, torch.Tensor]:
    """What the label encoder is given: tokens of every name, where each name starts, parent–child pairs."""
    names = processor.encode_names(processor.vocabulary.names)
    starts = np.cumsum([0] + [len(ids) for ids in names[:-1]])
    return {
        "token_ids": torch.tensor([word for ids in names for word in ids]),
        "token_offsets": torch.from_numpy(starts),
        "edges": torch.from_numpy(processor.vocabulary.edges()),
    }


def label_names(vocabulary: MeshVocabulary) -> dict[str, dict]:
    """The configuration's two tables between labels and descriptors."""
    return {
        "id2label": dict(enumerate(vocabulary.uis)),
        "label2id": {ui: i for i, ui in enumerate(vocabulary.uis)},
    }


def build_network(
    processor: KenMeSHProcessor,
    word_vectors: np.ndarray | None = None,
    evidence: bool = False,
    text_encoder: str | PreTrainedModel | None = None,
    **settings: Any,
) -> KenMeSHForMeSHIndexing:
    """A network that fits the processor.

    Args:
        processor: Gives the tokens, the labels and the number of evidence features.
        word_vectors: First values of the embedding table `(words, dim)`, in the order of the tokenizer's ids.
        evidence: Whether the numbers of a candidate count.
        text_encoder: Instead of word vectors a pretrained encoder, or its folder or Hub name; the processor
            has its tokenizer.
        **settings: Further fields of `KenMeSHConfig`.
    """
    encoder = load_encoder(text_encoder).model if isinstance(text_encoder, str) else text_encoder
    labels = label_inputs(processor)
    sizes = {
        "num_label_tokens": len(labels["token_ids"]),
        "num_edges": labels["edges"].shape[1],
        "num_evidence_features": len(processor.candidates.FEATURES) if evidence else 0,
    }
    sizes |= _word_fields(processor, word_vectors) if encoder is None else _encoder_fields(processor, encoder)
    model = KenMeSHForMeSHIndexing(KenMeSHConfig(**(settings | sizes | label_names(processor.vocabulary))))
    if model.config.label_encoder == "gcn":
        model.kenmesh.set_labels(**labels)
    if encoder is not None:
        _take_encoder(model, encoder, labels["token_ids"])
    elif word_vectors is not None:
        _take_word_vectors(model, word_vectors)
    return model


def _word_fields(processor: KenMeSHProcessor, word_vectors: np.ndarray | None) -> dict[str, Any]:
    if word_vectors is None:
        raise MismatchError("A network needs word vectors or a text encoder; give one of them.")
    if len(word_vectors) != len(processor.word_ids):
        raise MismatchError(
            f"There are {len(word_vectors)} word vectors for a tokenizer of {len(processor.word_ids)} words; "
            "prepare both from the same corpus."
        )
    return {"vocab_size": len(word_vectors), "embedding_size": word_vectors.shape[1]}


def _encoder_fields(processor: KenMeSHProcessor, encoder: PreTrainedModel) -> dict[str, Any]:
    pieces = processor.pieces
    if pieces is None:
        raise MismatchError("The processor has a tokenizer of words; give it that of the encoder.")
    special = sorted({*pieces.before, *pieces.after})
    return {"text_encoder": copy.deepcopy(encoder.config), "special_token_ids": special}


@torch.no_grad()
def _take_word_vectors(model: KenMeSHForMeSHIndexing, word_vectors: np.ndarray) -> None:
    spread = max(float(word_vectors.std()), 1e-6)
    model.kenmesh.word_embeddings.weight.copy_(torch.from_numpy(word_vectors * (WORD_SPREAD / spread)))


@torch.no_grad()
def _take_encoder(model: KenMeSHForMeSHIndexing, encoder: PreTrainedModel, name_tokens: torch.Tensor) -> None:
    """Gives the network the encoder's weights; what all names have in common tells none from another."""
    base, weights = model.kenmesh, encoder.state_dict()
    base.text_encoder.load_state_dict({name: weights[name] for name in base.text_encoder.state_dict()})
    if base.text_features.word_norm is not None:
        vectors = base.text_features.word_vectors(base.get_input_embeddings().weight)
        base.text_features.word_norm.bias.copy_(-vectors[name_tokens].mean(0))


@torch.no_grad()
def continue_network(
    folder: str | os.PathLike, processor: KenMeSHProcessor, word_vectors: np.ndarray, **settings: Any
) -> KenMeSHForMeSHIndexing:
    """A trained network, fitted to the words and labels of another processor.

    What belongs to a word or a descriptor goes with it. New words start from `word_vectors`, new descriptors
    from their names and the bias that all start with. A text encoder keeps its tokens, which spell any word.

    Args:
        folder: A complete saved model.
        processor: Of the articles that it is to be trained on.
        word_vectors: First values for new words `(words, dim)`, in the order of the tokenizer's ids.
        **settings: Fields of `KenMeSHConfig` to change.
    """
    old = KenMeSHForMeSHIndexing.from_pretrained(folder)
    known = KenMeSHProcessor.from_pretrained(folder)
    _check_sizes(old.config, processor, known, word_vectors)
    settings = old.config.to_dict() | settings
    if old.config.text_encoder is not None:
        settings["text_encoder"] = old.kenmesh.text_encoder
    model = build_network(processor, word_vectors, old.evidence is not None, **settings)
    by_word = _common(processor.word_ids, known.word_ids)
    by_label = _common(
        label_names(processor.vocabulary)["label2id"], label_names(known.vocabulary)["label2id"]
    )
    moves = {
        "kenmesh.word_embeddings.weight": by_word,
        "kenmesh.label_encoder.weight": by_label,
        "label_bias": by_label,
    }
    before = old.state_dict()
    for name, weight in model.state_dict().items():
        if name in moves:
            to, source = moves[name]
            weight[to] = before[name][source]
        elif name not in LABEL_BUFFERS:
            weight.copy_(before[name])
    return model


def _common(new: Mapping[str, int], old: Mapping[str, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Places in both of what both know."""
    both = [(place, old[key]) for key, place in new.items() if key in old]
    return torch.tensor([to for to, _ in both]), torch.tensor([source for _, source in both])


def _check_sizes(
    config: KenMeSHConfig, processor: KenMeSHProcessor, known: KenMeSHProcessor, word_vectors: np.ndarray
) -> None:
    features = len(processor.candidates.FEATURES)
    if config.text_encoder is not None:
        if processor.word_ids != known.word_ids:
            raise MismatchError("The dataset has not the tokens of the model's encoder; tokenize it anew.")
    elif config.embedding_size != word_vectors.shape[1]:
        raise MismatchError(
            f"The model's word vectors have {config.embedding_size} numbers, those of the dataset "
            f"{word_vectors.shape[1]}; prepare it with an embedding size of {config.embedding_size}."
        )
    if config.num_evidence_features not in (0, features):
        raise MismatchError(
            f"The model weighs {config.num_evidence_features} numbers a candidate and the dataset has "
            f"{features}; prepare it with the version that the model was trained with."
        )


def start_evidence(
    model: KenMeSHForMeSHIndexing, rows: Iterable[Mapping[str, Any]], epochs: int = START_EPOCHS
) -> float:
    """Trains the evidence weights alone, which takes seconds; the training of the network starts from there.

    Args:
        model: A network with evidence.
        rows: Rows with `labels`, `candidate_ids` and `candidate_features`.
        epochs: Passes over the candidates.

    Returns:
        Mean cross-entropy in the last pass.
    """
    evidence = model.evidence
    if evidence is None:
        raise MismatchError("This network weighs no evidence; build it with evidence=True.")
    numbers, targets = _evidence_arrays(rows, model.config.num_evidence_features)
    with torch.no_grad():
        evidence.mean.copy_(numbers.mean(0))
        evidence.std.copy_(numbers.std(0).clamp(min=1e-6))
        evidence.linear.bias.copy_(torch.logit(targets.mean(), eps=1e-6))
        evidence.score_scale.fill_(START_SCALE)
    optimizer = torch.optim.AdamW(evidence.parameters(), lr=START_RATE)
    steps = epochs * math.ceil(len(targets) / START_BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    silent = torch.zeros(1, START_BATCH)
    for _ in range(epochs):
        total = 0.0
        for chosen in torch.randperm(len(targets)).split(START_BATCH):
            logits = evidence(silent[:, : len(chosen)], numbers[chosen].unsqueeze(0)).squeeze(0)
            loss = F.binary_cross_entropy_with_logits(logits, targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
    return total / len(targets)


def _evidence_arrays(rows: Iterable[Mapping[str, Any]], features: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The numbers of all candidates of all rows, and whether each candidate is right."""
    numbers, targets = [], []
    for row in rows:
        numbers.append(np.asarray(row["candidate_features"]).reshape(-1, features))
        targets.append(np.isin(row["candidate_ids"], row["labels"]))
    # They stay in half precision until they are together: these are the largest arrays of a training.
    together = np.concatenate(numbers, dtype=np.float32)
    return torch.from_numpy(together), torch.from_numpy(np.concatenate(targets)).float()
