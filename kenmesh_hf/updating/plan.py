"""Which label becomes which when a model goes to another MeSH year, and a report of it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import MismatchError
from ..mesh import VocabularyDiff, diff_vocabularies
from ..modeling.vocabulary_kenmesh import MeshVocabulary


@dataclass(frozen=True)
class UpdatePlan:
    """How the labels of one MeSH year become those of another.

    Attributes:
        old: vocabulary the model has.
        new: vocabulary it shall have.
        diff: what changed, by descriptor UI.
        old_to_new: new label of each old label, int64; -1 where it is dropped. A replaced label goes to the
            one that took over its name, so two old labels may meet in one.
    """

    old: MeshVocabulary
    new: MeshVocabulary
    diff: VocabularyDiff
    old_to_new: np.ndarray

    @cached_property
    def new_to_old(self) -> np.ndarray:
        """Old label whose learned values each new label takes, int64; -1 where there is none.

        The label's own UI comes first; only a descriptor new this year takes the values of one it replaces.
        """
        sources = np.full(len(self.new), -1, np.int64)
        for old_ui in self.diff.replaced:
            label = self.old.label_of(old_ui)
            sources[self.old_to_new[label]] = label
        kept = np.array([ui in self.new for ui in self.old.uis], bool)
        sources[self.old_to_new[kept]] = np.flatnonzero(kept)
        return sources

    @property
    def dropped(self) -> tuple[str, ...]:
        """Removed descriptors that nothing replaces."""
        return tuple(ui for ui in self.diff.removed if ui not in self.diff.replaced)

    def to_dict(self) -> dict[str, Any]:
        """Everything the report says, as JSON-ready values."""
        return {
            "from": {"year": self.old.year, "descriptors": len(self.old)},
            "to": {"year": self.new.year, "descriptors": len(self.new)},
            "kept": len(self.old) - len(self.diff.removed),
            "added": [{"ui": ui, "name": _name(self.new, ui)} for ui in self.diff.added],
            "renamed": [{"ui": ui, "from": a, "to": b} for ui, (a, b) in self.diff.renamed.items()],
            "moved": [
                {"ui": ui, "name": _name(self.new, ui), "from": [*a], "to": [*b]}
                for ui, (a, b) in self.diff.moved.items()
            ],
            "replaced": [
                {"ui": ui, "name": _name(self.old, ui), "by": by, "by_name": _name(self.new, by)}
                for ui, by in self.diff.replaced.items()
            ],
            "dropped": [{"ui": ui, "name": _name(self.old, ui)} for ui in self.dropped],
        }

    def report(self, limit: int = 20) -> str:
        """The plan for people.

        Args:
            limit: how many descriptors of each kind are listed by name.
        """
        facts = self.to_dict()
        years = [f"MeSH {facts[side]['year'] or '(year unknown)'}" for side in ("from", "to")]
        lines = [f"{years[0]} ({len(self.old):,} descriptors) to {years[1]} ({len(self.new):,} descriptors)"]
        for kind, meaning in _KINDS.items():
            entries = facts[kind]
            count = entries if isinstance(entries, int) else len(entries)
            lines.append(f"  {kind:<9} {count:>7,}  {meaning}")
        for kind in ("dropped", "replaced", "renamed", "added", "moved"):
            lines += _section(kind, [_describe(entry) for entry in facts[kind]], limit)
        return "\n".join(lines) + "\n"


_KINDS = {
    "kept": "same UI in both years",
    "renamed": "of these, the name changed",
    "moved": "of these, the place in the hierarchy changed",
    "replaced": "gone, but their name now belongs to another descriptor, which takes their articles",
    "dropped": "gone without a successor",
    "added": "new this year",
}


def _name(vocabulary: MeshVocabulary, ui: str) -> str:
    return vocabulary.names[vocabulary.label_of(ui)]


def _describe(entry: dict[str, Any]) -> str:
    """One line of a section."""
    if "by" in entry:
        return f"{entry['ui']} {entry['name']} -> {entry['by']} {entry['by_name']}"
    if "from" not in entry:
        return f"{entry['ui']} {entry['name']}"
    if "name" not in entry:
        return f"{entry['ui']} {entry['from']} -> {entry['to']}"
    before, after = (", ".join(entry[side]) or "(no place)" for side in ("from", "to"))
    return f"{entry['ui']} {entry['name']}: {before} -> {after}"


def _section(title: str, lines: list[str], limit: int) -> list[str]:
    if not lines:
        return []
    more = [f"  ... and {len(lines) - limit:,} more"] if len(lines) > limit else []
    return ["", title.capitalize(), *(f"  {line}" for line in lines[:limit]), *more]


def plan_update(old: MeshVocabulary, new: MeshVocabulary) -> UpdatePlan:
    """Decide what becomes of every label when a model goes from one MeSH year to another.

    Raises:
        MismatchError: if the two have no descriptor in common.
    """
    diff = diff_vocabularies(old, new)
    if len(diff.removed) == len(old):
        raise MismatchError(
            f"The model's MeSH vocabulary ({len(old):,} descriptors) and the new one ({len(new):,}) have no "
            "descriptor in common. Give a descriptor file of another MeSH year."
        )
    successors = {ui: new.get(diff.replaced.get(ui, ui)) for ui in old.uis}
    labels = [-1 if label is None else label for label in successors.values()]
    return UpdatePlan(old, new, diff, np.array(labels, np.int64))
