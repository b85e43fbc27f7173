"""KenMeSH (Wang, Mercer and Rudzicz, ACL 2022), section 3 in its order: document, labels, attention, score.

Shapes are written as `(batch, text, dim)`; `labels` counts every descriptor of the model, `candidates` the
few proposed for one article. No tensor of shape `(batch, text, labels)` or `(batch, labels, dim)` is made.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.utils import can_return_tuple

from .checksums_kenmesh import ChecksummedWeights
from .configuration_kenmesh import KenMeSHConfig
from .functional_kenmesh import (
    ScoreAndGatherLabels,
    SpreadOverGraph,
    add_all,
    attended_score,
    attention_weights,
    build_adjacency,
    check_range,
    gather_text,
    mean_state,
    run_lstm,
    word_scores,
)
from .fusion_kenmesh import KenMeSHEvidence
from .loss_kenmesh import label_loss
from .output_kenmesh import KenMeSHModelOutput, KenMeSHOutput
from .text_encoder_kenmesh import WORD_NORM, KenMeSHTextFeatures, build_encoder, read_text

# Probability zero that survives float16 and float32 alike: the logit of a label that was never scored.
UNSCORED = -1e4


class KenMeSHBiLSTM(nn.Module):
    """Eq. 1: a biLSTM whose two directions are run as two plain LSTMs over a padded batch.

    Each direction reads the words of a text one after the other, wherever its padding stands. That equals a
    packed sequence and trains six times faster on a CPU, where packed sequences miss the fused kernels.
    With `word_path` the words themselves join what both directions make of them, by a weight that is learned.
    """

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        widths = [config.embedding_size] + [config.hidden_size] * (config.num_lstm_layers - 1)
        self.forward_layers = nn.ModuleList(
            nn.LSTM(w, config.embedding_size, batch_first=True) for w in widths
        )
        self.backward_layers = nn.ModuleList(
            nn.LSTM(w, config.embedding_size, batch_first=True) for w in widths
        )
        self.word_weight = nn.Parameter(torch.ones(())) if config.word_path else None

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """`(batch, text, dim)` and `(batch, text)` → `(batch, text, 2 · dim)`, zero at padding."""
        states = words
        position = torch.arange(mask.shape[1], device=mask.device)
        mirrored = mask.sum(1, keepdim=True) - 1 - position
        ahead_order = torch.argsort(~mask, dim=1, stable=True)
        back_order = ahead_order.gather(1, torch.where(mirrored >= 0, mirrored, position))
        for ahead, back in zip(self.forward_layers, self.backward_layers, strict=True):
            both = [self._read(ahead, states, ahead_order), self._read(back, states, back_order)]
            states = torch.cat(both, dim=-1) * mask.unsqueeze(-1)
        if self.word_weight is None:
            return states
        return states + self.word_weight * torch.cat([words, words], dim=-1) * mask.unsqueeze(-1)

    def _read(self, lstm: nn.Module, states: Tensor, order: Tensor) -> Tensor:
        return gather_text(run_lstm(lstm, gather_text(states, order)), order.argsort(dim=1))


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

    token_ids: Tensor
    token_offsets: Tensor
    edges: Tensor

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        labels, width = config.num_labels, config.embedding_size
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(config.num_gcn_layers))
        self.activation = ACT2FN[config.gcn_act]
        # Buffers, not attributes: from_pretrained builds on the meta device, where only these are filled in.
        # Never empty, which not every tool can save: word 0 is no word, and an edge to itself moves no label.
        tokens, edges = max(1, config.num_label_tokens), max(1, config.num_edges)
        self.register_buffer("token_ids", torch.zeros(tokens, dtype=torch.long))
        self.register_buffer("token_offsets", torch.zeros(labels, dtype=torch.long))
        self.register_buffer("edges", torch.zeros(2, edges, dtype=torch.long))

    def forward(self, word_embeddings: Tensor) -> Tensor:
        """The embedding table `(words, dim)` → `(labels, 2 · dim)`."""
        names = F.embedding_bag(self.token_ids, word_embeddings, self.token_offsets, mode="mean")
        adjacency = build_adjacency(self.edges, len(names), names.dtype)
        features = names
        for layer in self.layers:
            features = self.activation(layer(SpreadOverGraph.apply(features, *adjacency)))
        return torch.cat([names, features], dim=-1)


class KenMeSHFreeLabels(nn.Module):
    """Ablation (c): a free vector for each label, as in the last layer of any classifier."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.num_labels, config.hidden_size))

    def forward(self, word_embeddings: Tensor) -> Tensor:
        return self.weight


class KenMeSHPreTrainedModel(ChecksummedWeights, PreTrainedModel):
    """What every KenMeSH model shares: configuration, initial weights, names."""

    config: KenMeSHConfig
    config_class = KenMeSHConfig
    base_model_prefix = "kenmesh"
    main_input_name = "input_ids"
    _no_split_modules = ["KenMeSHBiLSTM", "KenMeSHDilatedCNN", "KenMeSHLabelEncoder"]

    def __init__(self, config: KenMeSHConfig):
        if config.text_encoder is not None:
            # Whether it can is for the encoder to say, which is asked too.
            self._supports_sdpa = self._supports_flash_attn = self._supports_flex_attn = True
            self.supports_gradient_checkpointing = True
        super().__init__(config)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module):
        super()._init_weights(module)
        if isinstance(module, nn.Conv1d):
            init.kaiming_uniform_(module.weight, nonlinearity="relu")
        elif isinstance(module, KenMeSHLabelEncoder):
            for layer in module.layers:
                init.xavier_uniform_(layer.get_parameter("weight"))
            for buffer in (module.token_ids, module.token_offsets, module.edges):
                init.zeros_(buffer)
        elif isinstance(module, KenMeSHFreeLabels):
            init.normal_(module.weight, std=self.config.initializer_range)
        elif isinstance(module, KenMeSHEvidence):
            init.zeros_(module.mean)
            init.ones_(module.std)
            init.ones_(module.score_scale)
            init.zeros_(module.linear.weight)
            for layer in module.hidden:
                init.xavier_uniform_(layer.get_parameter("weight"))
            if module.output is not None:
                init.zeros_(module.output.weight)
        elif isinstance(module, KenMeSHTextFeatures):
            if module.word_norm is not None:
                init.constant_(module.word_norm.weight, WORD_NORM / self.config.embedding_size**0.5)
            if module.word_weight is not None:
                init.ones_(module.word_weight)
                init.zeros_(module.projection.weight)
        elif isinstance(module, KenMeSHBiLSTM) and module.word_weight is not None:
            init.ones_(module.word_weight)
        elif isinstance(module, KenMeSHForMeSHIndexing) and module.label_bias is not None:
            init.constant_(module.label_bias, self.config.initial_label_bias)


class KenMeSHModel(KenMeSHPreTrainedModel):
    """Document features of each article and the label features they are compared with."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__(config)
        if config.text_encoder is not None:
            self.text_encoder = build_encoder(config)
            self.text_features = KenMeSHTextFeatures(config)
        else:
            self.word_embeddings = nn.Embedding(
                config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id
            )
            self.dropout = nn.Dropout(config.embedding_dropout)
            self.text_lstm = KenMeSHBiLSTM(config)
            separate = config.two_channels and not config.share_channel_lstm
            self.title_lstm = KenMeSHBiLSTM(config) if separate else None
            self.text_cnn = KenMeSHDilatedCNN(config)
        label_encoder = KenMeSHLabelEncoder if config.label_encoder == "gcn" else KenMeSHFreeLabels
        self.label_encoder = label_encoder(config)
        self._cached_labels: tuple[list, Tensor, list[Tensor]] | None = None
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        if self.config.text_encoder is not None:
            return self.text_encoder.get_input_embeddings()  # type: ignore[return-value]
        return self.word_embeddings

    def set_input_embeddings(self, value: nn.Embedding):  # type: ignore[override]
        if self.config.text_encoder is not None:
            self.text_encoder.set_input_embeddings(value)
            self.config.vocab_size = value.num_embeddings
        else:
            self.word_embeddings = value
        if isinstance(self.label_encoder, KenMeSHLabelEncoder):
            # A name word that a smaller table no longer holds becomes unknown.
            self.label_encoder.token_ids[self.label_encoder.token_ids >= value.num_embeddings] = 1

    def set_labels(self, token_ids: Tensor, token_offsets: Tensor, edges: Tensor):
        """Gives the label encoder its names (a ragged list of token ids) and its parent–child pairs."""
        if not isinstance(self.label_encoder, KenMeSHLabelEncoder):
            raise ValueError("set_labels needs label_encoder='gcn'; with 'free' labels are plain weights.")
        for name, value in {"token_ids": token_ids, "token_offsets": token_offsets, "edges": edges}.items():
            buffer = getattr(self.label_encoder, name)
            value = value if value.numel() else torch.zeros_like(buffer[..., :1])
            if buffer.shape != value.shape:
                raise ValueError(
                    f"`{name}` has shape {tuple(value.shape)}, but {tuple(buffer.shape)} by the config; "
                    "set num_labels, num_label_tokens and num_edges to what the vocabulary has."
                )
            buffer.copy_(value)

    @torch.compiler.disable
    def label_features(self) -> Tensor:
        """`(labels, dim)`. Constant at inference, so kept until a weight, the device or the type changes."""
        weights = self._label_weights()
        reusable = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
        if not reusable or any(weight.is_inference() for weight in weights):
            # Training begins like this, and a fused optimizer leaves no trace on the weights it changes.
            self._cached_labels = None
            return self.label_encoder(self._word_vectors())
        # The weights are kept too: else a new one might stand where a freed one stood, and look the same.
        state = [(id(weight), weight.data_ptr(), weight._version) for weight in weights]
        if self._cached_labels is None or self._cached_labels[0] != state:
            self._cached_labels = (state, self.label_encoder(self._word_vectors()), weights)
        return self._cached_labels[1]

    def _word_vectors(self) -> Tensor:
        """A vector for each token, of which names are made, `(words, dim)`."""
        table = self.get_input_embeddings().weight
        return table if self.config.text_encoder is None else self.text_features.word_vectors(table)

    def _label_weights(self) -> list[Tensor]:
        """Everything that label features are made from."""
        parts: list[nn.Module] = [self.get_input_embeddings(), self.label_encoder]
        if self.config.text_encoder is not None and self.text_features.word_norm is not None:
            parts.append(self.text_features.word_norm)
        return [weight for part in parts for weight in part.state_dict(keep_vars=True).values()]

    def train(self, mode: bool = True):
        # Nor does writing through `.data`, so a change of mode starts afresh too.
        self._cached_labels = None
        return super().train(mode)

    def _apply(self, fn, recurse: bool = True):
        self._cached_labels = None
        return super()._apply(fn, recurse)

    def encode_text(self, input_ids: Tensor, mask: Tensor, is_title: bool = False) -> list[Tensor]:
        """Features at every level, zero at padding and at tokens that are no words."""
        table = self.get_input_embeddings()
        check_range(input_ids, table.num_embeddings, "token ids", "Another model's tokenizer?")
        levels = 1 + (0 if is_title else self.config.num_hidden_layers)
        if input_ids.shape[1] == 0:
            return [table.weight.new_zeros(len(input_ids), 0, self.config.hidden_size)] * levels
        if self.config.text_encoder is not None:
            states = read_text(self.text_encoder, input_ids, mask)
            return [self.text_features(states, table(input_ids), self._words(input_ids, mask))]
        lstm = self.title_lstm if is_title and self.title_lstm is not None else self.text_lstm
        states = lstm(self.dropout(table(input_ids)), mask)
        return [states] if is_title else [states, *self.text_cnn(states, mask)]

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
                title = self.encode_text(title_input_ids, title_mask, is_title=True)[0]
                title_mask = self._words(title_input_ids, title_mask)
            else:
                input_ids, mask = self._join(title_input_ids, title_mask, input_ids, mask)
        levels = self.encode_text(input_ids, mask)
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        return KenMeSHModelOutput(
            last_hidden_state=levels[-1],
            title_hidden_state=title,
            label_features=self.label_features(),
            text_mask=self._words(input_ids, mask).long(),
            title_mask=None if title is None or title_mask is None else title_mask.long(),
            hidden_states=tuple(levels) if output_hidden_states else None,
        )

    def _text_mask(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        padding = self.config.pad_token_id
        if attention_mask is None and padding is not None:
            return input_ids != padding
        return (torch.ones_like(input_ids) if attention_mask is None else attention_mask).bool()

    def _words(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """The mask without the tokens that a tokenizer puts around a text: labels attend to words alone."""
        for token in self.config.special_token_ids:
            mask = mask & (input_ids != token)
        return mask

    def _join(self, title_ids: Tensor, title_mask: Tensor, text_ids: Tensor, text_mask: Tensor):
        """One text of title and abstract, its words without a gap in between and all padding last."""
        mask = torch.cat([title_mask, text_mask], dim=1)
        order = torch.argsort(~mask, dim=1, stable=True)
        return torch.cat([title_ids, text_ids], dim=1).gather(1, order), mask.gather(1, order)


class KenMeSHForMeSHIndexing(KenMeSHPreTrainedModel):
    """The whole indexer: an article and its candidate labels → a logit for every label."""

    # Without this, Trainer would read **kwargs as "scales its own loss" and divide by the process count.
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
        output_features: bool = False,
        **kwargs,
    ) -> KenMeSHOutput:
        """Scores every label.

        Args:
            input_ids: Words of the abstract `(batch, text)`; for a text encoder its tokens.
            attention_mask: True at words; without it, everything but `pad_token_id` is a word.
            title_input_ids: Words of the title.
            title_attention_mask: The same for the title.
            candidate_ids: Labels that are attended, `(batch, candidates)`; without them every label is.
            candidate_mask: True at real candidates; without it, all are.
            candidate_features: Their numbers `(batch, candidates, num_evidence_features)`.
            labels: Gold label ids `(batch, gold)`, padded with -100.
            attention_label_ids: Labels whose attention over the words is returned, `(batch, chosen)`.
            output_hidden_states: Return the abstract's features at each level.
            output_features: Return the features that were compared, too.
        """
        texts = (input_ids, attention_mask, title_input_ids, title_attention_mask)
        features = self.kenmesh(*texts, output_hidden_states=output_hidden_states, return_dict=True)
        channels, keys = features.channels, features.label_features
        candidates = None if candidate_ids is None else self._candidates(candidate_ids, candidate_mask)
        if candidates is None or not self.config.mask_labels:
            logits = self._add_bias(self._score_every_label(channels, keys))
        else:
            logits = self._score_candidates(channels, keys, *candidates, candidate_features)
        loss = attentions = None
        if labels is not None:
            loss = label_loss(self.config, logits, labels, candidates)
        if attention_label_ids is not None:
            attentions = self._attentions(channels, keys, attention_label_ids)
        shown = features if output_features else None
        return KenMeSHOutput(loss, logits, features.hidden_states, attentions, shown)

    def _candidates(self, candidate_ids: Tensor, candidate_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Ids that are all labels, whatever stood at padding, and which of them are real."""
        candidate_mask = (torch.ones_like(candidate_ids) if candidate_mask is None else candidate_mask).bool()
        candidate_ids = candidate_ids.masked_fill(~candidate_mask, 0)
        check_range(candidate_ids, self.config.num_labels, "candidate_ids", "Is its padding masked?")
        return candidate_ids, candidate_mask

    def _score_candidates(
        self,
        channels: list[tuple[Tensor, Tensor]],
        keys: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
        candidate_features: Tensor | None,
    ) -> Tensor:
        """Eqs. 4 to 6: attention for the candidates, the mean of the text for all other labels."""
        if self.config.loss_labels == "candidates":
            # Such a loss teaches nothing about other labels, so they stay unscored.
            candidate_keys = F.embedding(candidate_ids, keys)
            others = candidate_keys.new_full((len(candidate_ids), self.config.num_labels), UNSCORED)
        else:
            means = add_all(mean_state(states, mask) for states, mask in channels)
            others, candidate_keys = ScoreAndGatherLabels.apply(keys, means.to(keys.dtype), candidate_ids)
            others = self._add_bias(others)
        scores = add_all(attended_score(states, mask, candidate_keys) for states, mask in channels)
        scores = self.fuse(scores, candidate_ids, candidate_features)
        # Padding is written to a column past the last label, which is then cut off.
        columns = candidate_ids.masked_fill(~candidate_mask, self.config.num_labels)
        scores = scores.to(others.dtype)
        return F.pad(others, (0, 1)).scatter_(1, columns, scores)[:, : self.config.num_labels]

    def fuse(
        self, scores: Tensor, label_ids: Tensor, features: Tensor | None, candidates: bool = True
    ) -> Tensor:
        """Logits of labels: what the network says of each, its numbers `(…, features)`, and its bias.

        Labels that are no candidates have no numbers.
        """
        if self.evidence is not None and candidates:
            scores = self.evidence(scores, features)
        return scores if self.label_bias is None else scores + self.label_bias[label_ids]

    def _add_bias(self, logits: Tensor) -> Tensor:
        return logits if self.label_bias is None else logits + self.label_bias

    def _score_every_label(self, channels: list[tuple[Tensor, Tensor]], keys: Tensor) -> Tensor:
        """Attention for all labels, a block at a time; blocks are computed again in the backward pass."""
        words = max(1, *(mask.numel() for _, mask in channels))
        size = max(1, self.config.attention_chunk_elements // words)

        def score(block: Tensor) -> Tensor:
            return add_all(attended_score(states, mask, block) for states, mask in channels)

        blocks = keys.split(size)
        if torch.is_grad_enabled():
            return torch.cat([checkpoint(score, block, use_reentrant=False) for block in blocks], dim=1)
        return torch.cat([score(block) for block in blocks], dim=1)

    def _attentions(self, channels: list[tuple[Tensor, Tensor]], keys: Tensor, label_ids: Tensor) -> tuple:
        check_range(label_ids, self.config.num_labels, "attention_label_ids")
        chosen = F.embedding(label_ids, keys)
        return tuple(attention_weights(word_scores(states, chosen), mask) for states, mask in channels)


__all__ = [
    "KenMeSHForMeSHIndexing",
    "KenMeSHModel",
    "KenMeSHModelOutput",
    "KenMeSHOutput",
    "KenMeSHPreTrainedModel",
]
