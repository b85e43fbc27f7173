"""Tags and their reasons as a person reads them on a terminal."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from ..reading import Article, heading_text
from .exports import tag_heading

BAR = 10


def tag_lines(article: Article, tags: Sequence[Mapping[str, Any]], width: int | None = None) -> list[str]:
    """A heading for the article, then one line for each tag with score, bar, descriptor and reasons.

    Major topics and qualifiers, where tags tell them, stand as NLM writes them: "Zinc/*therapeutic use".
    """
    width = width or shutil.get_terminal_size((100, 24)).columns
    name = f"PMID {article.pmid}: " if article.pmid else ""
    lines = [_cut(name + (article.title or article.abstract or "(no text)"), width)]
    if not tags:
        lines.append("  no tag reaches the threshold")
    for tag in tags:
        bar = "█" * round(tag["score"] * BAR)
        name = heading_text(tag_heading(tag))
        lines.append(_cut(f"  {tag['score']:.2f} {bar:<{BAR}} {tag['ui']:<10} {name}", width))
        if "evidence" in tag:
            lines.append(_cut(" " * 18 + "↳ " + evidence_text(tag["evidence"]), width))
            lines += [_cut(" " * 18 + "↳ " + line, width) for line in heading_reasons(tag)]
    return lines


def evidence_text(evidence: Mapping[str, Any]) -> str:
    """Why a tag was given, in one line; a number is what the score would lose without that."""
    reasons = []
    if evidence.get("term"):
        reasons.append(f"“{evidence['term']['text']}” in the {evidence['term']['field']}")
    for name in ("words", "against"):
        if words := evidence.get(name):
            reasons.append(
                f"{name} " + ", ".join(_weighed(word["word"], word["weight"]) for word in words[:4])
            )
    if evidence.get("neighbours"):
        pmids = ", ".join(_weighed(near["pmid"], near["weight"]) for near in evidence["neighbours"][:3])
        more = "…" if len(evidence["neighbours"]) > 3 else ""
        reasons.append(f"similar articles {pmids}{more}")
    if evidence.get("journal"):
        reasons.append(_weighed(f"{evidence['journal']:.0%} of the journal", evidence["journal_weight"]))
    return " · ".join(reasons) or "the text as a whole"


def heading_reasons(tag: Mapping[str, Any]) -> list[str]:
    """Why a tag is a major topic, and why it has each qualifier, a line each."""
    lines = []
    if tag.get("major") and (why := tag["evidence"].get("major")):
        place = "in the title · " if why["in_title"] else ""
        lines.append(f"major {tag['major_score']:.2f}: {place}{_agreement(why)} have it so")
    for item in tag.get("qualifiers", ()):
        if not (why := item.get("evidence")):
            continue
        words = ", ".join(word["word"].lower() for word in why["words"])
        lines.append(
            f"{item['name']} {item['score']:.2f}: {_agreement(why)} have it"
            + (f" · words {words}" if words else "")
        )
    return lines


def _agreement(why: Mapping[str, Any]) -> str:
    return f"{why['agreeing']} of {why['carriers']} similar articles with this heading"


def _weighed(text: str, weight: float) -> str:
    """A reason with its weight, unless that would be written as nothing."""
    return f"{text} {weight:.2f}" if abs(weight) >= 0.005 else text


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
