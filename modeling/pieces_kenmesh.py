"""How text becomes pieces of words, as the tokenizer of a text encoder cuts it."""

from collections.abc import Sequence


def is_word_level(tokenizer) -> bool:
    """Whether a tokenizer gives whole words, as the one of `kenmesh prepare` does, or pieces of them."""
    return type(tokenizer.backend_tokenizer.model).__name__ == "WordLevel"


class Pieces:
    """Texts as the pieces that a tokenizer makes of them, with its special tokens around.

    What is too long is cut here and not by the tokenizer, whose truncation is a state that threads share.

    Args:
        tokenizer: A fast tokenizer.

    Attributes:
        before: Special tokens before a text.
        after: Special tokens after it.
    """

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        tokens = tokenizer("a", return_special_tokens_mask=True)
        ids, special = tokens["input_ids"], tokens["special_tokens_mask"]
        first = special.index(0)
        last = len(special) - special[::-1].index(0)
        self.before: list[int] = ids[:first]
        self.after: list[int] = ids[last:]

    def encode(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Token ids of each text, special ones included; none at all for a text without any piece."""
        room = self._room(max_length)
        rows = self.pieces(texts)
        return [[*self.before, *ids[:room], *self.after] if ids else [] for ids in rows]

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special ones."""
        return self._tokenize(list(texts))["input_ids"] if texts else []

    def spans(self, text: str, max_length: int) -> list[tuple[int, int]]:
        """Where the pieces stand in a text that `encode` gives between the special tokens."""
        return self._tokenize(text, return_offsets_mapping=True)["offset_mapping"][: self._room(max_length)]

    def _room(self, max_length: int) -> int:
        return max(0, max_length - len(self.before) - len(self.after))

    def _tokenize(self, texts: str | list[str], **options):
        # "[SEP]" in a text is text. That texts are long is no news.
        return self.tokenizer(
            texts, add_special_tokens=False, split_special_tokens=True, verbose=False, **options
        )


__all__ = ["Pieces", "is_word_level"]
