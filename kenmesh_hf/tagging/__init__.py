"""Articles and a model enter; tags leave, as a stream, in files of several formats, or as a search string."""

from .articles import TagOptions, tag_articles
from .exports import WRITERS
from .files import read_inputs, search_for, tag_files, write_tags
from .resumable import ResumableFile
from .searches import SEARCH_SYNTAXES, search_string
from .terminal import tag_lines

__all__ = [
    "ResumableFile",
    "SEARCH_SYNTAXES",
    "TagOptions",
    "WRITERS",
    "read_inputs",
    "search_for",
    "search_string",
    "tag_articles",
    "tag_files",
    "tag_lines",
    "write_tags",
]
