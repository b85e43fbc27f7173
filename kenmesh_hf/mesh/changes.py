"""What one MeSH year changed of another."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..modeling.vocabulary_kenmesh import MeshVocabulary


@dataclass(frozen=True)
class VocabularyDiff:
    """What changed from one MeSH year to another, by descriptor UI.

    Attributes:
        added: descriptors only the new year has.
        removed: descriptors only the old year has, the replaced ones included.
        renamed: old and new name.
        moved: old and new tree numbers.
        replaced: for a removed descriptor, the one that took over its name.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: dict[str, tuple[str, str]]
    moved: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    replaced: dict[str, str]


def diff_vocabularies(old: MeshVocabulary, new: MeshVocabulary) -> VocabularyDiff:
    """Compare two MeSH years."""
    renamed, moved = {}, {}
    for label, ui in enumerate(old.uis):
        other = new.get(ui)
        if other is None:
            continue
        if old.names[label] != new.names[other]:
            renamed[ui] = (old.names[label], new.names[other])
        if set(old.tree_numbers[label]) != set(new.tree_numbers[other]):
            moved[ui] = (old.tree_numbers[label], new.tree_numbers[other])
    removed = tuple(ui for ui in old.uis if ui not in new)
    return VocabularyDiff(
        added=tuple(ui for ui in new.uis if ui not in old),
        removed=removed,
        renamed=renamed,
        moved=moved,
        replaced=_find_replacements(removed, old, new),
    )


def _find_replacements(removed: Iterable[str], old: MeshVocabulary, new: MeshVocabulary) -> dict[str, str]:
    """A descriptor that goes usually lives on as an entry term of the one it was merged into."""
    owners: dict[str, str] = {}
    for ui, terms in zip(new.uis, new.entry_terms, strict=True):
        for term in terms:
            owners.setdefault(term.casefold(), ui)
    owners.update({name.casefold(): ui for name, ui in zip(new.names, new.uis, strict=True)})
    names = {ui: old.names[old.label_of(ui)].casefold() for ui in removed}
    return {ui: owners[name] for ui, name in names.items() if name in owners}
