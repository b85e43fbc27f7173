"""A MeSH heading of an article with its qualifiers, and its forms in files: an object, or text.

As text it is written as in MEDLINE, "Zinc/*therapeutic use/blood": an asterisk before what is a major topic,
a slash before each qualifier. PubMed's pages have the asterisk behind, "Zinc / therapeutic use*".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..modeling.qualifiers_kenmesh import built_in_qualifier, qualifier_key

# "D015032 *Zinc" and "Q000627 *therapeutic use"; UI, asterisk and name may each be missing.
_DESCRIPTOR = re.compile(r"\s*(?:(D\d{6,9})\b)?\s*(\*?)(.*)", re.DOTALL)
_QUALIFIER = re.compile(r"\s*(?:(Q\d{6,9})\b)?\s*(\*?)(.*)", re.DOTALL)
# Ovid writes "dt [Drug Therapy]".
_OVID = re.compile(r"[a-z]{2} \[(.+)\]")
# Qualifiers that NLM had until 2017: files saved before still have them.
_FORMER = frozenset(
    map(
        qualifier_key,
        (
            "contraindications",
            "diagnostic use",
            "manpower",
            "radiography",
            "radionuclide imaging",
            "secretion",
            "ultrasonography",
            "utilization",
        ),
    )
)


@dataclass(slots=True, frozen=True)
class Qualifier:
    """The aspect under which an article treats a heading; `ui` is empty for names that NLM does not have."""

    ui: str
    name: str | None = None
    major: bool = False


@dataclass(slots=True, frozen=True)
class Heading:
    """One MeSH heading of an article; `ui` is empty where a format gives names only (MEDLINE, RIS).

    Attributes:
        major: Whether it, or one of its qualifiers, is a major topic of the article.
    """

    ui: str
    name: str | None = None
    major: bool = False
    qualifiers: tuple[Qualifier, ...] = ()

    def __post_init__(self) -> None:
        if self.qualifiers and not self.major and any(item.major for item in self.qualifiers):
            object.__setattr__(self, "major", True)

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form; `qualifiers` appears only where there are any."""
        row: dict[str, Any] = {"ui": self.ui, "name": self.name, "major": self.major}
        if self.qualifiers:
            row["qualifiers"] = [
                {"ui": item.ui, "name": item.name, "major": item.major} for item in self.qualifiers
            ]
        return row

    @classmethod
    def from_dict(cls, item: Any) -> "Heading":
        """Read the JSON form, or a descriptor's UI alone.

        Raises:
            ValueError: It is neither.
        """
        if isinstance(item, str) and item:
            return cls(item)
        if not _is_named(item):
            raise ValueError(f"'mesh' must list objects with 'ui' (and 'name', 'major'), not {item!r}")
        given = item.get("qualifiers")
        qualifiers = tuple(map(_qualifier_of, _listed(given))) if given else ()
        return cls(item.get("ui") or "", _name_of(item), _is_major(item), qualifiers)


@lru_cache(maxsize=1 << 12)
def make_qualifier(ui: str, name: str | None, major: bool) -> Qualifier:
    """A qualifier with the UI and name that NLM has for it, where a file lost one, or a blank in it."""
    known = built_in_qualifier(ui or name or "")
    return Qualifier(known.ui, known.name, major) if known else Qualifier(ui, name, major)


def _is_named(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and all(isinstance(item.get(key), str | None) for key in ("ui", "name"))
        and bool(item.get("ui") or item.get("name"))
    )


def _name_of(item: dict[str, Any]) -> str | None:
    name = item.get("name")
    return None if name is None else whole_characters(name)


def whole_characters(text: str) -> str:
    """The text with a question mark for half a character, "\\ud83d", which JSON can hold and no file."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _listed(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError(f"'qualifiers' must be a list, not {given!r}")
    return given


def _qualifier_of(item: Any) -> Qualifier:
    if isinstance(item, str) and item:
        return make_qualifier("", item, False)
    if not _is_named(item):
        raise ValueError(f"'qualifiers' must list objects with 'name' (and 'ui', 'major'), not {item!r}")
    return make_qualifier(item.get("ui") or "", _name_of(item), _is_major(item))


def _is_major(item: dict[str, Any]) -> bool:
    given = item.get("major")
    if given not in (True, False, None):
        # Any text would count as true, "N" too.
        raise ValueError(f"'major' must be true or false, not {given!r}")
    return bool(given)


def heading_text(heading: Heading, uis: bool = False) -> str:
    """Give a heading as text; the asterisk stands at the qualifiers that are major, else at the name.

    Args:
        heading: A heading with a name; the UI stands for a missing one.
        uis: Write UIs, too: that of the descriptor, and of qualifiers that cannot be told by their name.
    """
    own = heading.major and not any(item.major for item in heading.qualifiers)
    parts = [_join(heading.ui if uis else "", own, heading.name or heading.ui)]
    for item in heading.qualifiers:
        known = built_in_qualifier(item.name or "")
        ui = item.ui if uis and (known is None or known.ui != item.ui) else ""
        parts.append(_join(ui, item.major, item.name or item.ui))
    return "/".join(parts)


def _join(ui: str, star: bool, name: str) -> str:
    """UI, asterisk and name as one text, in which a missing name is not replaced by the UI twice."""
    return f"{ui} {'*' if star else ''}{name if name != ui else ''}".strip()


def read_headings(texts: Iterable[str], slashes: bool = False) -> tuple[Heading, ...]:
    """Read headings from texts, passing over those without any letter.

    Args:
        texts: As `heading_text` writes them, with or without UIs.
        slashes: Whether what follows a slash is a qualifier, whatever it is; NLM's names have no slash.
            Otherwise it must be one by its name, its UI or the asterisk before it, or the heading must have
            its UI: "HIV/AIDS" is a keyword.
    """
    return tuple(_read_heading(text, slashes) for text in texts if text.strip("*/| "))


def _read_heading(text: str, slashes: bool) -> Heading:
    first, *rest = text.split("/")
    certain = slashes or bool(_split(_DESCRIPTOR, first)[0])
    qualifiers: list[Qualifier] = []
    while rest and (found := _read_qualifier(rest[-1], certain)):
        qualifiers.insert(0, found)
        rest.pop()
    ui, before, behind, name = _split(_DESCRIPTOR, "/".join([first, *rest]))
    return Heading(ui, name or None, before or behind, tuple(qualifiers))


def _read_qualifier(text: str, certain: bool) -> Qualifier | None:
    ui, before, behind, name = _split(_QUALIFIER, text)
    if in_brackets := _OVID.fullmatch(name):
        name = in_brackets[1]
    if not (ui or name) or not (certain or ui or before or _is_qualifier(name)):
        return None
    return make_qualifier(ui, name or None, before or behind)


def _is_qualifier(name: str) -> bool:
    """Whether NLM has or had a qualifier of this name."""
    return built_in_qualifier(name) is not None or qualifier_key(name) in _FORMER


def _split(pattern: re.Pattern[str], text: str) -> tuple[str, bool, bool, str]:
    """UI, whether there is an asterisk before and behind the name, and name."""
    ui, star, rest = pattern.fullmatch(text).groups()  # type: ignore[union-attr]
    name = rest.strip("* \n")
    return ui or "", bool(star), bool(name) and rest.rstrip().endswith("*"), name
