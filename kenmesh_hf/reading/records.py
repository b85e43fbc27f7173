"""What reading gives: articles, sets of PMIDs, and the report of what was skipped and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..errors import InputError
from .headings import Heading, whole_characters

EXAMPLES = 3


@dataclass(slots=True)
class Article:
    """One citation.

    Attributes:
        title: Plain text; translated titles keep the brackets in which NLM prints them.
        abstract: Plain text; the parts of a structured abstract read "LABEL: text".
        year: Year of publication.
        date: Date of publication in ISO form, as precise as known: "1979", "1979-06" or "1979-06-15".
        indexing_method: "Automated" or "Curated"; None where a person chose the headings.
        date_completed: Day on which NLM finished indexing.
        date_revised: Day of NLM's last change to the record.
        version: NLM's number for the version of this PMID.
    """

    title: str = ""
    abstract: str = ""
    pmid: str | None = None
    journal: str | None = None
    year: int | None = None
    headings: tuple[Heading, ...] = ()
    journal_abbreviation: str | None = None
    nlm_id: str | None = None
    pmcid: str | None = None
    date: str | None = None
    indexing_method: str | None = None
    date_completed: str | None = None
    date_revised: str | None = None
    version: int | None = None

    @property
    def descriptors(self) -> tuple[str, ...]:
        """Descriptor UIs in order, each once."""
        return tuple(dict.fromkeys(heading.ui for heading in self.headings if heading.ui))

    @property
    def journal_names(self) -> list[str]:
        """Everything the article says about its journal, the surest name first."""
        names = (self.nlm_id, self.journal, self.journal_abbreviation)
        return [name for name in names if name]

    @property
    def human_indexed(self) -> bool:
        """Whether a person chose the headings: NLM marks only automated and curated records."""
        return bool(self.headings) and self.indexing_method in (None, "Human")

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Names of headings whose descriptor is not known, each once."""
        return tuple(dict.fromkeys(heading.name or "" for heading in self.headings if not heading.ui))

    def with_uis(self, ui_of: Mapping[str, str]) -> "Article":
        """Look up the UIs of headings that have only a name (MEDLINE, RIS); names not found stay names.

        Args:
            ui_of: Descriptor UI of each name or entry term in lower case.
        """
        found = (ui_of.get((heading.name or "").lower(), "") for heading in self.headings)
        named = zip(found, self.headings, strict=True)
        return replace(self, headings=tuple(replace(h, ui=h.ui or ui) for ui, h in named))

    def as_input(self) -> dict[str, Any]:
        """What a model reads of the article, as the pipeline takes it."""
        return {
            "title": self.title,
            "abstract": self.abstract,
            "journal": self.journal_names,
            "pmid": self.pmid,
        }

    def to_dict(self) -> dict[str, Any]:
        """Give the JSONL form; keys beyond the usual six appear only where they have a value."""
        row: dict[str, Any] = {
            "pmid": self.pmid,
            "title": self.title,
            "abstract": self.abstract,
            "journal": self.journal,
            "year": self.year,
            "mesh": [heading.to_dict() for heading in self.headings],
        }
        extra = {key: getattr(self, key) for key in EXTRA_KEYS}
        return row | {key: value for key, value in extra.items() if value is not None}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "Article":
        """Read the JSONL form; unknown keys are ignored, numbers given as text are understood.

        Raises:
            ValueError: A value has the wrong type.
        """
        return cls(
            title=_text(row, "title") or "",
            abstract=_text(row, "abstract") or "",
            pmid=_text(row, "pmid"),
            journal=_text(row, "journal"),
            year=_number(row, "year"),
            headings=tuple(map(Heading.from_dict, _listed(row, "mesh"))),
            version=_number(row, "version"),
            **{key: _text(row, key) for key in EXTRA_KEYS if key != "version"},
        )


EXTRA_KEYS = tuple(item.name for item in fields(Article))[6:]


def _text(row: dict[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is None or isinstance(value, str):
        return whole_characters(value or "").strip() or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{key!r} must be text, not {type(value).__name__}")


def _listed(row: dict[str, Any], key: str) -> Sequence[Any]:
    value = row.get(key) or ()
    if not isinstance(value, list | tuple):
        # A text would be taken for a list of its letters.
        raise ValueError(f"{key!r} must be a list, not {value!r}")
    return value


def _number(row: dict[str, Any], key: str) -> int | None:
    value = row.get(key)
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key!r} must be a whole number, not {value!r}") from None


class PmidSet:
    """A set of PMIDs in which all of PubMed takes a few megabytes: one bit for each number."""

    LARGEST_BIT = 1 << 28

    def __init__(self, pmids: Iterable[str] = ()):
        self._bits = bytearray()
        self._others: set[str] = set()
        for pmid in pmids:
            self.add(pmid)

    def add(self, pmid: str) -> None:
        number = self._number(pmid)
        if number is None:
            self._others.add(pmid)
            return
        place = number >> 3
        if place >= len(self._bits):
            self._bits.extend(bytes(place - len(self._bits) + 65536))
        self._bits[place] |= 1 << (number & 7)

    def __contains__(self, pmid: str) -> bool:
        number = self._number(pmid)
        if number is None:
            return pmid in self._others
        place = number >> 3
        return place < len(self._bits) and bool(self._bits[place] >> (number & 7) & 1)

    def __len__(self) -> int:
        return int.from_bytes(self._bits, "little").bit_count() + len(self._others)

    def _number(self, pmid: str) -> int | None:
        # Anything that is not a plain small number (leading zeros, letters) must stay distinct as text.
        if pmid.isdecimal() and pmid.isascii() and pmid[0] != "0" and len(pmid) < 10:
            number = int(pmid)
            return number if number < self.LARGEST_BIT else None
        return None


@dataclass
class ReadReport:
    """What a reader met: fill one over several calls of `read_articles` to get their sum.

    Attributes:
        read: Articles given out.
        skipped: Input that was lost, counted by reason.
        notes: What was expected or put right and lost nothing (older versions, deletions, odd encodings).
        examples: The first places of each reason, with file and position.
        deleted: PMIDs which NLM withdrew (`DeleteCitation`).
        strict: Whether the first skip raises InputError.
    """

    read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    deleted: PmidSet = field(default_factory=PmidSet)
    strict: bool = False

    @property
    def ok(self) -> bool:
        """Whether everything in the input could be used."""
        return not self.skipped

    def skip(self, reason: str, where: str) -> None:
        """Count lost input; raises InputError when strict."""
        if self.strict:
            raise InputError(f"{where}: {reason}. Mend the input, or read without strict to leave this out.")
        self.skipped[reason] += 1
        self._example(reason, where)

    def note(self, reason: str, where: str) -> None:
        """Count something worth telling that lost nothing."""
        self.notes[reason] += 1
        self._example(reason, where)

    def _example(self, reason: str, where: str) -> None:
        places = self.examples.setdefault(reason, [])
        if len(places) < EXAMPLES:
            places.append(where)

    def summary(self) -> str:
        """Say in a few lines what was read, what was skipped and why, and where."""
        lines = [f"{self.read:,} articles read, {self.skipped.total():,} skipped"]
        for title, counts in (("skipped", self.skipped), ("note", self.notes)):
            for reason, count in counts.most_common():
                places = "; ".join(self.examples.get(reason, ()))
                more = "; …" if count > EXAMPLES else ""
                lines.append(f"  {title}: {count:,} × {reason} ({places}{more})")
        return "\n".join(lines)

    def absorb(self, counts: Mapping[str, Any]) -> None:
        """Add what `to_dict` gave for another file; it does not tell which PMIDs were deleted."""
        self.read += counts["read"]
        self.skipped.update(counts["skipped"])
        self.notes.update(counts["notes"])
        for reason, places in counts["examples"].items():
            known = self.examples.setdefault(reason, [])
            known.extend(places[: EXAMPLES - len(known)])

    def to_dict(self) -> dict[str, Any]:
        """Give the counts and places in a form for JSON."""
        return {
            "read": self.read,
            "skipped": dict(self.skipped),
            "notes": dict(self.notes),
            "deleted": len(self.deleted),
            "examples": self.examples,
        }


def latest_versions(articles: Iterable[Article], deleted: PmidSet | None = None) -> Iterator[Article]:
    """Keep the newest version of each PMID, whatever the order in which versions come.

    Newest is the highest version number, then the latest date of revision, then the last one seen. One
    article of each PMID is held in memory. `read_articles` chooses without holding any, so this is for
    articles that come from elsewhere. Articles without a PMID all stay.

    Args:
        articles: Articles in any order.
        deleted: PMIDs to leave out, such as `ReadReport.deleted`; looked at after the last article.
    """
    newest: dict[str | int, Article] = {}
    for position, article in enumerate(articles):
        key = article.pmid or position
        known = newest.get(key)
        if known is None or _age(article) >= _age(known):
            newest[key] = article
    for article in newest.values():
        if deleted is None or article.pmid is None or article.pmid not in deleted:
            yield article


def _age(article: Article) -> tuple[int, str]:
    return article.version or 1, article.date_revised or ""
