"""Training, validation and test sets as in the paper: human-indexed PMC articles, the newest held out."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ..errors import InputError
from ..reading import Article, PmidSet

Key = tuple[str, int]
Part = Literal["train", "validation", "test"]


def human_indexed(articles: Iterable[Article]) -> Iterator[Article]:
    """Leave out what has no headings, or headings that a program chose."""
    return (article for article in articles if article.human_indexed)


def match_pmc(pmc: Iterable[Article], citations: Iterable[Article]) -> Iterator[Article]:
    """Give the human-indexed PubMed citations of PMC articles, matched by PMID.

    PMC's files have no headings; PubMed's have no full text, but the network reads title and abstract only.
    So PubMed's record is what is given, and only the PMIDs of PMC are held in memory.
    """
    wanted = PmidSet(article.pmid for article in pmc if article.pmid)
    return (article for article in human_indexed(citations) if article.pmid and article.pmid in wanted)


@dataclass(frozen=True)
class SplitPlan:
    """Where the sets begin.

    Attributes:
        by: What orders the articles.
        validation_from: Key of the oldest validation article.
        test_from: Key of the oldest test article.
    """

    by: Literal["date", "pmid"]
    validation_from: Key
    test_from: Key

    def part(self, article: Article) -> Part | None:
        """Tell an article's set.

        None means neither: it is as new as the articles held out but has no abstract to be tested on, and
        in training it would be newer than they are.
        """
        key = article_key(article, self.by)
        if key < self.validation_from:
            return "train"
        if not is_testable(article):
            return None
        return "test" if key >= self.test_from else "validation"


def article_key(article: Article, by: Literal["date", "pmid"]) -> Key:
    """Order articles by date of publication, then PMID; or by PMID alone."""
    number = int(article.pmid) if article.pmid and article.pmid.isdecimal() else 0
    return ("" if by == "pmid" else article.date or str(article.year or ""), number)


def is_testable(article: Article) -> bool:
    """Whether an article may be held out: it needs an abstract and headings."""
    return bool(article.abstract and article.headings)


def plan_split(
    articles: Iterable[Article], *, test: int, validation: int, by: Literal["date", "pmid"] = "date"
) -> SplitPlan:
    """Find the boundaries: the newest articles are for the test, the next newest for validation.

    One pass that holds only the keys of the articles held out; `SplitPlan.part` then sorts a second pass.

    Args:
        articles: Everything that is to be divided.
        test: Size of the test set.
        validation: Size of the validation set.
        by: Order by date of publication (ties by PMID) or by PMID alone.

    Raises:
        InputError: There are too few articles, or several share the key at a boundary.
    """
    if test < 1 or validation < 1:
        raise InputError("Test and validation set need at least one article each.")
    keys = (article_key(article, by) for article in articles if is_testable(article))
    newest = heapq.nlargest(test + validation + 1, keys)
    if len(newest) <= test + validation:
        raise InputError(
            f"Only {len(newest):,} articles with abstract and headings: too few for {test:,} test and "
            f"{validation:,} validation articles and some to train on. Choose smaller sizes."
        )
    for size in (test, test + validation):
        if newest[size - 1] == newest[size]:
            raise InputError(
                f"Several articles share {newest[size]} at the boundary of two sets. "
                "Give every article its own PMID."
            )
    return SplitPlan(by, validation_from=newest[test + validation - 1], test_from=newest[test - 1])
