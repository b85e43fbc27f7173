"""Tags as a search for articles like those that have them, in PubMed or Ovid."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ..errors import InputError
from ..modeling.qualifiers_kenmesh import built_in_qualifier
from ..modeling.vocabulary_kenmesh import CATEGORIES, CHECK_TAGS
from ..reading import Heading
from .exports import Tag, tag_heading

SEARCH_SYNTAXES = ("pubmed", "ovid")
# Ovid takes these for operators and limits unless the heading stands in quotation marks.
OVID_OPERATORS = re.compile(r"\b(and|or|not|adj\d*|use|with|same|frequency)\b|[^\w\s,-]", re.IGNORECASE)
# A qualifier's name, empty for the heading as such, and whether only as a major topic.
Aspect = tuple[str, bool]


def search_string(
    tags_of_articles: Iterable[Sequence[Tag]], syntax: str = "pubmed", *, check_tags: bool = False
) -> str:
    """A search for articles like these: OR between headings of a MeSH category, AND between categories.

    Headings that more of the articles share come first; each stands for everything below it in the hierarchy.
    Where tags say so, a heading is searched for under its qualifiers and as a major topic only.

    Args:
        tags_of_articles: The tags of each article.
        syntax: One of `SEARCH_SYNTAXES`.
        check_tags: Whether Humans, Male, Adult and their like take part; they would empty many a search.

    Raises:
        InputError: The syntax is unknown, or no tag is left to search for.
    """
    if syntax not in SEARCH_SYNTAXES:
        raise InputError(f"Unknown search syntax {syntax!r}. Use one of: {', '.join(SEARCH_SYNTAXES)}.")
    terms, either, both = {
        "pubmed": (_pubmed_terms, " OR ", "\nAND\n"),
        "ovid": (_ovid_terms, " or ", "\nand\n"),
    }[syntax]
    articles = list(tags_of_articles)
    aspects = _aspects(articles)
    groups = [
        [term for tag in group for term in terms(tag["name"].replace('"', ""), aspects[tag["ui"]])]
        for group in _concepts(articles, check_tags)
    ]
    if not groups:
        raise InputError("There is no tag to search for. Lower the threshold or allow check tags.")
    return both.join(f"({either.join(group)})" for group in groups)


def _concepts(tags_of_articles: Iterable[Sequence[Tag]], check_tags: bool) -> list[list[Tag]]:
    """Different tags by category, in the order of MeSH; within one the most shared first, then the surest."""
    shared: Counter[str] = Counter()
    best: dict[str, Tag] = {}
    for tags in tags_of_articles:
        shared.update({tag["ui"] for tag in tags})
        for tag in tags:
            if tag["ui"] not in best or tag["score"] > best[tag["ui"]]["score"]:
                best[tag["ui"]] = tag
    groups: dict[str, list[Tag]] = {letter: [] for letter in [*CATEGORIES, ""]}
    for tag in sorted(best.values(), key=lambda tag: (-shared[tag["ui"]], -tag["score"], tag["ui"])):
        if check_tags or tag["ui"] not in CHECK_TAGS:
            numbers = tag.get("tree_numbers") or ("",)
            # Tags that are handed in may have places outside MeSH.
            groups.get(numbers[0][:1], groups[""]).append(tag)
    return [group for group in groups.values() if group]


def _aspects(tags_of_articles: Iterable[Sequence[Tag]]) -> dict[str, list[Aspect]]:
    """What to search for each descriptor, so that every one of the articles is found by its own tag of it."""
    found: defaultdict[str, dict[Aspect, None]] = defaultdict(dict)
    for tags in tags_of_articles:
        for tag in tags:
            found[tag["ui"]].update(dict.fromkeys(_aspects_of(tag_heading(tag))))
    return {ui: [aspect for aspect in known if not _covered(aspect, known)] for ui, known in found.items()}


def _aspects_of(heading: Heading) -> list[Aspect]:
    """An asterisk at the heading itself counts for all of its qualifiers."""
    own = heading.major and not any(item.major for item in heading.qualifiers)
    return [(item.name or item.ui, own or item.major) for item in heading.qualifiers] or [("", own)]


def _covered(aspect: Aspect, known: Iterable[Aspect]) -> bool:
    """Whether a wider search finds what this one does: without the qualifier, or not as major topic only."""
    name, major = aspect
    return any(wider != aspect and wider[0] in ("", name) and (major or not wider[1]) for wider in known)


def _pubmed_terms(name: str, aspects: Iterable[Aspect]) -> list[str]:
    return [
        f'"{name}{"/" if aspect else ""}{aspect}"[{"Majr" if major else "MeSH Terms"}]'
        for aspect, major in aspects
    ]


def _ovid_terms(name: str, aspects: Iterable[Aspect]) -> list[str]:
    """Ovid takes several qualifiers at once, by their abbreviations; one that has none is left out."""
    quoted = f'"{name}"' if OVID_OPERATORS.search(name) else name
    letters: defaultdict[bool, list[str]] = defaultdict(list)
    for aspect, major in aspects:
        known = built_in_qualifier(aspect)
        letters[major] += [known.abbreviation.lower()] if known else []
    return [f"exp {'*' if major else ''}{quoted}/{', '.join(given)}" for major, given in letters.items()]
