"""Europe PMC's JSON: what its search gives with `resultType=core`, whole answers or single results."""

import re
from html import unescape
from typing import Any

from .pubmed_fields import iso_date
from .records import Article

OPENING = re.compile(r'"resultList"\s*:\s*\{\s*"result"\s*:\s*\[')
# A structured abstract has its labels as HTML headings.
LABEL = re.compile(r"\s*<h4>\s*(.*?)\s*:?\s*</h4>\s*", re.IGNORECASE)
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


def europe_pmc_results(item: dict[str, Any]) -> list[Any] | None:
    """The results of an answer; None if the object is none.

    Raises:
        ValueError: It is one, but without a list of results.
    """
    if "resultList" not in item:
        return None
    results = item["resultList"].get("result") if isinstance(item["resultList"], dict) else None
    if not isinstance(results, list):
        raise ValueError("'resultList' has no list of results")
    return results


def is_europe_pmc(item: dict[str, Any]) -> bool:
    """Whether an object is a result of Europe PMC."""
    return any(key in item for key in ("meshHeadingList", "abstractText", "journalInfo"))


def europe_pmc_article(item: dict[str, Any]) -> Article:
    """Read a result.

    Raises:
        ValueError: The object has not the shape of one.
    """
    try:
        return _article(item)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a result of Europe PMC: {error!r}") from error


def _article(item: dict[str, Any]) -> Article:
    issue = item.get("journalInfo") or {}
    journal = issue.get("journal") or {}
    date = iso_date((issue.get("dateOfPublication") or str(item.get("pubYear") or "")).replace("-", " "))
    pmid = str(item.get("pmid") or "")
    return Article.from_dict(
        {
            "title": _plain(item.get("title") or ""),
            "abstract": _plain(LABEL.sub(_label, item.get("abstractText") or "")),
            "pmid": pmid if pmid.isdecimal() else None,
            "journal": journal.get("title") or item.get("journalTitle"),
            "year": date and date[:4],
            "mesh": [*map(_heading, (item.get("meshHeadingList") or {}).get("meshHeading") or ())],
            "journal_abbreviation": journal.get("isoabbreviation") or journal.get("medlineAbbreviation"),
            "nlm_id": journal.get("nlmid"),
            "pmcid": item.get("pmcid"),
            "date": date,
            "date_completed": item.get("dateOfCompletion"),
            "date_revised": item.get("dateOfRevision"),
        }
    )


def _label(found: re.Match[str]) -> str:
    return f" {found[1].upper()}: " if found[1] else " "


def _heading(item: dict[str, Any]) -> dict[str, Any]:
    """A heading in our form; Europe PMC gives names without UIs."""
    given = (item.get("meshQualifierList") or {}).get("meshQualifier") or ()
    qualifiers = [{"name": aspect["qualifierName"], "major": _is_major(aspect)} for aspect in given]
    return {"name": item["descriptorName"], "major": _is_major(item), "qualifiers": qualifiers}


def _is_major(item: dict[str, Any]) -> bool:
    return item.get("majorTopic_YN") == "Y"


def _plain(text: str) -> str:
    return " ".join(unescape(TAG.sub("", text)).split())
