"""MeSH qualifiers (subheadings): the aspects under which an article can treat a descriptor."""

import gzip
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

QUALIFIERS_FILE = "mesh_qualifiers.tsv.gz"

_UI = re.compile(r"Q\d{6,9}")
_ABBREVIATION = re.compile(r"[A-Z]{2}")
_OWNER = re.compile(r"D\d{6,9}|[A-Z](\d\d)?")
_NOT_LETTERS = re.compile(r"[\W\d_]+")


class MeshQualifier(NamedTuple):
    """A qualifier; the abbreviation of two letters is what MeSH's own files and Ovid write."""

    ui: str
    name: str
    abbreviation: str


# The qualifiers of MeSH since 2018, when "contraindications" went.
BUILT_IN = tuple(
    MeshQualifier(*line.split("|"))
    for line in """\
Q000002|abnormalities|AB
Q000008|administration & dosage|AD
Q000009|adverse effects|AE
Q000031|analogs & derivatives|AA
Q000032|analysis|AN
Q000033|anatomy & histology|AH
Q000037|antagonists & inhibitors|AI
Q000096|biosynthesis|BI
Q000097|blood|BL
Q000098|blood supply|BS
Q000134|cerebrospinal fluid|CF
Q000138|chemical synthesis|CS
Q000139|chemically induced|CI
Q000145|classification|CL
Q000150|complications|CO
Q000151|congenital|CN
Q000166|cytology|CY
Q000172|deficiency|DF
Q000175|diagnosis|DI
Q000178|diet therapy|DH
Q000187|drug effects|DE
Q000188|drug therapy|DT
Q000191|economics|EC
Q000193|education|ED
Q000196|embryology|EM
Q000201|enzymology|EN
Q000208|ethnology|EH
Q000209|etiology|ET
Q000235|genetics|GE
Q000254|growth & development|GD
Q000266|history|HI
Q000276|immunology|IM
Q000293|injuries|IN
Q000294|innervation|IR
Q000295|instrumentation|IS
Q000302|isolation & purification|IP
Q000331|legislation & jurisprudence|LJ
Q000378|metabolism|ME
Q000379|methods|MT
Q000382|microbiology|MI
Q000401|mortality|MO
Q000451|nursing|NU
Q000453|epidemiology|EP
Q000458|organization & administration|OG
Q000469|parasitology|PS
Q000472|pathogenicity|PY
Q000473|pathology|PA
Q000493|pharmacokinetics|PK
Q000494|pharmacology|PD
Q000502|physiology|PH
Q000503|physiopathology|PP
Q000506|poisoning|PO
Q000517|prevention & control|PC
Q000523|psychology|PX
Q000528|radiation effects|RE
Q000532|radiotherapy|RT
Q000534|rehabilitation|RH
Q000556|secondary|SC
Q000592|standards|ST
Q000600|supply & distribution|SD
Q000601|surgery|SU
Q000627|therapeutic use|TU
Q000628|therapy|TH
Q000633|toxicity|TO
Q000635|transmission|TM
Q000637|transplantation|TR
Q000639|trends|TD
Q000648|ultrastructure|UL
Q000652|urine|UR
Q000662|veterinary|VE
Q000706|statistics & numerical data|SN
Q000737|chemistry|CH
Q000819|agonists|AG
Q000821|virology|VI
Q000941|ethics|ES
Q000000981|diagnostic imaging|DG""".splitlines()
)


def qualifier_key(name: str) -> str:
    """A name blind to spaces, case and "&": files lose blanks ("adverseeffects"), Ovid writes "and"."""
    return _NOT_LETTERS.sub("", name.casefold().replace("&", "and"))


class MeshQualifiers:
    """The qualifiers of one MeSH year, and which of them may go with which descriptor.

    Args:
        qualifiers: Each of them once; by default those built in.
        allowed: Abbreviations by owner. An owner is a descriptor's UI, or a branch ("C04") or category ("C")
            of the tree that speaks for the descriptors which have no list of their own.
        year: MeSH year, where known.

    Raises:
        ValueError: A qualifier is malformed or there twice, or an owner or one of its abbreviations is none.
    """

    def __init__(
        self,
        qualifiers: Iterable[MeshQualifier] = BUILT_IN,
        allowed: Mapping[str, Iterable[str]] | None = None,
        year: int | None = None,
    ):
        self.qualifiers = tuple(qualifiers)
        self.year = year
        self._by_key: dict[str, MeshQualifier] = {}
        for qualifier in self.qualifiers:
            self._add(qualifier)
        self._allowed = {owner: self._checked(owner, given) for owner, given in (allowed or {}).items()}

    def _add(self, qualifier: MeshQualifier) -> None:
        ui, name, abbreviation = qualifier
        if not _UI.fullmatch(ui) or not name or not _ABBREVIATION.fullmatch(abbreviation):
            raise ValueError(f"{qualifier} needs a UI such as Q000188, a name, and two letters such as DT.")
        # A name has more than two letters and no digit, so the three kinds of keys never meet.
        for key in (ui, qualifier_key(name), abbreviation):
            if key in self._by_key:
                raise ValueError(f"{qualifier} shares its UI, name or abbreviation with {self._by_key[key]}.")
            self._by_key[key] = qualifier

    def _checked(self, owner: str, given: Iterable[str]) -> tuple[str, ...]:
        found = tuple(sorted(set(given)))
        unknown = [text for text in found if text not in self._by_key]
        if unknown or not _OWNER.fullmatch(owner):
            what = f"the qualifier {unknown[0]!r}, which is not known" if unknown else "a list of qualifiers"
            raise ValueError(f"{owner!r} has {what}; owners are descriptors or branches, as D003967 or C04.")
        return found

    def __len__(self) -> int:
        return len(self.qualifiers)

    def __repr__(self) -> str:
        return f"MeshQualifiers(year={self.year}, qualifiers={len(self)}, owners={len(self._allowed)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshQualifiers) and self.to_table() == other.to_table()

    @property
    def has_branches(self) -> bool:
        """Whether branches of the tree have lists, too: those learned from articles have, NLM's have not."""
        return any(len(owner) <= len("C04") for owner in self._allowed)

    def find(self, text: str) -> MeshQualifier | None:
        """The qualifier of a UI, an abbreviation in capitals, or a name blind to spaces and case."""
        return self._by_key.get(text) or self._by_key.get(qualifier_key(text))

    def allowed(self, ui: str, tree_numbers: Iterable[str] = ()) -> tuple[MeshQualifier, ...]:
        """The qualifiers that may go with a descriptor: its own, else those of its places in the tree."""
        own = self._allowed.get(ui)
        if own is None:
            places = (self._allowed.get(number[:3], self._allowed.get(number[:1])) for number in tree_numbers)
            own = tuple(sorted({text for place in places for text in place or ()}))
        return tuple(self._by_key[text] for text in own)

    def has_own(self, ui: str) -> bool:
        """Whether a descriptor has a list of its own, whatever its places in the tree."""
        return ui in self._allowed

    def to_table(self) -> str:
        """The year's line, a line for each qualifier (UI, name, abbreviation), one for each owner's list."""
        lines = [f"#qualifiers\t{self.year or ''}"]
        lines += ["\t".join(qualifier) for qualifier in sorted(self.qualifiers)]
        lines += [f"{owner}\t{' '.join(given)}" for owner, given in sorted(self._allowed.items())]
        return "\n".join([*lines, ""])

    @classmethod
    def from_table(cls, text: str, source: str) -> "MeshQualifiers":
        """Read what `to_table` writes.

        Args:
            text: The table.
            source: Its file name, for error messages.
        """
        first, *lines = text.split("\n")
        title, _, year = first.partition("\t")
        qualifiers, allowed = [], {}
        if title != "#qualifiers":
            raise ValueError(f"{source} is no table of MeSH qualifiers.")
        for number, line in enumerate(filter(None, lines), 2):
            cells = line.split("\t")
            if len(cells) == 3:
                qualifiers.append(MeshQualifier(*cells))
            elif len(cells) == 2:
                allowed[cells[0]] = cells[1].split()
            else:
                raise ValueError(f"{source}, line {number}: {len(cells)} columns where 2 or 3 are expected.")
        try:
            return cls(qualifiers, allowed, int(year) if year.isdecimal() else None)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error

    def save_pretrained(self, save_directory: str | os.PathLike[str]) -> list[str]:
        """Write the table into a model directory; the same qualifiers always give the same bytes.

        Returns:
            The paths written.
        """
        path = Path(save_directory) / QUALIFIERS_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(self.to_table().encode("utf-8"), compresslevel=9, mtime=0))
        return [str(path)]

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str]) -> "MeshQualifiers":
        """Read the table of a model directory."""
        # It loads NumPy, for which whoever only reads articles need not wait.
        from .vocabulary_kenmesh import read_text

        path = Path(folder) / QUALIFIERS_FILE
        return cls.from_table(read_text(path), str(path))


_built_in = {key: item for item in BUILT_IN for key in (item.ui, qualifier_key(item.name))}


@lru_cache(maxsize=1 << 12)
def built_in_qualifier(text: str) -> MeshQualifier | None:
    """The built-in qualifier of a UI or a name; two letters are too little to tell one in running text."""
    return _built_in.get(text) or _built_in.get(qualifier_key(text))
