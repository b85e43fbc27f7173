"""Training articles and a vocabulary enter; the tables that propose candidate labels leave.

Neighbours, journals, terms and word associations are built here and looked up by `KenMeSHCandidates` of
`modeling`. Here is also what checks that no held-out article is in them, and what lets more articles join.
"""

from .articles import hash_texts, heading_facts, label_ids
from .associations import build_associations
from .candidates import build_candidates, build_index, build_lexicon, build_tables
from .checking import candidate_report, check_no_leak, indexed
from .digests import ArticleDigest, DigestFiles
from .findings import find_candidates, look_up
from .growth import add_articles
from .known_headings import know_headings
from .qualifiers import learn_qualifiers
from .ranking import fit_ranker

__all__ = [
    "ArticleDigest",
    "DigestFiles",
    "add_articles",
    "build_associations",
    "build_candidates",
    "build_index",
    "build_lexicon",
    "build_tables",
    "candidate_report",
    "check_no_leak",
    "find_candidates",
    "fit_ranker",
    "hash_texts",
    "heading_facts",
    "indexed",
    "know_headings",
    "label_ids",
    "learn_qualifiers",
    "look_up",
]
