"""Small networks and batches for the tests of the model."""

import pytest
import torch
from torch import Tensor

from kenmesh_hf.modeling.configuration_kenmesh import KenMeSHConfig
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing

LABELS, WORDS, EVIDENCE = 17, 40, 3
EVIDENCE_ON = {"num_evidence_features": EVIDENCE, "evidence_hidden_size": 4}
# A BERT of two layers; words 2 and 3 of a text stand for its special tokens.
ENCODER = {
    "text_encoder": {
        "model_type": "bert",
        "vocab_size": WORDS,
        "hidden_size": 6,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 10,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    "special_token_ids": [2, 3],
}
SWITCHES = {
    "paper": {},
    "a_one_channel": {"two_channels": False},
    "b_no_convolution": {"dilation_rates": []},
    "c_free_labels": {"label_encoder": "free"},
    "d_no_mask": {"mask_labels": False},
    "two_lstm_layers": {"num_lstm_layers": 2},
    "shared_lstm": {"share_channel_lstm": True},
    "residual": {"residual_convolutions": True},
    "word_path": {"word_path": True},
    "word_path_two_layers": {"word_path": True, "num_lstm_layers": 2, "two_channels": False},
    "no_gcn": {"num_gcn_layers": 0},
    "bias": {"label_bias": True},
    "evidence": EVIDENCE_ON,
    "linear_evidence": {"num_evidence_features": EVIDENCE, "evidence_hidden_size": 0},
    "candidates_loss": {"loss_labels": "candidates"},
    "sampled_loss": {"loss_labels": "sampled", "num_sampled_negatives": 5},
    "everything": {"num_lstm_layers": 2, "label_bias": True, "loss_labels": "candidates", **EVIDENCE_ON},
    "encoder": {"label_bias": True, **ENCODER},
    "encoder_word_path": {"word_path": True, **ENCODER},
    "encoder_one_channel": {"two_channels": False, **ENCODER},
    "encoder_free_labels": {"label_encoder": "free", **ENCODER},
    "encoder_everything": {"word_path": True, "label_bias": True, "loss_labels": "candidates", **ENCODER}
    | EVIDENCE_ON,
}
every_switch = pytest.mark.parametrize("changes", SWITCHES.values(), ids=SWITCHES.keys())


def build_config(**changes) -> KenMeSHConfig:
    sizes = {"vocab_size": WORDS, "embedding_size": 6, "num_labels": LABELS, "dilation_rates": [1, 2]}
    graph = {"num_label_tokens": 30, "num_edges": 20}
    return KenMeSHConfig(**{**sizes, **graph, "embedding_dropout": 0.0, **changes})


def build_network(seed: int = 0, dtype: torch.dtype = torch.float64, **changes) -> KenMeSHForMeSHIndexing:
    """A network with weights far from their initial values, so that every part shows in the result."""
    torch.manual_seed(seed)
    model = KenMeSHForMeSHIndexing(build_config(**changes)).to(dtype).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn_like(weight) * (0.4 if weight.dim() else 0.1) + ("scale" in name))
    if model.config.label_encoder == "gcn":
        starts = torch.arange(LABELS) * 30 // LABELS
        edges = torch.stack([torch.arange(20) % 5, 5 + torch.arange(20) % (LABELS - 5)])
        model.kenmesh.set_labels(torch.randint(2, WORDS, (30,)), starts, edges)
    return model


def build_batch(
    model: KenMeSHForMeSHIndexing, batch: int = 4, text: int = 9, title: int = 5
) -> dict[str, Tensor]:
    """Articles padded on the right; the last has no abstract."""
    generator = torch.Generator().manual_seed(7)

    def draw(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator)

    lengths = draw(1, text + 1, batch, 1)
    lengths[0], lengths[-1] = text, 0 if batch > 1 else text
    candidates = torch.stack([torch.randperm(LABELS, generator=generator)[:6] for _ in range(batch)])
    inputs = {
        "input_ids": draw(2, WORDS, batch, text),
        "attention_mask": torch.arange(text) < lengths,
        "title_input_ids": draw(2, WORDS, batch, title),
        "title_attention_mask": torch.arange(title) < draw(1, title + 1, batch, 1),
        "candidate_ids": candidates,
        "candidate_mask": torch.arange(6) < draw(3, 7, batch, 1),
        "labels": torch.cat([candidates[:, :2], draw(0, LABELS, batch, 1), torch.full((batch, 2), -100)], 1),
    }
    if model.config.num_evidence_features:
        inputs["candidate_features"] = torch.rand(batch, 6, EVIDENCE, generator=generator)
    return inputs


def score(model: KenMeSHForMeSHIndexing, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        return model(**inputs).logits


def without_words(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same articles with titles and abstracts that are padding only."""
    masks = [f"{name}attention_mask" for name in ("", "title_")]
    return inputs | {mask: torch.zeros_like(inputs[mask]) for mask in masks}


def without_tokens(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same articles with titles and abstracts of length zero."""
    names = [f"{name}{kind}" for name in ("", "title_") for kind in ("input_ids", "attention_mask")]
    return inputs | {name: inputs[name].new_zeros((len(inputs[name]), 0), dtype=torch.long) for name in names}
