"""Cards whose blocks are filled from figures.

A card is its own template: text between `<!-- results: NAME -->` and `<!-- /results -->`, and the metadata on
top, are written anew; everything else is prose and stays.
"""

import re
from collections.abc import Callable, Mapping

from ..errors import InputError

_METADATA = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- /results -->)", re.DOTALL)


def has_results_blocks(card: str) -> bool:
    """Whether a card can be filled; one written by hand from top to bottom cannot."""
    return _BLOCK.search(card) is not None


def fill_card(template: str, metadata: str, writers: Mapping[str, Callable[[], str]]) -> str:
    """Puts a metadata block on top of a card and calls for each `results` block the writer of its name."""

    def fill(block: re.Match[str]) -> str:
        if block[2] not in writers:
            raise InputError(f"The card has a block {block[2]!r}; there are only {', '.join(writers)}.")
        return f"{block[1]}{writers[block[2]]()}\n{block[3]}"

    return f"---\n{metadata}\n---\n" + _BLOCK.sub(fill, _METADATA.sub("", template))
