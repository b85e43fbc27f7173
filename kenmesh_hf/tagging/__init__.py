"""Articles and a model enter; tags leave, as a stream, in files of several formats, or as a search string."""

from .articles import TagOptions, tag_articles, tag_with
from .exports import WRITERS, Tagged
from .files import read_inputs, search_for, tag_files, write_tags
from .resumable import ResumableFile
from .searches import SEARCH_SYNTAXES, search_string
from .terminal import tag_lines

__all__ = [
    "ResumableFile",
    "SEARCH_SYNTAXES",
    "TagOptions",
    "Tagged",
    "WRITERS",
    "read_inputs",
    "search_for",
    "search_string",
    "tag_articles",
    "tag_files",
    "tag_lines",
    "tag_with",
    "write_tags",
]
