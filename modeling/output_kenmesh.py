"""What the network returns."""

from dataclasses import dataclass

from torch import Tensor
from transformers.modeling_outputs import ModelOutput


@dataclass
class KenMeSHModelOutput(ModelOutput):
    """Document and label features.

    Attributes:
        last_hidden_state: Abstract features `(batch, text, dim)`, zero at padding.
        title_hidden_state: Title features, or None for a model that reads one channel.
        label_features: `(labels, dim)`, the same for every article.
        text_mask: `(batch, text)`, 1 where `last_hidden_state` holds a word.
        title_mask: The same for the title.
        hidden_states: biLSTM output and each convolution level of the abstract, when asked for.
    """

    last_hidden_state: Tensor | None = None
    title_hidden_state: Tensor | None = None
    label_features: Tensor | None = None
    text_mask: Tensor | None = None
    title_mask: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None


@dataclass
class KenMeSHOutput(ModelOutput):
    """Scores of every label.

    Attributes:
        loss: Mean binary cross-entropy, when labels are given.
        logits: `(batch, labels)`; their sigmoid is the probability of a label.
        hidden_states: As in `KenMeSHModelOutput`.
        attentions: Attention over the words of the title and of the abstract, each `(batch, chosen labels,
            text)`, for the labels asked for with `attention_label_ids`.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


__all__ = ["KenMeSHModelOutput", "KenMeSHOutput"]
