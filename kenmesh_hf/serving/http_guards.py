"""What stands before the web routes: limits on requests, safe headers, errors as sentences."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    # Scripts, styles and data come from this server or not at all.
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class BodyLimit:
    """Reads the body of each request before its route runs, unless it is too large or too slow.

    Args:
        app: What comes after.
        limits: Largest body by path.
        default: Largest body of other paths.
        seconds: Longest time for a body to arrive.
    """

    def __init__(self, app: ASGIApp, limits: Mapping[str, int], default: int, seconds: float):
        self.app, self.limits, self.default, self.seconds = app, limits, default, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.limits.get(scope["path"], self.default)
        try:
            body = await asyncio.wait_for(self._read(scope, receive, most), self.seconds)
        except TimeoutError:
            problem = f"The request did not arrive within {self.seconds:g} seconds. Send it again."
            await JSONResponse({"detail": problem}, 408)(scope, receive, send)
            return
        if body is None:
            problem = f"This is too much for one request: send at most {most / 1e6:g} MB."
            await JSONResponse({"detail": problem}, 413, {"Connection": "close"})(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive, most: int) -> bytes | None:
        """The body, or None once it turns out to be too large."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > most:
            return None
        body, more = bytearray(), True
        while more:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > most:
                return None
            more = message.get("more_body", False)
        return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once and then whatever comes."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class SafeHeaders:
    """Adds headers to every answer.

    Args:
        app: What comes after.
        headers: Beside, or instead of, `HEADERS`.
    """

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] | None = None):
        self.app, self.headers = app, HEADERS | dict(headers or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def sentence_of(errors: Sequence[Any]) -> str:
    """The first errors of a request, each with the place where it is."""
    parts = []
    for error in errors[:3]:
        place = ".".join(str(step) for step in error["loc"] if step not in ("body", "query", "path"))
        parts.append(f"{place}: {error['msg']}" if place else error["msg"])
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    return (
        "The request cannot be used. " + "; ".join(parts) + more + ". See /openapi.json for what is expected."
    )
