"""A desk at which everything is done."""

from collections.abc import Sequence

from kenmesh_hf.desk import Decision, Desk, decide, keep_tags, open_collection
from kenmesh_hf.reading import Article


def reviewed(desk: Desk, articles: Sequence[Article]) -> None:
    """Puts articles on a desk on which people decided exactly what is right, and the model proposed it."""
    open_collection(desk, "export.jsonl", "Ana", articles)
    for number, article in enumerate(articles, 1):
        tags = [
            {"ui": item.ui, "name": item.name or item.ui, "score": 0.8, "threshold": 0.5, "tree_numbers": []}
            for item in article.headings
        ]
        keep_tags(desk, "model", [(number, tags, None)])
        decide(desk, number, Decision(f"done {number}", "Ana", 0, "done"))
