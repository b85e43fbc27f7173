"""Files, folders, archives and streams enter, articles leave: one reader a format, all in constant memory.

`read_articles` finds the format from the content and tells in a `ReadReport` what was skipped and why;
`write_articles` writes what it reads.
"""

from .articles import read_articles, write_articles
from .citation_files import ris_rows
from .record_counts import count_records
from .records import Article, Heading, PmidSet, ReadReport, latest_versions
from .sources import COMPANIONS, decompress, list_files

__all__ = [
    "Article",
    "COMPANIONS",
    "Heading",
    "PmidSet",
    "ReadReport",
    "count_records",
    "decompress",
    "latest_versions",
    "list_files",
    "read_articles",
    "ris_rows",
    "write_articles",
]
