"""Which qualifier may go with which descriptor, learned from articles where no MeSH file tells it."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from ..mesh import MeshQualifiers, MeshVocabulary
from ..reading import Article

# A branch of the tree has a qualifier that this many of its descriptors have, and this share of its headings.
LEAST_DESCRIPTORS = 3
LEAST_SHARE = 0.002
# A descriptor met so often without ever having a qualifier, as Humans is, may have none.
BARE = 20


def learn_qualifiers(
    articles: Iterable[Article], vocabulary: MeshVocabulary, qualifiers: MeshQualifiers | None = None
) -> MeshQualifiers:
    """Tell from the headings of articles which qualifiers a descriptor may have.

    They are those it was seen with, and those that are usual in its branches of the tree (C04) or, where a
    branch was never seen with any, in its category (C).

    Args:
        articles: Any number of articles with headings; they are read once.
        vocabulary: Descriptors and their places.
        qualifiers: Those of the MeSH year; by default those built in. Others are passed over.
    """
    table = qualifiers or MeshQualifiers()
    met: Counter[str] = Counter()
    given: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for article in articles:
        for heading in article.headings:
            if heading.ui in vocabulary:
                met[heading.ui] += 1
                found = (table.find(item.ui) or table.find(item.name or "") for item in heading.qualifiers)
                given[heading.ui].update(item.abbreviation for item in found if item)
    places = {ui: vocabulary.tree_numbers[vocabulary.label_of(ui)] for ui in met}
    usual = _usual(given, places)
    branches = MeshQualifiers(table.qualifiers, usual, table.year)
    own: dict[str, set[str]] = {}
    for ui, count in met.items():
        around = {item.abbreviation for item in branches.allowed(ui, places[ui])}
        if not given[ui] and count >= BARE:
            own[ui] = set()
        elif not set(given[ui]) <= around:
            own[ui] = around | set(given[ui])
    return MeshQualifiers(table.qualifiers, usual | own, table.year)


def _usual(given: dict[str, Counter[str]], places: dict[str, tuple[str, ...]]) -> dict[str, set[str]]:
    """The usual qualifiers of each branch and category in which any descriptor has one."""
    headings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    descriptors: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for ui, counts in given.items():
        for branch in {number[:length] for number in places[ui] for length in (1, 3)}:
            headings[branch].update(counts)
            descriptors[branch].update(counts.keys())
    return {
        branch: {
            abbreviation
            for abbreviation, count in counts.items()
            if descriptors[branch][abbreviation] >= LEAST_DESCRIPTORS
            and count >= LEAST_SHARE * counts.total()
        }
        for branch, counts in headings.items()
        if counts
    }
