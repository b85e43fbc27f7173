"""A BERT of two small layers with random weights, whose tokenizer cuts every invented word into syllables."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
_SYLLABLES = [a + b for a in "bcdfghjklmnprstvwxz" for b in "aeiou"]
_LETTERS = list("abcdefghijklmnopqrstuvwxyz0123456789-.,()")
VOCABULARY = [*SPECIAL, *_LETTERS, *_SYLLABLES, *(f"##{piece}" for piece in (*_LETTERS, *_SYLLABLES))]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """WordPiece as BERT has it: lower case, `[CLS]` before a text and `[SEP]` after it."""
    ids = {piece: number for number, piece in enumerate(VOCABULARY)}
    backend = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=64, **special)


def tiny_bert_config(**changes: object) -> BertConfig:
    """Sizes of the tiny BERT."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    sizes |= {"vocab_size": len(VOCABULARY), "max_position_embeddings": 64}
    return BertConfig(**(sizes | changes))


def write_tiny_encoder(folder: Path) -> Path:
    """The encoder as a folder that `AutoModel` and `AutoTokenizer` read."""
    torch.manual_seed(0)
    BertModel(tiny_bert_config()).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
