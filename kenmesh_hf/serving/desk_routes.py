"""The desk over HTTP: collections, articles, decisions, handing in; and its page."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from ..desk import (
    Conflict,
    Decision,
    Desk,
    DeskFailed,
    Filter,
    NotOnDesk,
    article_of,
    decide,
    hand_in,
    list_articles,
    list_changes,
    list_collections,
    open_collection,
    redo,
    remove_collection,
    render_report,
    score_agreement,
    show_article,
    tag_again,
    undo,
)
from . import api_schema, desk_schema
from .desk_learning import DeskLearning
from .desk_tagging import DeskTagging
from .service import Service

logger = logging.getLogger(__name__)

PAGE_FOLDER = Path(__file__).parent / "desk_page"
ENDINGS = {"pubmed": "txt", "ovid": "txt"}


@dataclass(frozen=True)
class DeskSettings:
    """A desk to be served.

    Attributes:
        path: Its SQLite file, made if it is not there.
        model: What the model is called, in the desk's records.
        token: What everybody must know to come near it; none if only this machine is listened to.
        folder: Folder of the model, for it to learn; none where it is only in memory.
        host: Address that is listened to.
    """

    path: str
    model: str = "the bundled checkpoint"
    token: str | None = None
    folder: str | None = None
    host: str = "127.0.0.1"


class DeskService:
    """What the desk's routes share."""

    def __init__(self, settings: DeskSettings, service: Service):
        self.settings, self.service = settings, service
        self.desk = Desk(settings.path)
        self.tagging = DeskTagging(self.desk, service, settings.model)
        self.learning = DeskLearning(self.desk, settings.folder)

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Tags in the background as long as the server runs."""
        async with self.service.lifespan(app):
            task = asyncio.create_task(self.tagging.run())
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, self.learning.stop(), return_exceptions=True)
                self.desk.close()

    @property
    def qualifiers(self) -> Any:
        """The qualifiers that the model knows; None where it knows none."""
        return getattr(getattr(self.service.processor, "headings", None), "qualifiers", None)

    def decision_of(self, body: desk_schema.DecisionRequest) -> Decision:
        """A decision with names looked up; what MeSH does not have is refused."""
        told: dict[str, Any] = {
            key: getattr(body, key) for key in ("key", "who", "version", "action", "major", "opened_at")
        }
        if body.action in desk_schema.TAG_ACTIONS:
            if body.ui is None:
                raise HTTPException(422, f"To {body.action} a tag, say which: `ui` is missing.")
            told["ui"] = body.ui
        if body.action == "add":
            told |= self._descriptor(body.ui)
        if body.action == "qualify":
            told["qualifiers"] = [self._qualifier(item) for item in body.qualifiers]
        return Decision(**told)

    def _descriptor(self, ui: str | None) -> dict[str, Any]:
        label = self.service.vocabulary.get(ui)
        if label is None:
            raise HTTPException(422, f"{ui} is no descriptor of this model. Search with /api/vocabulary?q=.")
        vocabulary = self.service.vocabulary
        return {"name": vocabulary.names[label], "tree_numbers": tuple(vocabulary.tree_numbers[label])}

    def _qualifier(self, chosen: desk_schema.ChosenQualifier) -> dict[str, Any]:
        known = self.qualifiers.find(chosen.ui) if self.qualifiers is not None else None
        if known is None:
            raise HTTPException(422, f"{chosen.ui} is no qualifier of this model.")
        return {"ui": known.ui, "name": known.name, "major": chosen.major}


def add_desk(app: FastAPI, desk: DeskService) -> None:
    """Gives an app the desk's routes and its page."""
    app.include_router(_collection_routes(desk))
    app.include_router(_article_routes(desk))
    app.include_router(_learning_routes(desk))

    @app.get("/desk/report/{number}", response_class=HTMLResponse, include_in_schema=False)
    def report(number: desk_schema.Number) -> Any:
        found = _report(desk, number)
        return HTMLResponse(render_report(found, ("../../style.css", "../desk.css")))

    @app.get("/desk", include_in_schema=False)
    def without_slash() -> Any:
        return RedirectResponse("desk/")

    app.mount("/desk", StaticFiles(directory=PAGE_FOLDER, html=True))

    @app.exception_handler(Conflict)
    def conflict(request: Request, error: Conflict) -> JSONResponse:
        return JSONResponse({"detail": str(error), "article": error.article, "by": error.by}, 409)

    @app.exception_handler(DeskFailed)
    def failed(request: Request, error: DeskFailed) -> JSONResponse:
        logger.error("%s", error)
        return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "5"})

    @app.exception_handler(NotOnDesk)
    def missing(request: Request, error: NotOnDesk) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 404)


def _report(desk: DeskService, number: int) -> dict[str, Any]:
    list_articles(desk.desk, number, Filter(), limit=1)
    return score_agreement(desk.desk, [number])


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    known: dict[int, dict[str, Any]] = {
        404: {"model": api_schema.Problem, "description": "There is no such thing on the desk."},
        409: {"model": desk_schema.ConflictProblem, "description": "Somebody else was there first."},
        413: {"model": api_schema.Problem, "description": "Too much for one request."},
        422: {"model": api_schema.Problem, "description": "Something is missing or wrong."},
    }
    return {status: known[status] for status in statuses}


def _collection_routes(desk: DeskService) -> APIRouter:
    api = APIRouter(prefix="/api/desk")
    Limit = Annotated[int, Query(ge=1, le=500)]
    Short = Annotated[str, Query(max_length=200)]

    @api.get("", response_model=desk_schema.DeskInfo)
    def info() -> Any:
        """The desk and its collections."""
        return {
            "name": desk.desk.path.name,
            "model": desk.settings.model,
            "qualifiers": desk.qualifiers is not None,
            "collections": list_collections(desk.desk),
        }

    @api.post(
        "/collections",
        response_model=desk_schema.Opened,
        responses=_problems(413, 422),
        openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {}}}},
    )
    async def open_file(
        request: Request, who: Annotated[desk_schema.Who, Query()], name: Short = "the file"
    ) -> Any:
        """Puts the articles of a file (the request's body), in any format `kenmesh` reads, on the desk."""
        data = await request.body()
        if not data.strip():
            raise HTTPException(422, f"{name} is empty. Choose a file with citations.")
        async with desk.service.reading:
            opened = await asyncio.to_thread(_open_file, desk, data, name, who)
        desk.tagging.news.set()
        return opened

    @api.delete("/collections/{number}", responses=_problems(404))
    def remove(number: desk_schema.Number) -> dict[str, int]:
        """Takes a collection off the desk with all its decisions."""
        list_articles(desk.desk, number, Filter(), limit=1)
        remove_collection(desk.desk, number)
        return {"removed": number}

    @api.get(
        "/collections/{number}/articles", response_model=desk_schema.ArticleRows, responses=_problems(404)
    )
    def articles(
        number: desk_schema.Number,
        state: desk_schema.State = "",
        q: Short = "",
        ui: Short = "",
        sort: desk_schema.Sort = "file",
        start: desk_schema.Number = 0,
        limit: Limit = 100,
        after: desk_schema.Number | None = None,
    ) -> Any:
        """Articles of a collection by state, words or PMID (`q`) and descriptor (`ui`), piece by piece.

        A piece begins at a place (`start`) or behind an article (`after`): places change as articles change.
        """
        found = list_articles(desk.desk, number, Filter(state, q, ui, sort), start, limit, after)
        return JSONResponse(asdict(found))

    @api.get(
        "/collections/{number}/changes", response_model=desk_schema.ArticleRows, responses=_problems(404)
    )
    def changes(number: desk_schema.Number, since: desk_schema.Number, limit: Limit = 200) -> Any:
        """What changed after a time of the desk's clock, whoever did it."""
        return JSONResponse(asdict(list_changes(desk.desk, number, since, limit)))

    @api.post(
        "/collections/{number}/undo", response_model=desk_schema.DeskArticle, responses=_problems(404, 409)
    )
    def take_back(number: desk_schema.Number, body: desk_schema.Person) -> Any:
        """Takes back the last decision that this person made in the collection."""
        return JSONResponse(undo(desk.desk, number, body.who))

    @api.post(
        "/collections/{number}/redo", response_model=desk_schema.DeskArticle, responses=_problems(404, 409)
    )
    def make_again(number: desk_schema.Number, body: desk_schema.Person) -> Any:
        """Makes again what this person took back last."""
        return JSONResponse(redo(desk.desk, number, body.who))

    @api.post("/collections/{number}/tag-again", responses=_problems(404))
    async def again(number: desk_schema.Number) -> dict[str, int]:
        """Lets this model tag what another one tagged and nobody touched."""
        list_articles(desk.desk, number, Filter(), limit=1)
        count = await asyncio.to_thread(tag_again, desk.desk, number, desk.settings.model)
        desk.tagging.news.set()
        return {"articles": count}

    @api.get("/collections/{number}/export", responses=_problems(404, 422), response_class=StreamingResponse)
    def export(number: desk_schema.Number, format: desk_schema.Format, only_done: bool = True) -> Any:
        """What was decided, as a file to hand in."""
        list_articles(desk.desk, number, Filter(), limit=1)
        rows = hand_in(desk.desk, format, [number], only_done)
        name = f"collection-{number}.{ENDINGS.get(format, format)}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(rows, media_type="text/plain; charset=utf-8", headers=headers)

    @api.get("/collections/{number}/report", responses=_problems(404))
    def report(number: desk_schema.Number) -> dict[str, Any]:
        """How far the model's proposals and the decisions agree; as a page at `/desk/report/{number}`."""
        return _report(desk, number)

    return api


def _open_file(desk: DeskService, data: bytes, name: str, who: str) -> dict[str, Any]:
    articles, more, report = desk.service.read_upload(data, name, desk.service.limits.collection_articles)
    if not articles:
        reasons = "; ".join(place for places in report.examples.values() for place in places)
        raise HTTPException(422, f"No article was found in {name}. {reasons}".strip())
    number = open_collection(desk.desk, name, who, articles, report.skipped.total())
    return {
        "collection": number,
        "articles": len(articles),
        "more": more,
        "skipped": dict(report.skipped),
        "examples": report.examples,
    }


def _learning_routes(desk: DeskService) -> APIRouter:
    api = APIRouter(prefix="/api/desk/learning")

    @api.get("")
    def status() -> dict[str, Any]:
        """Whether the model is learning, and what it learned before."""
        return desk.learning.status()

    @api.post("", responses=_problems(422))
    async def start(body: desk_schema.Person) -> dict[str, str]:
        """Lets the model learn from all that is done, into a new folder; the old model stays in use."""
        return {"out": str(desk.learning.start())}

    return api


def _article_routes(desk: DeskService) -> APIRouter:
    api = APIRouter(prefix="/api/desk/articles/{number}")

    @api.get("", response_model=desk_schema.DeskArticle, responses=_problems(404))
    def article(number: desk_schema.Number) -> Any:
        """An article with its tags and what was decided on them."""
        return JSONResponse(show_article(desk.desk, number))

    @api.get("/reasons", responses=_problems(404))
    async def reasons(request: Request, number: desk_schema.Number) -> dict[str, api_schema.Evidence]:
        """What each of the best tags rests on, by descriptor."""
        found = await asyncio.to_thread(article_of, desk.desk, number)
        client = request.client.host if request.client else "unknown"
        return JSONResponse(await desk.tagging.reasons(client, found))  # type: ignore[return-value]

    @api.get("/qualifiers", responses=_problems(404))
    def qualifiers(number: desk_schema.Number, ui: str) -> list[dict[str, str]]:
        """The qualifiers that a descriptor may have; none where the model has none."""
        label = desk.service.vocabulary.get(ui)
        if desk.qualifiers is None or label is None:
            return []
        allowed = desk.qualifiers.allowed(ui, desk.service.vocabulary.tree_numbers[label])
        return [item._asdict() for item in allowed]

    @api.post("/decisions", response_model=desk_schema.DeskArticle, responses=_problems(404, 409, 422))
    def make_decision(number: desk_schema.Number, body: desk_schema.DecisionRequest) -> Any:
        """Makes one decision on an article; it is on disk when the answer comes."""
        return JSONResponse(decide(desk.desk, number, desk.decision_of(body)))

    return api
