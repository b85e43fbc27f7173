"""`kenmesh serve`: the web page and the REST interface of one model.

FastAPI and a page written by hand instead of Gradio: nothing is fetched from elsewhere, so it works offline;
layout, keyboard and phone are in our hands; a clicked tag and its words in the text need a view of their own;
a tenth of the megabytes (11, not 100) is installed; and the OpenAPI description comes from the types.
"""

import asyncio
import os
import secrets
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from .._version import __version__
from ..desk import Desk
from ..errors import DependencyError, InputError
from ..files import BUNDLED_CHECKPOINT
from ..reading import Article
from ..sharing import find_model, load
from ..tagging import SEARCH_SYNTAXES, WRITERS, search_string

try:
    import uvicorn
    from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, PlainTextResponse
    from fastapi.staticfiles import StaticFiles

    from . import api_schema as schema
    from .desk_guard import HEADERS as DESK_HEADERS
    from .desk_guard import LOCAL_HOSTS, DeskGuard, is_local
    from .desk_routes import DeskService, DeskSettings, add_desk
    from .http_guards import BodyLimit, SafeHeaders, sentence_of
    from .service import Limits, Service
    from .tagger_processes import TaggerProcesses
except ImportError as error:
    raise DependencyError(
        f"The web page needs {error.name}. Install it: pip install 'kenmesh-hf[app]'."
    ) from error

PAGE_FOLDER = Path(__file__).parent / "page"
# Who restarts a desk on a network may give it a token that stays.
TOKEN_VARIABLE = "KENMESH_DESK_TOKEN"
MEDIA_TYPES = {
    "json": "application/json",
    "jsonl": "application/jsonl",
    "csv": "text/csv",
    "ris": "application/x-research-info-systems",
    "nbib": "application/nbib",
}


def api_routes(service: Service) -> APIRouter:
    """The REST interface."""
    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": schema.Problem, "description": what}
        for status, what in {
            413: "Too much for one request.",
            422: "Something is missing or wrong.",
            429: "This client has too many articles waiting.",
            503: "The server is busy.",
        }.items()
    }
    api = APIRouter(prefix="/api")
    Typed = Annotated[str, Query(max_length=200, description="What was typed so far.")]
    Most = Annotated[int, Query(ge=1, le=100)]

    @api.post("/tag", response_model=schema.TagResponse, responses=problems)
    async def tag(request: Request, body: schema.TagRequest) -> Any:
        """Tags of one article."""
        [tags] = await service.tag(_client(request), [body], body)
        return JSONResponse({"pmid": body.pmid, "tags": tags})

    @api.post("/tag-many", response_model=schema.TagManyResponse, responses=problems)
    async def tag_many(request: Request, body: schema.TagManyRequest) -> Any:
        """Tags of several articles, in their order."""
        tags = await service.tag(_client(request), body.articles, body)
        rows = zip(body.articles, tags, strict=True)
        return JSONResponse({"results": [{"pmid": article.pmid, "tags": row} for article, row in rows]})

    @api.get("/vocabulary", response_model=list[schema.Descriptor])
    def search_vocabulary(q: Typed, limit: Most = 20) -> Any:
        """Descriptors by the beginning of a name or entry term, or by UI or tree number."""
        return service.lookup.search(q, limit)

    @api.get(
        "/vocabulary/{ui}",
        response_model=schema.DescriptorDetails,
        responses={404: {"model": schema.Problem, "description": "No such descriptor."}},
    )
    def descriptor(ui: str) -> Any:
        """One descriptor: terms, definition where known, its path in each tree, what is below it."""
        found = service.lookup.describe(ui)
        if found is None:
            raise HTTPException(404, f"{ui} is no descriptor of this model. Search with /api/vocabulary?q=.")
        return found

    @api.get("/journals", response_model=list[schema.Journal])
    def journals(q: Typed, limit: Most = 20) -> Any:
        """Journals the model knows, by the beginning of their name or of a word of it."""
        return service.journals(q, limit)

    @api.post(
        "/articles",
        response_model=schema.LoadedFile,
        responses=problems,
        openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {}}}},
    )
    async def articles(request: Request, name: Annotated[str, Query(max_length=200)] = "the file") -> Any:
        """Articles of a file (the request's body) in any format `kenmesh` reads: PubMed XML, RIS, CSV …"""
        data = await request.body()
        if not data:
            raise HTTPException(422, f"{name} is empty. Choose a file with citations.")
        async with service.reading:
            found = await asyncio.to_thread(service.read_file, data, name)
        if not found["articles"]:
            reasons = "; ".join(place for places in found["examples"].values() for place in places)
            raise HTTPException(422, f"No article was found in {name}. {reasons}".strip())
        return found

    @api.post("/export", responses=problems, response_class=PlainTextResponse)
    def export(body: schema.ExportRequest) -> Any:
        """Tagged articles as JSON, CSV, RIS or MEDLINE text, or as a search for PubMed or Ovid."""
        rows = [article.model_dump() for article in body.articles]
        results = [(Article.from_dict(row), row["tags"]) for row in rows]
        if body.format in SEARCH_SYNTAXES:
            return PlainTextResponse(search_string([tags for _, tags in results], body.format) + "\n")
        text = "".join(WRITERS[body.format](results))
        return PlainTextResponse(text, media_type=MEDIA_TYPES[body.format])

    @api.get("/health", response_model=schema.Health, responses={503: problems[503]})
    def health() -> Any:
        """Whether articles can be tagged now, and how many wait."""
        if service.queue is None or not service.queue.alive:
            raise HTTPException(503, "The model is not running. Start the server again.")
        return {"status": "ok", "waiting": service.queue.waiting}

    @api.get("/info", response_model=schema.Info)
    def info() -> Any:
        """What the model and this server are."""
        return service.info()

    return api


def _client(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def create_app(tagger: Any, *, limits: Limits | None = None, desk: DeskSettings | None = None) -> FastAPI:
    """The web page and the REST interface for a model.

    Args:
        tagger: A `MeSHIndexingPipeline`.
        limits: What may be asked for.
        desk: A desk to serve, too; none by default.
    """
    limits = limits or Limits()
    service = Service(tagger, limits)
    desk_service = DeskService(desk, service) if desk else None
    # The usual documentation pages load scripts from elsewhere; the description itself is at /openapi.json.
    app = FastAPI(
        title="KenMeSH",
        version=__version__,
        summary="MeSH descriptors for biomedical articles, each with what it rests on.",
        lifespan=(desk_service or service).lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(api_routes(service))
    if desk_service:
        add_desk(app, desk_service)
    app.mount("/", StaticFiles(directory=PAGE_FOLDER, html=True))
    largest = dict.fromkeys(("/api/articles", "/api/desk/collections"), limits.file_bytes)
    app.add_middleware(BodyLimit, limits=largest, default=limits.body_bytes, seconds=limits.seconds)
    if desk:
        app.add_middleware(DeskGuard, hosts=(*LOCAL_HOSTS, desk.host.strip("[]")), token=desk.token)
    app.add_middleware(SafeHeaders, headers=DESK_HEADERS if desk else None)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": sentence_of(error.errors())}, 422)

    @app.exception_handler(InputError)
    def unusable(request: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    return app


def _load(model: Any, workers: int, loading: dict[str, Any]) -> Any:
    return load(model, **loading) if workers == 1 else TaggerProcesses(model, workers, **loading)


def serve(
    model: Any = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    trusted_proxies: str | None = None,
    workers: int = 1,
    desk: str | Path | None = None,
    **loading: Any,
) -> None:
    """Runs the page until it is stopped with Ctrl+C.

    Args:
        model: Folder or Hub name of a model, the bundled one if not given, or a `MeSHIndexingPipeline`.
        host: Address to listen at; "0.0.0.0" lets other machines in.
        port: Port to listen at.
        limits: What may be asked for.
        desk: SQLite file of a desk to serve, too; who comes from other machines then needs a token.
        trusted_proxies: Addresses of proxies whose word on a client's address counts; "*" for any.
        workers: Processes that tag, each with the model; queue and limits are those of one server.
        **loading: `revision`, `token` and other options of `kenmesh_hf.load`.
    """
    if desk:
        # What is wrong with it is told at once, not after the model is loaded.
        Desk(desk).close()
    tagger = model if callable(model) else _load(model, workers, loading)
    settings = desk_settings(desk, model, host, **loading) if desk else None
    app = create_app(tagger, limits=limits, desk=settings)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    print(f"KenMeSH is at {address}/ (stop with Ctrl+C)", flush=True)
    if settings:
        secret = f"?{urlencode({'token': settings.token})}" if settings.token else ""
        print(f"The desk {desk} is at {address}/desk/{secret}", flush=True)
    if threading.current_thread() is threading.main_thread():
        # uvicorn raises the signal anew when all is closed; by default it ends us before Python cleans up.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.run(app, host=host, port=port, log_level="warning", forwarded_allow_ips=trusted_proxies)


def desk_settings(path: str | Path, model: Any, host: str, **loading: Any) -> DeskSettings:
    """A desk as it is served at an address: on a network with a token, which may be set beforehand."""
    bundled = model is None or str(model) == str(BUNDLED_CHECKPOINT)
    name = "a model in memory" if callable(model) else "the bundled checkpoint" if bundled else str(model)
    secret = None if is_local(host) else os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    folder = None if callable(model) else str(find_model(model or BUNDLED_CHECKPOINT, dict(loading)))
    return DeskSettings(str(path), name, secret, folder, host)
