"""Beyond the paper: a Hugging Face encoder reads texts in place of word vectors, biLSTM and convolutions."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel

from .configuration_kenmesh import KenMeSHConfig
from .functional_kenmesh import gather_text

# Norm that word vectors start with. An attention score is a product of two of them: larger ones would
# saturate it, with smaller ones no word of a label's name would stand out.
WORD_NORM = 2.6


def build_encoder(config: KenMeSHConfig) -> PreTrainedModel:
    """The encoder that a configuration describes, with fresh weights."""
    encoder = AutoModel.from_config(config.text_encoder, dtype=torch.get_default_dtype())
    if hasattr(encoder, "pooler"):
        # Made for the first token alone, which no label looks at: weights that would never learn.
        encoder.pooler = None
    return encoder


def read_text(encoder: PreTrainedModel, input_ids: Tensor, mask: Tensor) -> Tensor:
    """Last hidden states `(batch, text, dim)` of each text, wherever its padding stands.

    Encoders count positions from the left, so the tokens of a text are moved there and back.
    """
    order = torch.argsort(~mask, dim=1, stable=True)
    seen = mask.gather(1, order)
    tokens = input_ids.gather(1, order).masked_fill(~seen, encoder.config.pad_token_id or 0)
    # Attention over nothing is no number, so of an empty text one token of padding is seen.
    seen = seen | ((torch.arange(mask.shape[1], device=mask.device) == 0) & ~mask.any(1, keepdim=True))
    states = encoder(input_ids=tokens, attention_mask=seen.long()).last_hidden_state
    return gather_text(states, order.argsort(dim=1))


class KenMeSHTextFeatures(nn.Module):
    """From hidden states and input embeddings of an encoder to features that labels are compared with.

    Tables of encoders differ in scale, and their rows share a direction; normalised, they are word vectors of
    which texts and label names are made alike. With `word_path` a text starts as these alone, in which labels
    find the words of their names, and what the encoder adds is learned from zero.
    """

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        encoder: Any = config.text_encoder
        self.projection = nn.Linear(encoder.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.embedding_dropout)
        wanted = config.word_path or config.label_encoder == "gcn"
        self.word_norm = nn.LayerNorm(config.embedding_size) if wanted else None
        self.word_weight = nn.Parameter(torch.ones(())) if config.word_path else None

    def word_vectors(self, embeddings: Tensor) -> Tensor:
        """Rows of the encoder's embedding table `(…, dim)` as vectors of words."""
        return embeddings if self.word_norm is None else self.word_norm(embeddings)

    def forward(self, states: Tensor, embeddings: Tensor, mask: Tensor) -> Tensor:
        """Hidden states and input embeddings `(batch, text, …)` → `(batch, text, 2 · dim)`, masked."""
        features = self.projection(self.dropout(states))
        if self.word_weight is not None:
            words = self.dropout(self.word_vectors(embeddings))
            features = features + self.word_weight * torch.cat([words, words], dim=-1)
        return features * mask.unsqueeze(-1)


__all__ = ["KenMeSHTextFeatures", "build_encoder", "read_text"]
