"""Files, folders, archives and streams enter, articles leave: one reader a format, all in constant memory.

`read_articles` finds the format from the content and tells in a `ReadReport` what was skipped and why;
`write_articles` writes what it reads.
"""

from .articles import read_articles, write_articles
from .citation_files import medline_rows, ris_rows
from .heading_files import join_headings, read_heading_files
from .headings import Heading, Qualifier, heading_text
from .record_counts import count_records
from .records import Article, PmidSet, ReadReport, latest_versions
from .sources import COMPANIONS, decompress, is_citation_file, list_files

__all__ = [
    "Article",
    "COMPANIONS",
    "Heading",
    "PmidSet",
    "Qualifier",
    "ReadReport",
    "count_records",
    "decompress",
    "heading_text",
    "is_citation_file",
    "join_headings",
    "latest_versions",
    "list_files",
    "medline_rows",
    "read_articles",
    "read_heading_files",
    "ris_rows",
    "write_articles",
]
