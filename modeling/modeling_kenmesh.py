"""KenMeSH (Wang, Mercer and Rudzicz, ACL 2022), section 3 in its order: document, labels, masked attention, score.

Shapes are written as `(batch, text, dim)`; `labels` counts every descriptor of the model, `candidates` the few that
were proposed for one article. No tensor of shape `(batch, text, labels)` or `(batch, labels, dim)` is ever made.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.modeling_outputs import ModelOutput
from transformers.utils import can_return_tuple

from .configuration_kenmesh import KenMeSHConfig

# Probability zero that survives float16 and float32 alike: the logit of a label that was never scored.
UNSCORED = -1e4


@dataclass
class KenMeSHModelOutput(ModelOutput):
    """Document and label features.

    Attributes:
        last_hidden_state: Abstract features `(batch, text, dim)`, zero at padding.
        title_hidden_state: Title features, or None for a model that reads one channel.
        label_features: `(labels, dim)`, the same for every article.
        text_mask: `(batch, text)`, true where `last_hidden_state` holds a word.
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
        attentions: Attention over the words of the title and of the abstract, each `(batch, chosen labels, text)`,
            for the labels asked for with `attention_label_ids`.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


def gather_text(states: Tensor, order: Tensor) -> Tensor:
    """Picks text positions: `(batch, text, dim)` by `(batch, text)`."""
    return states.gather(1, order.unsqueeze(-1).expand(-1, -1, states.shape[-1]))


class KenMeSHBiLSTM(nn.Module):
    """Eq. 1: a biLSTM whose two directions are run as two plain LSTMs over a padded batch.

    The reverse direction reads each text from its own last word. That equals a packed sequence and trains six times
    faster on a CPU, where packed sequences miss the fused kernels.
    """

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        widths = [config.embedding_size] + [config.hidden_size] * (config.num_lstm_layers - 1)
        self.forward_layers = nn.ModuleList(nn.LSTM(w, config.embedding_size, batch_first=True) for w in widths)
        self.backward_layers = nn.ModuleList(nn.LSTM(w, config.embedding_size, batch_first=True) for w in widths)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Words first, padding last: `(batch, text, dim)` and `(batch, text)` → `(batch, text, 2 · dim)`."""
        position = torch.arange(mask.shape[1], device=mask.device)
        mirrored = mask.sum(1, keepdim=True) - 1 - position
        mirrored = torch.where(mirrored >= 0, mirrored, position)
        for ahead, back in zip(self.forward_layers, self.backward_layers, strict=True):
            read_ahead = ahead(states)[0]
            read_back = gather_text(back(gather_text(states, mirrored))[0], mirrored)
            states = torch.cat([read_ahead, read_back], dim=-1) * mask.unsqueeze(-1)
        return states


class KenMeSHDilatedCNN(nn.Module):
    """Eq. 2: stacked convolutions with growing dilation; length is kept and padding never leaks in."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        width, kernel = config.hidden_size, config.kernel_size
        self.levels = nn.ModuleList(
            nn.Conv1d(width, width, kernel, dilation=rate, padding=rate * (kernel // 2))
            for rate in config.dilation_rates
        )
        self.activation = ACT2FN[config.hidden_act]
        self.residual = config.residual_convolutions

    def forward(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        outputs = []
        for level in self.levels:
            convolved = self.activation(level(states.transpose(1, 2)).transpose(1, 2))
            states = (states + convolved if self.residual else convolved) * mask.unsqueeze(-1)
            outputs.append(states)
        return outputs


class KenMeSHLabelEncoder(nn.Module):
    """Eq. 3: a label's vector is the mean of its name's word vectors beside two graph convolutions of it."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        labels, width = config.num_labels, config.embedding_size
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(config.num_gcn_layers))
        self.activation = ACT2FN[config.gcn_act]
        # Buffers, not attributes: from_pretrained builds on the meta device, where only these are filled in.
        self.register_buffer("token_ids", torch.zeros(config.num_label_tokens, dtype=torch.long))
        self.register_buffer("token_offsets", torch.zeros(labels, dtype=torch.long))
        self.register_buffer("edges", torch.zeros(2, config.num_edges, dtype=torch.long))

    def spread(self, features: Tensor, scale: Tensor) -> Tensor:
        """`D^-½ (A + I) D^-½ h` with edges in both directions."""
        parent, child = self.edges
        features = features * scale
        spread = features.index_add(0, child, features.index_select(0, parent))
        spread = spread.index_add(0, parent, features.index_select(0, child))
        return spread * scale

    def forward(self, word_embeddings: Tensor) -> Tensor:
        """The embedding table `(words, dim)` → `(labels, 2 · dim)`."""
        names = F.embedding_bag(self.token_ids, word_embeddings, self.token_offsets, mode="mean")
        degree = torch.ones(len(names), device=names.device).index_add(
            0, self.edges.flatten(), torch.ones(self.edges.numel(), device=names.device)
        )
        scale = degree.rsqrt().to(names.dtype).unsqueeze(-1)
        features = names
        for layer in self.layers:
            features = self.activation(layer(self.spread(features, scale)))
        return torch.cat([names, features], dim=-1)


class KenMeSHFreeLabels(nn.Module):
    """Ablation (c): a free vector for each label, as in the last layer of any classifier."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.num_labels, config.hidden_size))

    def forward(self, word_embeddings: Tensor) -> Tensor:
        return self.weight


def attention_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the words of each text; all zero for an empty text."""
    mask = mask.unsqueeze(1)
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) * mask


def attended_score(states: Tensor, mask: Tensor, keys: Tensor) -> Tensor:
    """Eqs. 5 and 6 for one channel, `(batch, text, dim)` and `(batch, candidates, dim)` → `(batch, candidates)`.

    The attention key of a label is also its classifier vector `v`, so with `s_t = h_t · v` the score `c · v` is
    `Σ_t softmax(s)_t · s_t`: the context vectors `c` need never be made.
    """
    scores = keys @ states.transpose(1, 2)
    return (attention_weights(scores, mask) * scores).sum(-1)


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over the words of a text. A label outside the mask has a zero key, so this is what it attends to."""
    return states.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


class KenMeSHEvidence(nn.Module):
    """Beyond the paper: what the numbers of a candidate (votes, journal share, lexical hits) add to its logit."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        features, hidden = config.num_evidence_features, config.evidence_hidden_size
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.linear = nn.Linear(features, 1)
        self.hidden = nn.Linear(features + 1, hidden) if hidden else None
        self.output = nn.Linear(hidden, 1, bias=False) if hidden else None
        self.score_scale = nn.Parameter(torch.ones(()))

    def forward(self, network_score: Tensor, candidate_features: Tensor) -> Tensor:
        """`(batch, candidates)` and `(batch, candidates, features)` → logits `(batch, candidates)`."""
        numbers = ((candidate_features.float() - self.mean) / self.std).to(network_score.dtype)
        network_score = network_score * self.score_scale
        logits = network_score + self.linear(numbers).squeeze(-1)
        if self.hidden is not None:
            joint = torch.cat([numbers, network_score.unsqueeze(-1)], dim=-1)
            logits = logits + self.output(torch.tanh(self.hidden(joint))).squeeze(-1)
        return logits


class KenMeSHPreTrainedModel(PreTrainedModel):
    """What every KenMeSH model shares: configuration, initial weights, names."""

    config_class = KenMeSHConfig
    base_model_prefix = "kenmesh"
    main_input_name = "input_ids"
    input_modalities = ("text",)
    _no_split_modules = ["KenMeSHBiLSTM", "KenMeSHDilatedCNN", "KenMeSHLabelEncoder"]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module):
        super()._init_weights(module)
        if isinstance(module, nn.Conv1d):
            init.kaiming_uniform_(module.weight, nonlinearity="relu")
        elif isinstance(module, KenMeSHLabelEncoder):
            for layer in module.layers:
                init.xavier_uniform_(layer.weight)
            for buffer in (module.token_ids, module.token_offsets, module.edges):
                init.zeros_(buffer)
        elif isinstance(module, KenMeSHFreeLabels):
            init.normal_(module.weight, std=self.config.initializer_range)
        elif isinstance(module, KenMeSHEvidence):
            init.zeros_(module.mean)
            init.ones_(module.std)
            init.ones_(module.score_scale)
            init.zeros_(module.linear.weight)
            if module.output is not None:
                init.zeros_(module.output.weight)
        elif isinstance(module, KenMeSHForMeSHIndexing) and module.label_bias is not None:
            init.zeros_(module.label_bias)


class KenMeSHModel(KenMeSHPreTrainedModel):
    """Document features of each article and the label features they are compared with."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__(config)
        self.word_embeddings = nn.Embedding(config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id)
        self.dropout = nn.Dropout(config.embedding_dropout)
        self.text_lstm = KenMeSHBiLSTM(config)
        separate = config.two_channels and not config.share_channel_lstm
        self.title_lstm = KenMeSHBiLSTM(config) if separate else None
        self.text_cnn = KenMeSHDilatedCNN(config)
        self.label_encoder = (KenMeSHLabelEncoder if config.label_encoder == "gcn" else KenMeSHFreeLabels)(config)
        self._cached_labels: tuple[tuple, Tensor] | None = None
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.word_embeddings

    def set_input_embeddings(self, value: nn.Embedding):
        self.word_embeddings = value
        if isinstance(self.label_encoder, KenMeSHLabelEncoder):
            # A name word that a smaller table no longer holds becomes unknown.
            self.label_encoder.token_ids[self.label_encoder.token_ids >= value.num_embeddings] = 1

    def set_labels(self, token_ids: Tensor, token_offsets: Tensor, edges: Tensor):
        """Gives the label encoder its names (a ragged list of token ids) and its parent–child pairs."""
        if not isinstance(self.label_encoder, KenMeSHLabelEncoder):
            raise ValueError("set_labels needs label_encoder='gcn'; with 'free' the labels are plain weights.")
        for name, value in {"token_ids": token_ids, "token_offsets": token_offsets, "edges": edges}.items():
            buffer = getattr(self.label_encoder, name)
            if buffer.shape != value.shape:
                raise ValueError(
                    f"The label encoder's `{name}` has shape {tuple(buffer.shape)} by the configuration, but was given "
                    f"{tuple(value.shape)}; set num_labels, num_label_tokens and num_edges to what the vocabulary has."
                )
            buffer.copy_(value)
        self._cached_labels = None

    def label_features(self) -> Tensor:
        """`(labels, dim)`. Constant at inference, so kept until a weight, the device or the type changes."""
        weights = [self.word_embeddings.weight, *self.label_encoder.state_dict(keep_vars=True).values()]
        reusable = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
        if not reusable or any(weight.is_inference() for weight in weights):
            return self.label_encoder(self.word_embeddings.weight)
        state = tuple((weight.data_ptr(), weight._version, weight.dtype, weight.device) for weight in weights)
        if self._cached_labels is None or self._cached_labels[0] != state:
            self._cached_labels = (state, self.label_encoder(self.word_embeddings.weight))
        return self._cached_labels[1]

    def encode_text(self, input_ids: Tensor, mask: Tensor, lstm: KenMeSHBiLSTM, cnn: KenMeSHDilatedCNN | None):
        """Features at every level, zero at padding, wherever in the row the padding stands."""
        order = torch.argsort(~mask, dim=1, stable=True)
        packed_mask = mask.gather(1, order)
        embedded = self.dropout(self.word_embeddings(input_ids.gather(1, order)))
        levels = [lstm(embedded, packed_mask)]
        if cnn is not None:
            levels += cnn(levels[0], packed_mask)
        restore = torch.argsort(order, dim=1)
        return [gather_text(level, restore) for level in levels]

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        title_input_ids: Tensor | None = None,
        title_attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> KenMeSHModelOutput:
        mask = self._text_mask(input_ids, attention_mask)
        title = title_mask = None
        if title_input_ids is not None:
            title_mask = self._text_mask(title_input_ids, title_attention_mask)
            if self.config.two_channels:
                title_lstm = self.title_lstm if self.title_lstm is not None else self.text_lstm
                title = self.encode_text(title_input_ids, title_mask, title_lstm, None)[0]
            else:
                input_ids = torch.cat([title_input_ids, input_ids], dim=1)
                mask = torch.cat([title_mask, mask], dim=1)
        levels = self.encode_text(input_ids, mask, self.text_lstm, self.text_cnn)
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        return KenMeSHModelOutput(
            last_hidden_state=levels[-1],
            title_hidden_state=title,
            label_features=self.label_features(),
            text_mask=mask,
            title_mask=None if title is None else title_mask,
            hidden_states=tuple(levels) if output_hidden_states else None,
        )

    def _text_mask(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        return attention_mask.bool() if attention_mask is not None else input_ids != self.config.pad_token_id


class KenMeSHForMeSHIndexing(KenMeSHPreTrainedModel):
    """The whole indexer: an article and its candidate labels → a logit for every label."""

    # Without this, Trainer would take **kwargs for "scales its own loss" and divide by the number of processes.
    accepts_loss_kwargs = False

    def __init__(self, config: KenMeSHConfig):
        super().__init__(config)
        self.kenmesh = KenMeSHModel(config)
        self.evidence = KenMeSHEvidence(config) if config.num_evidence_features else None
        self.label_bias = nn.Parameter(torch.empty(config.num_labels)) if config.label_bias else None
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        title_input_ids: Tensor | None = None,
        title_attention_mask: Tensor | None = None,
        candidate_ids: Tensor | None = None,
        candidate_mask: Tensor | None = None,
        candidate_features: Tensor | None = None,
        labels: Tensor | None = None,
        attention_label_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> KenMeSHOutput:
        """Scores every label.

        Args:
            input_ids: Words of the abstract `(batch, text)`.
            attention_mask: True at words; without it, everything but `pad_token_id` is a word.
            title_input_ids: Words of the title.
            title_attention_mask: The same for the title.
            candidate_ids: Labels that are attended, `(batch, candidates)`; without them every label is.
            candidate_mask: True at real candidates; without it, all are.
            candidate_features: Their numbers `(batch, candidates, num_evidence_features)`.
            labels: Gold label ids `(batch, gold)`, padded with -100.
            attention_label_ids: Labels whose attention over the words is returned, `(batch, chosen)`.
            output_hidden_states: Return the abstract's features at each level.
        """
        features = self.kenmesh(
            input_ids, attention_mask, title_input_ids, title_attention_mask, output_hidden_states, return_dict=True
        )
        channels = [(features.last_hidden_state, features.text_mask)]
        if features.title_hidden_state is not None:
            channels.insert(0, (features.title_hidden_state, features.title_mask))
        keys = features.label_features
        if candidate_ids is None or not self.config.mask_labels:
            logits = self._add_bias(self._score_every_label(channels, keys))
            if candidate_ids is not None:
                candidate_mask = self._candidate_mask(candidate_ids, candidate_mask)
        else:
            candidate_mask = self._candidate_mask(candidate_ids, candidate_mask)
            logits = self._score_candidates(channels, keys, candidate_ids, candidate_mask, candidate_features)
        return KenMeSHOutput(
            loss=None if labels is None else self._loss(logits, labels, candidate_ids, candidate_mask),
            logits=logits,
            hidden_states=features.hidden_states,
            attentions=None if attention_label_ids is None else self._attentions(channels, keys, attention_label_ids),
        )

    def _candidate_mask(self, candidate_ids: Tensor, candidate_mask: Tensor | None) -> Tensor:
        if candidate_mask is None:
            return torch.ones_like(candidate_ids, dtype=torch.bool)
        return candidate_mask.bool()

    def _score_candidates(
        self,
        channels: list[tuple[Tensor, Tensor]],
        keys: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
        candidate_features: Tensor | None,
    ) -> Tensor:
        """Eqs. 4 to 6: attention for the candidates, the mean of the text for all other labels."""
        candidate_keys = F.embedding(candidate_ids, keys)
        scores = sum(attended_score(states, mask, candidate_keys) for states, mask in channels)
        if self.label_bias is not None:
            scores = scores + self.label_bias[candidate_ids]
        if self.evidence is not None:
            if candidate_features is None:
                raise ValueError(
                    "This model weighs evidence: pass `candidate_features` beside `candidate_ids` (the processor "
                    "makes both)."
                )
            scores = self.evidence(scores, candidate_features)
        # Padding is written to a column past the last label, which is then cut off.
        columns = candidate_ids.masked_fill(~candidate_mask, self.config.num_labels)
        return self._score_others(channels, keys, scores).scatter(1, columns, scores)[:, : self.config.num_labels]

    def _score_others(self, channels: list[tuple[Tensor, Tensor]], keys: Tensor, scores: Tensor) -> Tensor:
        """`(batch, labels + 1)` as if no label were a candidate.

        A loss over candidates alone teaches nothing about other labels, so there they stay unscored.
        """
        shape = (len(scores), self.config.num_labels + 1)
        if self.config.loss_labels == "candidates":
            return scores.new_full(shape, UNSCORED)
        means = sum(mean_state(states, mask) for states, mask in channels)
        return F.pad(self._add_bias(means @ keys.T), (0, 1))

    def _add_bias(self, logits: Tensor) -> Tensor:
        return logits if self.label_bias is None else logits + self.label_bias

    def _score_every_label(self, channels: list[tuple[Tensor, Tensor]], keys: Tensor) -> Tensor:
        """Attention for all labels, a block at a time; blocks are computed again in the backward pass."""
        words = max(mask.numel() for _, mask in channels)
        size = max(1, self.config.attention_chunk_elements // words)

        def score(block: Tensor) -> Tensor:
            block = block.expand(len(channels[0][0]), -1, -1)
            return sum(attended_score(states, mask, block) for states, mask in channels)

        if torch.is_grad_enabled():
            return torch.cat([checkpoint(score, block, use_reentrant=False) for block in keys.split(size)], dim=1)
        return torch.cat([score(block) for block in keys.split(size)], dim=1)

    def _attentions(
        self, channels: list[tuple[Tensor, Tensor]], keys: Tensor, label_ids: Tensor
    ) -> tuple[Tensor, ...]:
        chosen = F.embedding(label_ids, keys)
        return tuple(attention_weights(chosen @ states.transpose(1, 2), mask) for states, mask in channels)

    def _loss(
        self, logits: Tensor, labels: Tensor, candidate_ids: Tensor | None, candidate_mask: Tensor | None
    ) -> Tensor:
        """Binary cross-entropy, the mean over the labels that `loss_labels` names."""
        gold = self._multi_hot(labels, labels >= 0)
        if self.config.loss_labels == "all" or candidate_ids is None:
            return F.binary_cross_entropy_with_logits(logits.float(), gold.float())
        if self.config.loss_labels == "candidates":
            logits, gold, counted = logits.gather(1, candidate_ids), gold.gather(1, candidate_ids), candidate_mask
        else:
            sampled = torch.randint(
                self.config.num_labels, (len(logits), self.config.num_sampled_negatives), device=logits.device
            )
            counted = gold | self._multi_hot(candidate_ids, candidate_mask) | self._multi_hot(sampled, sampled >= 0)
        losses = F.binary_cross_entropy_with_logits(logits.float(), gold.float(), reduction="none")
        return (losses * counted).sum() / counted.sum().clamp(min=1)

    def _multi_hot(self, label_ids: Tensor, mask: Tensor) -> Tensor:
        """Ragged label ids → `(batch, labels)` booleans; padding goes to a column that is cut off."""
        labels = self.config.num_labels
        empty = torch.zeros(len(label_ids), labels + 1, dtype=torch.bool, device=label_ids.device)
        return empty.scatter(1, label_ids.masked_fill(~mask, labels), True)[:, :labels]


__all__ = ["KenMeSHForMeSHIndexing", "KenMeSHModel", "KenMeSHModelOutput", "KenMeSHOutput", "KenMeSHPreTrainedModel"]
