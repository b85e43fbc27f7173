"""A pretrained text encoder: loaded and looked at, its tokens for a dataset, its learning rates."""

import copy
import re
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..errors import InputError, MismatchError
from ..modeling.configuration_kenmesh import KenMeSHConfig
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..options import TrainingOptions
from ..preparing import PreparedDataset, tokenize_anew

# Parameters of layers have the layer's number in their names.
_LAYER = re.compile(r"\.(\d+)\.")


class TextEncoder(NamedTuple):
    """An encoder and the tokenizer it was trained with."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def load_encoder(name: str) -> TextEncoder:
    """A pretrained encoder of text, by folder or Hub name.

    Raises:
        InputError: It cannot be loaded, or it is no encoder of text.
    """
    try:
        # A model that is loaded later can only carry our code, so none of the encoder's own is trusted here.
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        if config.is_encoder_decoder:
            raise InputError(
                f"{name} is a {config.model_type}, which has a decoder; give an encoder, such as a BERT."
            )
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False, split_special_tokens=True)
        model = AutoModel.from_pretrained(name, trust_remote_code=False, dtype=torch.float32)
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(
            f"{name} cannot be loaded as a text encoder ({reason}); give the folder or Hub name of an "
            "encoder that comes with its tokenizer, such as a BERT."
        ) from error
    _check(name, model, tokenizer)
    model.config._name_or_path = short_name(name)
    return TextEncoder(model, tokenizer)


def short_name(name: str) -> str:
    """The name by which saved files call an encoder: a path of this machine would say nothing elsewhere."""
    return Path(name).name if Path(name).is_dir() else name


def _check(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuses what reads no text, or reads it in one direction only."""
    kind = f"{name} is a {model.config.model_type}"
    if not tokenizer.is_fast:
        raise InputError(
            f"{name} has no fast tokenizer, which tells where a word stands; give another encoder."
        )
    special = set(tokenizer.all_special_ids)
    some = list(islice((token for token in range(len(tokenizer)) if token not in special), 3))
    if len(some) < 3:
        # Where its files are missing, transformers makes a tokenizer that knows no word.
        raise InputError(f"{name} comes without the files of its tokenizer; put them beside its weights.")
    try:
        table: Any = model.get_input_embeddings()
        one, another = (_first_state(model, [some[0], other]) for other in some[1:])
        config = KenMeSHConfig(text_encoder=copy.deepcopy(model.config), num_labels=1)
        fits = (table.num_embeddings, table.embedding_dim) == (config.vocab_size, config.embedding_size)
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{kind}, which is no encoder of text; give one such as a BERT.") from error
    if not fits or len(tokenizer) > table.num_embeddings:
        raise InputError(
            f"{kind} whose tokenizer knows {len(tokenizer)} tokens and whose embeddings have the shape "
            f"{tuple(table.weight.shape)}, which do not belong together; give another encoder."
        )
    if torch.equal(one, another):
        raise InputError(
            f"{kind}, a decoder: a word knows nothing of those after it; give an encoder, such as a BERT."
        )


@torch.no_grad()
def _first_state(model: PreTrainedModel, tokens: list[int]) -> torch.Tensor:
    return model(input_ids=torch.tensor([tokens])).last_hidden_state[0, 0]


def encoder_processor(
    processor: KenMeSHProcessor, encoder: TextEncoder, options: TrainingOptions
) -> KenMeSHProcessor:
    """A processor with the tokenizer of an encoder, which cuts texts where the encoder ends."""
    positions = getattr(encoder.model.config, "max_position_embeddings", None) or 0
    longest = min(encoder.tokenizer.model_max_length, positions if positions > 0 else options.encoder_tokens)
    title = min(processor.max_title_tokens, longest)
    room = longest if options.two_channels else longest - title
    if room < title:
        raise InputError(f"The encoder reads {longest} tokens at most, too few for a title and an abstract.")
    return processor.with_parts(
        tokenizer=encoder.tokenizer,
        max_title_tokens=title,
        max_abstract_tokens=min(options.encoder_tokens, room),
    )


def tokens_for(
    prepared: PreparedDataset, options: TrainingOptions, start_from: str | Path | None, progress: bool = True
) -> PreparedDataset:
    """The dataset with the tokens of the network that will be trained on it.

    Args:
        prepared: The dataset with the words that `kenmesh prepare` found in its texts.
        options: Name the encoder of a fresh network.
        start_from: A trained model, which has its own tokenizer.
        progress: Show a bar.
    """
    if start_from:
        return _tokens_of_model(prepared, options, start_from, progress)
    if not options.encoder:
        return prepared
    processor = encoder_processor(prepared.processor, load_encoder(options.encoder), options)
    return tokenize_anew(prepared, processor, progress)


def _tokens_of_model(
    prepared: PreparedDataset, options: TrainingOptions, start_from: str | Path, progress: bool
) -> PreparedDataset:
    if options.encoder:
        raise MismatchError(
            f"{start_from} goes on with the encoder it has; leave --encoder out, or train a fresh model."
        )
    if KenMeSHConfig.from_pretrained(start_from).text_encoder is None:
        return prepared
    known = KenMeSHProcessor.from_pretrained(start_from)
    names = ("tokenizer", "max_title_tokens", "max_abstract_tokens")
    processor = prepared.processor.with_parts(**{name: getattr(known, name) for name in names})
    return tokenize_anew(prepared, processor, progress)


def parameter_groups(model: torch.nn.Module, options: TrainingOptions) -> list[dict[str, Any]]:
    """Parameters with their learning rates, in the first epoch.

    A pretrained encoder learns slowly, the more so the lower a layer: what is near the words is most general.
    """
    encoder = getattr(getattr(model, "kenmesh", None), "text_encoder", None)
    if encoder is None:
        return [{"params": list(model.parameters()), "lr": options.learning_rate}]
    depths = layer_depths([name for name, _ in encoder.named_parameters()])
    groups: dict[int, list[torch.nn.Parameter]] = {}
    for depth, weight in zip(depths, encoder.parameters(), strict=True):
        groups.setdefault(depth, []).append(weight)
    pretrained = set(encoder.parameters())
    others = [weight for weight in model.parameters() if weight not in pretrained]
    return [{"params": others, "lr": options.learning_rate}] + [
        {"params": groups[depth], "lr": options.encoder_learning_rate * options.layer_decay**depth}
        for depth in sorted(groups)
    ]


def layer_depths(names: list[str]) -> list[int]:
    """How many layers lie above each parameter of an encoder, given the names of all in their order.

    What stands before the first layer is below it; what stands after the last one is above all.
    """
    numbers = [int(found[1]) if (found := _LAYER.search(f".{name}")) else None for name in names]
    layers = 1 + max((number for number in numbers if number is not None), default=-1)
    depths, begun = [], False
    for number in numbers:
        begun = begun or number is not None
        depths.append(layers - 1 - number if number is not None else 0 if begun else layers)
    return depths
