"""Tags the articles of a desk in the background, in the same queue as everybody's."""

import asyncio
import logging

from fastapi import HTTPException

from ..desk import Desk, keep_tags, untagged
from ..reading import Article
from . import api_schema as schema
from .service import Service

logger = logging.getLogger(__name__)

# Articles that are tagged, and then kept, together.
AT_ONCE = 64
# Beside what the model gives, the desk shows what it would give next, unless that is out of the question.
MOST_TAGS, LEAST_SCORE = 30, 0.03
# Seconds until it looks again: another process may have put articles on the desk, the queue may have room.
REST = 2.0
NO_TEXT = "This article has neither title nor abstract, so there is nothing to tag."


class DeskTagging:
    """Goes through what waits for its tags, as long as the server runs.

    Args:
        desk: The desk.
        service: The model and its queue.
        model: What the model is called.
    """

    def __init__(self, desk: Desk, service: Service, model: str):
        self.desk, self.service, self.model = desk, service, model
        self.news = asyncio.Event()

    async def run(self) -> None:
        """Tags for ever; told by `news` that there is something to do, it does not wait."""
        while True:
            try:
                waiting = await asyncio.to_thread(untagged, self.desk, AT_ONCE)
                if waiting and await self._tag(waiting):
                    continue
            except Exception:
                logger.exception("the desk's articles could not be tagged; trying again")
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), REST)
            except TimeoutError:
                pass

    async def _tag(self, waiting: list[tuple[int, Article]]) -> bool:
        """Tags some articles; whether any of them got through the queue."""
        answers = await asyncio.gather(*(self._ask(article) for _, article in waiting))
        results = [
            (number, *answer)
            for (number, _), answer in zip(waiting, answers, strict=True)
            if answer is not None
        ]
        if results:
            await asyncio.to_thread(keep_tags, self.desk, self.model, results)
        return bool(results)

    async def _ask(self, article: Article) -> tuple[list[dict], str | None] | None:
        """Tags of an article and why it has none, if so; None if the queue is full."""
        fields = self.fields_of(article)
        if not (fields.title.strip() or fields.abstract.strip()):
            return [], NO_TEXT
        try:
            [tags] = await self.service.tag("desk", [fields], schema.TagOptions(top_k=MOST_TAGS))
        except HTTPException as error:
            return None if error.status_code in (429, 503) else ([], error.detail)
        return [tag for tag in tags if tag["score"] >= min(LEAST_SCORE, tag["threshold"])], None

    def fields_of(self, article: Article) -> schema.ArticleFields:
        """What the model is asked; longer texts than anybody may send are cut."""
        limits = self.service.limits
        return schema.ArticleFields(
            title=article.title[: limits.title_characters],
            abstract=article.abstract[: limits.abstract_characters],
            journal=next(iter(article.journal_names), "")[: limits.title_characters],
            pmid=article.pmid if len(article.pmid or "") <= 20 else None,
        )

    async def reasons(self, client: str, article: Article) -> dict[str, dict]:
        """What each of the best tags of an article rests on, by descriptor."""
        options = schema.TagOptions(top_k=MOST_TAGS, evidence=True)
        [tags] = await self.service.tag(client, [self.fields_of(article)], options)
        return {tag["ui"]: tag["evidence"] for tag in tags}
