"""Scores of whole headings: which descriptors are major topics, and under which qualifiers they stand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..modeling.qualifiers_kenmesh import built_in_qualifier, qualifier_key
from ..reading import Article, Heading, Qualifier
from .metrics import precision_recall_f1

Tag = Mapping[str, Any]


@dataclass
class _Counts:
    """Hits, predictions and gold of articles, and whether any tag told of such a thing."""

    told: bool = False
    correct: int = 0
    predicted: int = 0
    gold: int = 0
    articles: int = 0

    def add(self, predicted: set[Any], gold: set[Any]) -> None:
        self.correct += len(predicted & gold)
        self.predicted += len(predicted)
        self.gold += len(gold)
        self.articles += 1

    def figures(self, name: str) -> dict[str, float | int]:
        if not self.told or not self.articles:
            return {}
        values = map(float, precision_recall_f1(self.correct, self.predicted, self.gold))
        scores = dict(zip(("MiP", "MiR", "MiF"), values, strict=True)) | {"articles": self.articles}
        return {f"{name}_{key}": value for key, value in scores.items()}


@dataclass
class HeadingScores:
    """Micro precision, recall and F1 of major descriptors and of descriptor–qualifier pairs.

    An article enters where its headings tell of these things: `major` where one is major, `qualifier` where
    one has a qualifier, since a file that lacks them altogether doesn't say that there are none. Gold pairs
    of descriptors that were not tagged are missed. There are no figures where no tag tells of them.

    Attributes:
        ui_of: Descriptor UI of each name or entry term in lower case, for headings that have only a name.
    """

    ui_of: Mapping[str, str] = field(default_factory=dict)
    majors: _Counts = field(default_factory=_Counts)
    qualifiers: _Counts = field(default_factory=_Counts)

    def add(self, tags: Sequence[Tag], article: Article) -> None:
        """Compare the tags of an article with its headings."""
        self.majors.told |= any("major" in tag for tag in tags)
        self.qualifiers.told |= any("qualifiers" in tag for tag in tags)
        gold = (article.with_uis(self.ui_of) if article.unresolved else article).headings
        predicted = [Heading.from_dict(dict(tag)) for tag in tags]
        if any(heading.major for heading in gold):
            self.majors.add(_majors(predicted), _majors(gold))
        if any(heading.qualifiers for heading in gold):
            self.qualifiers.add(_pairs(predicted), _pairs(gold))

    def figures(self) -> dict[str, float | int]:
        """`major_MiP`, `qualifier_MiF` and so on, and the articles they come from; those that there are."""
        return self.majors.figures("major") | self.qualifiers.figures("qualifier")


def _majors(headings: Iterable[Heading]) -> set[str]:
    return {_key(heading) for heading in headings if heading.major}


def _pairs(headings: Iterable[Heading]) -> set[tuple[str, str]]:
    return {(_key(heading), _aspect(item)) for heading in headings for item in heading.qualifiers}


def _aspect(item: Qualifier) -> str:
    """What tells a qualifier: its UI, also where only the name is given, or a name that NLM does not have."""
    known = built_in_qualifier(item.ui or item.name or "")
    return known.ui if known else item.ui or qualifier_key(item.name or "")


def _key(heading: Heading) -> str:
    """What tells a descriptor: its UI, or its name where that is not known."""
    return heading.ui or (heading.name or "").lower()
