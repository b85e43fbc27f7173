"""Who may talk to a desk: this machine's own pages, and on a network those who know the token."""

import hmac
import ipaddress
import re
from collections.abc import Collection
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .http_guards import HEADERS as SAFE

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
COOKIE = "kenmesh_desk"
_HOST = re.compile(r"(?:\[([0-9a-f:]+)\]|([^\s:@/\[\]]+))(?::\d+)?")
HEADERS = {
    # No other page may show the desk in a frame, where it could be clicked on unseen.
    "Content-Security-Policy": f"{SAFE['Content-Security-Policy']}; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def is_local(host: str) -> bool:
    """Whether an address to listen at can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class DeskGuard:
    """Refuses what another web page could send with a visitor's browser, and whoever lacks the token.

    A page of another site can let a browser send requests to this machine, and by a name of its own that
    leads here (DNS rebinding) even read the answers. So `Host` must be a name of this machine, and where a
    browser tells which page sends a request, it must be one of ours. With a token the name does not matter:
    the browser gives the token to no other name.

    Args:
        app: What comes after.
        hosts: Names that `Host` may have; any if there is a token.
        token: What everybody must know; none if only this machine is listened to.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = LOCAL_HOSTS, token: str | None = None):
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refusal(scope) if scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None and _name(host) not in self.hosts:
            return _problem(421, "This desk answers to names of this machine only, such as 127.0.0.1.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            return _problem(403, "Another web page may not use this desk.")
        # Following a link from elsewhere to a page is fine; what changes or gives away something is not.
        if site in ("cross-site", "same-site") and not _is_visit(scope, headers):
            return _problem(403, "Another web page may not use this desk.")
        return self._without_token(scope, headers) if self.token is not None else None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None for who knows the token; a token in the address becomes a cookie and leaves the address."""
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and self._known(query.get("token")):
            del query["token"]
            target = scope["path"] + (f"?{urlencode(query)}" if query else "")
            answer = RedirectResponse(target, 303)
            # "strict" would keep it from whoever follows a link in a web mail; what a page elsewhere sends is
            # refused by what the browser tells of it.
            answer.set_cookie(COOKIE, self.token or "", httponly=True, samesite="lax")
            return answer
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Python's own parser would give up at the first cookie, whosever, that it finds wrong.
        cookie = HTTPConnection(scope).cookies.get(COOKIE)
        if self._known(cookie) or (scheme.lower() == "bearer" and self._known(given)):
            return None
        return _problem(401, "This desk needs its token: open the address that was printed at its start.")

    def _known(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode(), (self.token or "").encode())


def _name(host: str) -> str:
    """The name in a `Host` header, without its port."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2]) if found else ""


def _is_visit(scope: Scope, headers: Headers) -> bool:
    to_page = not scope["path"].startswith("/api/")
    return to_page and scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"


def _problem(status: int, sentence: str) -> Response:
    return JSONResponse({"detail": sentence}, status)
