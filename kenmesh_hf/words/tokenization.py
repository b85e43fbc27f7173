"""The word-level tokenizer and the choice of its vocabulary."""

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ..errors import InputError
from ..modeling.text_kenmesh import (
    INVISIBLE_PATTERN,
    PAD_TOKEN,
    REPLACEMENTS,
    STOP_WORDS,
    UNK_TOKEN,
    UNREAD_PATTERN,
    WORD_PATTERN,
    content_words,
)

# Distinct words that are counted at once, so that memory is bounded however many texts there are.
MOST_COUNTED = 5_000_000


def build_vocabulary_words(
    texts: Iterable[str], min_count: int = 3, max_size: int | None = 60_000, required: Iterable[str] = ()
) -> list[str]:
    """Choose the words a tokenizer knows: the most frequent first, equal counts by alphabet.

    Args:
        texts: Training texts only; a word that occurs just in validation or test must stay unknown.
        min_count: Rarer words are left out.
        max_size: Most words to keep; `None` keeps all.
        required: Texts (descriptor names, say) whose words are kept at any count. They come out of `max_size`
            first, so that the vocabulary stays within it.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(content_words(text))
        if len(counts) > MOST_COUNTED:
            # Misprints and numbers: most of them will not come again, and those that do are counted anew.
            counts = Counter({word: count for word, count in counts.items() if count > 1})
    kept = {word for text in required for word in content_words(text)}
    if max_size is not None and len(kept) > max_size:
        raise InputError(
            f"The vocabulary may hold {max_size:,} words, but the names that must be in it have "
            f"{len(kept):,} words. Raise the size to {len(kept):,} or more."
        )
    frequent = [word for word, count in counts.items() if count >= min_count and word not in kept]
    frequent.sort(key=lambda word: (-counts[word], word))
    room = None if max_size is None else max_size - len(kept)
    return sorted(kept.union(frequent[:room]), key=lambda word: (-counts[word], word))


def build_tokenizer(words: Iterable[str], model_max_length: int = 400) -> PreTrainedTokenizerFast:
    """Make the fast tokenizer: `[PAD]` is 0, `[UNK]` is 1, `words` follow in their order.

    A word outside the vocabulary becomes `[UNK]` and keeps its place and offsets: the network sees that
    something stood there, and the length of a text does not depend on the vocabulary. Stop words, single
    characters and punctuation give no token. Literal "[PAD]" or "[UNK]" in a text is ordinary text. The
    result is saved and loaded by `AutoTokenizer` with no code of this package; `encode_words` gives the same
    ids.

    Args:
        words: Distinct words in the form in which `content_words` gives them.
        model_max_length: Where `truncation=True` cuts, in tokens.
    """
    vocab = {PAD_TOKEN: 0, UNK_TOKEN: 1}
    for word in words:
        if word in vocab:
            raise InputError(f"The vocabulary has the word {word!r} twice. Give each word once.")
        if content_words(word) != [word]:
            raise InputError(
                f"The vocabulary has {word!r}, which no text gives. Take words from build_vocabulary_words."
            )
        vocab[word] = len(vocab)
    backend = Tokenizer(models.WordLevel(vocab, unk_token=UNK_TOKEN))
    backend.normalizer = _build_normalizer()
    backend.pre_tokenizer = _build_pre_tokenizer()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD_TOKEN,
        unk_token=UNK_TOKEN,
        model_max_length=model_max_length,
        model_input_names=["input_ids", "attention_mask"],
        padding_side="right",
        truncation_side="right",
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )


def _build_normalizer() -> normalizers.Normalizer:
    return normalizers.Sequence(
        [
            normalizers.Replace(Regex(INVISIBLE_PATTERN), ""),
            normalizers.Replace(Regex(UNREAD_PATTERN), " "),
            normalizers.NFKC(),
            normalizers.Lowercase(),
            *(normalizers.Replace(old, new) for old, new in REPLACEMENTS),
        ]
    )


def _build_pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    # The second split sees one word at a time, so a word that it matches whole is removed.
    stop_words = "|".join(sorted(STOP_WORDS))
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="removed", invert=True),
            pre_tokenizers.Split(Regex(rf"\A(?:.|{stop_words})\z"), behavior="removed"),
        ]
    )
