"""Configuration of a KenMeSH model: sizes, the paper's ablations as switches, what lies beyond it."""

from typing import TYPE_CHECKING, Any, Literal

from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, PreTrainedConfig

# Where a Hub user's `trust_remote_code=True` finds the classes of a saved model.
REMOTE_CLASSES = {
    "AutoConfig": "configuration_kenmesh.KenMeSHConfig",
    "AutoModel": "modeling_kenmesh.KenMeSHForMeSHIndexing",
    "AutoModelForSequenceClassification": "modeling_kenmesh.KenMeSHForMeSHIndexing",
    "AutoProcessor": "processing_kenmesh.KenMeSHProcessor",
}
REMOTE_PIPELINES = {
    "mesh-indexing": {"impl": "pipeline_kenmesh.MeSHIndexingPipeline", "pt": ["AutoModel"], "type": "text"}
}


@strict
class KenMeSHConfig(PreTrainedConfig):
    r"""Everything needed to build the network without its weights.

    The defaults are the paper's. Sizes of graph buffers are part of the configuration because
    `from_pretrained` builds the model before it reads a single tensor.

    Args:
        text_encoder: Beyond the paper: configuration of a Hugging Face encoder that reads title and abstract
            in place of word vectors, biLSTM and convolutions, whose fields then say nothing. It decides
            `vocab_size`, `embedding_size` and `pad_token_id`.
        special_token_ids: Tokens that its tokenizer puts around a text, such as `[CLS]`. The encoder reads
            them, but no label attends to them: they are no words.
        vocab_size: Words in the embedding table, `[PAD]` (0) and `[UNK]` (1) included.
        embedding_size: Width of a word vector and of one LSTM direction. Document and label features are
            twice as wide.
        num_lstm_layers: Stacked biLSTM layers of a channel.
        share_channel_lstm: Read title and abstract with the same LSTM.
        word_path: Beyond the paper: add the word vectors themselves to what the biLSTM or the text encoder
            makes of them, so that a label finds the words of its own name from the first step on.
        two_channels: Off is ablation (a): title and abstract are read as one text.
        dilation_rates: One convolution over the abstract for each rate; empty is ablation (b).
        kernel_size: Width of those convolutions; odd, so that the length stays.
        hidden_act: Activation after a convolution.
        residual_convolutions: Add a convolution's input to its output.
        embedding_dropout: Dropout right after the word embeddings, and after a text encoder.
        label_encoder: `"gcn"` builds a label's vector from its name and its place in the hierarchy; `"free"`
            learns one for each label, which is ablation (c).
        num_gcn_layers: Graph convolutions over the hierarchy.
        gcn_act: Activation of a graph convolution.
        num_label_tokens: Length of the stored list of all label name tokens.
        num_edges: Parent–child pairs of the hierarchy.
        mask_labels: Off is ablation (d): the candidates are ignored and every label is attended.
        label_bias: Learn a bias for each label.
        initial_label_bias: Where it starts, for a label that joins later, too.
        num_evidence_features: Numbers that come with each candidate; 0 leaves evidence fusion out.
        evidence_hidden_size: Units of each of two layers that read them beside a linear function; 0 for none.
        loss_labels: Labels the loss runs over: `"all"`, `"candidates"`, or `"sampled"` (candidates, gold
            labels and `num_sampled_negatives` random others).
        num_sampled_negatives: See `loss_labels`.
        attention_chunk_elements: Bound on the size of one block of attention scores when every label is
            attended.
        initializer_range: Standard deviation of freshly drawn weights.
    """

    model_type = "kenmesh"
    sub_configs = {"text_encoder": AutoConfig}

    text_encoder: dict | PreTrainedConfig | None = None
    special_token_ids: list[int] | tuple[int, ...] = ()
    vocab_size: int = 50_000
    embedding_size: int = 200
    num_lstm_layers: int = 1
    share_channel_lstm: bool = False
    word_path: bool = False
    two_channels: bool = True
    dilation_rates: list[int] | tuple[int, ...] = (1, 2, 3)
    kernel_size: int = 3
    hidden_act: str = "relu"
    residual_convolutions: bool = False
    embedding_dropout: float | int = 0.2
    label_encoder: Literal["gcn", "free"] = "gcn"
    num_gcn_layers: int = 2
    gcn_act: str = "relu"
    num_label_tokens: int = 0
    num_edges: int = 0
    mask_labels: bool = True
    label_bias: bool = False
    initial_label_bias: float | int = 0.0
    num_evidence_features: int = 0
    evidence_hidden_size: int = 64
    loss_labels: Literal["all", "candidates", "sampled"] = "all"
    num_sampled_negatives: int = 1000
    attention_chunk_elements: int = 4_194_304
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    if TYPE_CHECKING:
        # transformers calls it optional, but every configuration has labels.
        num_labels: int

    def __post_init__(self, **kwargs):
        # With the package installed its own pipeline is registered, and `pipeline()` would demand
        # trust_remote_code as long as the configuration names one to download.
        if not __name__.startswith("transformers_modules."):
            kwargs.pop("custom_pipelines", None)
        if self.text_encoder is not None:
            self._follow_encoder()
        super().__post_init__(**kwargs)

    def _follow_encoder(self):
        """Makes the nested configuration an object, and takes over what it decides."""
        if isinstance(self.text_encoder, dict):
            self.text_encoder = AutoConfig.for_model(**self.text_encoder)
        encoder: Any = self.text_encoder
        if not all(isinstance(getattr(encoder, name, None), int) for name in ("vocab_size", "hidden_size")):
            raise ValueError(
                f"`text_encoder` is a {encoder.model_type}, no encoder of text; give one such as a BERT."
            )
        self.vocab_size = encoder.vocab_size
        # Some encoders have a narrower table than the layers above it.
        self.embedding_size = getattr(encoder, "embedding_size", None) or encoder.hidden_size
        self.pad_token_id = encoder.pad_token_id

    def to_dict(self):
        return super().to_dict() | {"auto_map": REMOTE_CLASSES, "custom_pipelines": REMOTE_PIPELINES}

    def validate_sizes(self):
        """Names the field that cannot be, and what it may be."""
        at_least = {
            1: ("vocab_size", "embedding_size", "num_lstm_layers", "kernel_size", "attention_chunk_elements"),
            0: (
                "num_gcn_layers",
                "num_label_tokens",
                "num_edges",
                "num_evidence_features",
                "evidence_hidden_size",
                "num_sampled_negatives",
            ),
        }
        for least, names in at_least.items():
            for name in names:
                if getattr(self, name) < least:
                    raise ValueError(f"`{name}` is {getattr(self, name)}; it must be at least {least}.")
        if self.kernel_size % 2 == 0:
            raise ValueError(
                f"`kernel_size` is {self.kernel_size}; it must be odd to keep the length of the text."
            )
        if any(rate < 1 for rate in self.dilation_rates):
            raise ValueError(
                f"`dilation_rates` is {list(self.dilation_rates)}; every rate must be at least 1."
            )
        if not 0 <= self.embedding_dropout < 1:
            raise ValueError(f"`embedding_dropout` is {self.embedding_dropout}; it must be in [0, 1).")

    @property
    def hidden_size(self) -> int:
        """Width of document and label features: two directions, or name features beside graph features."""
        return 2 * self.embedding_size

    @property
    def num_hidden_layers(self) -> int:
        """Convolution levels above the biLSTM or text encoder, whose output is the first hidden state."""
        return 0 if self.text_encoder is not None else len(self.dilation_rates)

    @property
    def num_attention_heads(self) -> int:
        """Label attention has one head."""
        return 1


__all__ = ["KenMeSHConfig"]
