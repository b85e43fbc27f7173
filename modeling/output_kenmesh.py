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
        hidden_states: Output of the biLSTM or text encoder and each convolution level of the abstract, when
            asked for.
    """

    last_hidden_state: Tensor | None = None
    title_hidden_state: Tensor | None = None
    label_features: Tensor | None = None
    text_mask: Tensor | None = None
    title_mask: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None

    @property
    def channels(self) -> list[tuple[Tensor, Tensor]]:
        """Features and mask of each text compared with labels: the title, if any, and the abstract."""
        texts = [(self.title_hidden_state, self.title_mask), (self.last_hidden_state, self.text_mask)]
        return [(states, mask.bool()) for states, mask in texts if states is not None and mask is not None]


@dataclass
class KenMeSHOutput(ModelOutput):
    """Scores of every label.

    Attributes:
        loss: Mean binary cross-entropy, when labels are given.
        logits: `(batch, labels)`; their sigmoid is the probability of a label.
        hidden_states: As in `KenMeSHModelOutput`.
        attentions: Attention over the words of the title and of the abstract, each `(batch, chosen labels,
            text)`, for the labels asked for with `attention_label_ids`.
        features: Document and label features, when asked for.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    features: KenMeSHModelOutput | None = None


__all__ = ["KenMeSHModelOutput", "KenMeSHOutput"]
