"""MeSH as a model carries it: descriptors and their labels, names, terms and places in the hierarchy."""

import gzip
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY_FILE = "mesh_vocabulary.tsv.gz"
COLUMNS = ("ui", "name", "entry_terms", "tree_numbers")
SCOPE_NOTE = "scope_note"

CATEGORIES = {
    "A": "Anatomy",
    "B": "Organisms",
    "C": "Diseases",
    "D": "Chemicals and Drugs",
    "E": "Analytical, Diagnostic and Therapeutic Techniques, and Equipment",
    "F": "Psychiatry and Psychology",
    "G": "Phenomena and Processes",
    "H": "Disciplines and Occupations",
    "I": "Anthropology, Education, Sociology, and Social Phenomena",
    "J": "Technology, Industry, and Agriculture",
    "K": "Humanities",
    "L": "Information Science",
    "M": "Named Groups",
    "N": "Health Care",
    "V": "Publication Characteristics",
    "Z": "Geographicals",
}

# What NLM's indexers must consider for every article, as its indexing course lists it: the beings studied,
# their sex and age, pregnancy, the common laboratory animals, in vitro work, the century.
# "Comparative Study" and the funding tags of old are publication types today, so no headings.
CHECK_TAGS = (
    *("D006801", "D000818", "D008297", "D005260", "D011247"),  # Humans, Animals, Male, Female, Pregnancy
    *("D007231", "D007223", "D002675", "D002648", "D000293"),  # Infant, Newborn … Adolescent
    *("D055815", "D000328", "D008875", "D000368", "D000369"),  # Young Adult … Aged, 80 and over
    *("D002415", "D002417", "D002642", "D006224", "D004285"),  # Cats, Cattle, Chick Embryo, Cricetinae, Dogs
    *("D006168", "D051379", "D011817", "D051381"),  # Guinea Pigs, Mice, Rabbits, Rats
    "D066298",  # In Vitro Techniques
    *(
        "D049690",
        "D049691",
        "D049668",
        "D049669",
        "D049670",
    ),  # History, Ancient, Medieval, 15th … 17th Century
    *("D049671", "D049672", "D049673", "D049674"),  # History, 18th … 21st Century
)

_UI = re.compile(r"D\d{6,9}")


class PackedTuples(Sequence[tuple[str, ...]]):
    """Tuples of strings, each kept as one `|`-joined string and split when asked: loading splits none."""

    def __init__(self, packed: Sequence[str]):
        self.packed = packed

    @classmethod
    def pack(cls, rows: Iterable[Iterable[str]]) -> "PackedTuples":
        """Join each row; a string that holds the separator would come back as two, so it is refused."""
        if isinstance(rows, PackedTuples):
            return rows
        packed = []
        for row in rows:
            row = tuple(row)
            if any("|" in text or not text for text in row):
                raise ValueError(
                    f"{row!r} holds an empty string or the separator '|'; leave such a term out."
                )
            packed.append("|".join(row))
        return cls(packed)

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [_unpack(text) for text in self.packed[position]]
        return _unpack(self.packed[position])

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return map(_unpack, self.packed)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedTuples):
            return list(self.packed) == list(other.packed)
        return isinstance(other, Sequence) and list(self) == list(other)


def _unpack(text: str) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()


class MeshVocabulary:
    """The descriptors of one MeSH year. A descriptor's position in `uis` is its label.

    Args:
        uis: descriptor UIs, each once.
        names: preferred name of each.
        entry_terms: other terms of each, without the name.
        tree_numbers: places of each in the hierarchy; a descriptor may have several or none.
        year: MeSH year, where known.
        scope_notes: definitions by UI, where given.
        allowed_qualifiers: abbreviations of the qualifiers a descriptor may have, by UI, where given. They
            are saved by `MeshQualifiers`, not here.
    """

    def __init__(
        self,
        uis: Sequence[str],
        names: Sequence[str],
        entry_terms: Sequence[Sequence[str]],
        tree_numbers: Sequence[Sequence[str]],
        year: int | None = None,
        scope_notes: dict[str, str] | None = None,
        allowed_qualifiers: dict[str, tuple[str, ...]] | None = None,
    ):
        self.uis = list(uis)
        self.names = list(names)
        self.entry_terms = PackedTuples.pack(entry_terms)
        self.tree_numbers = PackedTuples.pack(tree_numbers)
        self.year = year
        self.scope_notes = dict(scope_notes or {})
        self.allowed_qualifiers = dict(allowed_qualifiers or {})
        self._labels = {ui: label for label, ui in enumerate(self.uis)}
        self._check()

    def _check(self) -> None:
        lengths = {len(self.uis), len(self.names), len(self.entry_terms), len(self.tree_numbers)}
        if len(lengths) > 1:
            raise ValueError(
                f"Each descriptor needs a name, entry terms and tree numbers; got lengths {sorted(lengths)}."
            )
        if len(self._labels) < len(self.uis):
            twice = next(ui for label, ui in enumerate(self.uis) if self._labels[ui] != label)
            first, last = self.uis.index(twice) + 1, self._labels[twice] + 1
            raise ValueError(
                f"Descriptor {twice} occurs more than once: as number {first} and number {last}."
            )

    def __len__(self) -> int:
        return len(self.uis)

    def __contains__(self, ui: object) -> bool:
        return ui in self._labels

    def __repr__(self) -> str:
        return f"MeshVocabulary(year={self.year}, descriptors={len(self)})"

    @property
    def _year_text(self) -> str:
        return f"MeSH {self.year}" if self.year else "this MeSH vocabulary"

    def get(self, ui: str) -> int | None:
        """Label of a descriptor, or None if this year does not have it."""
        return self._labels.get(ui)

    def label_of(self, ui: str) -> int:
        """Label of a descriptor that must be there."""
        if ui not in self._labels:
            raise KeyError(f"{ui} is not a descriptor of {self._year_text}.")
        return self._labels[ui]

    @cached_property
    def _places(self) -> dict[str, int]:
        """Label at each tree number, in the order of the tree."""
        places = [(number, label) for label, numbers in enumerate(self.tree_numbers) for number in numbers]
        return dict(sorted(places))

    @cached_property
    def _sorted_places(self) -> tuple[list[str], np.ndarray]:
        return list(self._places), np.fromiter(self._places.values(), np.int64, len(self._places))

    def labels_in(self, branch: str) -> np.ndarray:
        """Labels at and below a category ("C"), a tree number ("C04.588") or all places of a descriptor UI.

        Raises:
            ValueError: if this MeSH year has no such place or descriptor.
        """
        if _UI.fullmatch(branch):
            if branch not in self._labels:
                raise ValueError(f"{branch} is not a descriptor of {self._year_text}.")
            label = self._labels[branch]
            below = [self._labels_below(number) for number in self.tree_numbers[label]]
            return np.unique(np.concatenate([np.array([label], np.int64), *below]))
        labels = np.unique(self._labels_below(branch))
        if not len(labels):
            raise ValueError(
                f"{branch!r} is no place in {self._year_text}; give a category letter (C), "
                "a tree number (C04.588) or a descriptor UI (D009369)."
            )
        return labels

    def _labels_below(self, branch: str) -> np.ndarray:
        numbers, labels = self._sorted_places
        # "." sorts before "/" and "/" before the digits, so C04's descendants end where "C04/" would stand.
        end = branch + "/" if branch not in CATEGORIES else chr(ord(branch) + 1)
        found = labels[bisect_left(numbers, branch) : bisect_left(numbers, end)]
        return found if branch else found[:0]

    @cached_property
    def _edges(self) -> np.ndarray:
        size = len(self)
        pairs = {
            next(self._labels_above(number), child) * size + child for number, child in self._places.items()
        }
        codes = np.array(sorted(pairs), np.int64)
        parents, children = codes // max(size, 1), codes % max(size, 1)
        return np.stack([parents, children])[:, parents != children]

    def _labels_above(self, number: str) -> Iterator[int]:
        """Labels over a tree number, nearest first; a level that no descriptor holds is passed over."""
        while "." in number:
            number = number.rpartition(".")[0]
            if number in self._places:
                yield self._places[number]

    def edges(self) -> np.ndarray:
        """Parent and child labels of the hierarchy, int64 `(2, edges)`: each pair once, none to itself."""
        return self._edges

    def ancestors(self, label: int) -> np.ndarray:
        """Labels above any place of a label, itself excluded: those whose `labels_in` holds it."""
        above = {other for number in self.tree_numbers[label] for other in self._labels_above(number)}
        return np.array(sorted(above - {label}), np.int64)

    def categories(self, label: int) -> tuple[str, ...]:
        """Letters of the categories in which a label sits; `CATEGORIES` has their names."""
        return tuple(sorted({number[0] for number in self.tree_numbers[label]}))

    def depth(self, label: int) -> int:
        """Level of a label's highest place: 1 at the top of a tree, 0 outside the hierarchy."""
        return min((number.count(".") + 1 for number in self.tree_numbers[label]), default=0)

    @cached_property
    def check_tags(self) -> np.ndarray:
        """Labels of the check tags that this year has."""
        return np.array(sorted(self._labels[ui] for ui in CHECK_TAGS if ui in self._labels), np.int64)

    def to_table(self, scope_notes: bool = False) -> str:
        """The vocabulary as text: the year's line, the columns' line, a line for each descriptor."""
        columns: list[Sequence[str]] = [
            self.uis,
            self.names,
            self.entry_terms.packed,
            self.tree_numbers.packed,
        ]
        header = list(COLUMNS)
        if scope_notes:
            header.append(SCOPE_NOTE)
            columns.append([self.scope_notes.get(ui, "") for ui in self.uis])
        rows = ["\t".join(row) for row in zip(*columns, strict=True)]
        text = "\n".join([f"#mesh\t{self.year or ''}", "\t".join(header), *rows, ""])
        if text.count("\n") != len(self) + 2 or text.count("\t") != 1 + (len(header) - 1) * (len(self) + 1):
            raise ValueError("A name, term or note holds a tab or a line break; clean it before saving.")
        return text

    @classmethod
    def from_table(cls, text: str, source: str, year: int | None = None) -> "MeshVocabulary":
        """Read what `to_table` writes; also without the year's or the columns' line, or with more columns.

        Args:
            text: the table.
            source: its file name, for error messages.
            year: used if the table does not state one.
        """
        body, first = text.replace("\r\n", "\n").rstrip("\n"), 1
        header = list(COLUMNS)
        if body.startswith("#mesh\t"):
            line, _, body = body.partition("\n")
            stated = line.partition("\t")[2]
            year, first = int(stated) if stated.isdecimal() else year, 2
        if body and not _UI.match(body):
            line, _, body = body.partition("\n")
            header, first = line.split("\t"), first + 1
        else:
            width = body.partition("\n")[0].count("\t") + 1
            header += [f"column {number}" for number in range(len(COLUMNS) + 1, width + 1)]
        columns = _split_columns(body, header, first, source)
        notes = {
            ui: note for ui, note in zip(columns["ui"], columns.get(SCOPE_NOTE, ()), strict=False) if note
        }
        packed = PackedTuples(columns["entry_terms"]), PackedTuples(columns["tree_numbers"])
        try:
            return cls(columns["ui"], columns["name"], *packed, year=year, scope_notes=notes)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error

    def save_pretrained(self, save_directory: str | os.PathLike[str], scope_notes: bool = False) -> list[str]:
        """Write the vocabulary into a model directory; the same vocabulary always gives the same bytes.

        Args:
            save_directory: made if missing.
            scope_notes: also keep the definitions, which triple the file and which no model reads.

        Returns:
            The paths written.
        """
        path = Path(save_directory) / VOCABULARY_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(self.to_table(scope_notes).encode("utf-8"), compresslevel=9, mtime=0))
        return [str(path)]

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | os.PathLike[str], **hub: Any
    ) -> "MeshVocabulary":
        """Read the vocabulary of a model directory or Hub repository.

        Args:
            pretrained_model_name_or_path: directory, or `org/name` on the Hub.
            **hub: `revision`, `token`, `cache_dir`, `local_files_only` and the like, for the Hub.
        """
        folder = Path(pretrained_model_name_or_path)
        if folder.is_dir():
            path = folder / hub.get("subfolder", "") / VOCABULARY_FILE
        else:
            from transformers.utils import cached_file

            path = Path(str(cached_file(str(pretrained_model_name_or_path), VOCABULARY_FILE, **hub)))
        return cls.from_table(read_text(path), str(path))


def read_text(path: Path) -> str:
    """The text of a plain or gzip-compressed UTF-8 file.

    Raises:
        OSError: if the file is missing, cut short or not text.
    """
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise OSError(f"{path} does not exist; a saved model keeps its MeSH there.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{path} is damaged or cut short ({error}); copy or download it again.") from error
    except UnicodeDecodeError as error:
        raise OSError(f"{path} is not UTF-8 text (byte {error.start}); is it the right file?") from error


def _split_columns(body: str, header: list[str], first: int, source: str) -> dict[str, list[str]]:
    """Columns by name of a table whose body begins at line `first`."""
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        expected = ", ".join(COLUMNS)
        raise ValueError(
            f"{source}: no column {', '.join(missing)} in line {first - 1}; expected {expected}."
        )
    if not body:
        raise ValueError(f"{source} holds no descriptor; is it the right file?")
    width = len(header)
    # One flat split is twice as quick as a list for each line; a line of another width shows in the UIs.
    cells = body.replace("\n", "\t").split("\t")
    columns = {name: cells[position::width] for position, name in enumerate(header)}
    if len(cells) % width or not all(map(_UI.fullmatch, columns["ui"])):
        raise ValueError(_explain_table(body, header, first, source))
    return columns


def _explain_table(body: str, header: list[str], first: int, source: str) -> str:
    """Say which line made a table unreadable."""
    for number, line in enumerate(body.split("\n"), first):
        cells = line.split("\t")
        if len(cells) != len(header):
            return f"{source}, line {number}: {len(cells)} columns where {len(header)} are expected."
        ui = cells[header.index("ui")]
        if not _UI.fullmatch(ui):
            return f"{source}, line {number}: {ui!r} is not a descriptor UI such as D006801."
    return f"{source} is not a table of MeSH descriptors."
