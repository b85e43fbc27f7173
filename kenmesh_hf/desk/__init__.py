"""Articles of a file and what a model says of them enter, decisions leave; a desk is one SQLite file."""

from .agreement import report_lines, score_agreement
from .collections import (
    SORTS,
    STATES,
    ArticleList,
    Filter,
    article_of,
    find_collection,
    keep_tags,
    list_articles,
    list_changes,
    list_collections,
    open_collection,
    remove_collection,
    tag_again,
    untagged,
)
from .decisions import STATE_ACTIONS, TAG_ACTIONS, Conflict, Decision, decide, redo, show_article, undo
from .handing_in import FORMATS, decided_articles, hand_in
from .learning import decided, learn, learning_lines, list_learning, share_out
from .report_page import render_report, write_report
from .store import Desk, DeskFailed, NotOnDesk

__all__ = [
    "ArticleList",
    "Conflict",
    "Decision",
    "Desk",
    "DeskFailed",
    "FORMATS",
    "Filter",
    "NotOnDesk",
    "SORTS",
    "STATES",
    "STATE_ACTIONS",
    "TAG_ACTIONS",
    "article_of",
    "decide",
    "decided",
    "decided_articles",
    "find_collection",
    "hand_in",
    "keep_tags",
    "learn",
    "learning_lines",
    "list_articles",
    "list_changes",
    "list_collections",
    "list_learning",
    "open_collection",
    "redo",
    "remove_collection",
    "render_report",
    "report_lines",
    "score_agreement",
    "share_out",
    "show_article",
    "tag_again",
    "undo",
    "untagged",
    "write_report",
]
