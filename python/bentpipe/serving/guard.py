"""Who may ask: the browser that was given the token, on this machine, from the page itself."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The longest scenario is 1 MiB; JSON may escape each character.
LONGEST_BODY: Final = 8 << 20

_HEADERS: Final = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Guard:
    """Refuse what does not come from the page.

    - The Host header must name this server, so that no other name leads to it (DNS rebinding).
    - The first request has the token in its address, and gets it as a cookie that other sites'
      requests do not carry. All other requests must have the cookie.
    - A request that changes something must come from the page (Origin), as JSON, which a form of
      another page cannot send.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"bentpipe-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _bounded(receive), _with_headers(send))

    def _refusal(self, request: Request) -> PlainTextResponse | RedirectResponse | None:
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("this server has another name\n", 421)
        given = request.query_params.get("token")
        if given is not None and request.url.path == "/" and request.method == "GET":
            if not secrets.compare_digest(given.encode(), self._token.encode()):
                return PlainTextResponse("wrong token\n", 403)
            response = RedirectResponse("/", 303)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response
        cookie = request.cookies.get(self._cookie, "")
        if not secrets.compare_digest(cookie.encode(), self._token.encode()):
            return PlainTextResponse("open the address that `bentpipe serve` printed\n", 403)
        if request.method in {"GET", "HEAD"}:
            return None
        if request.headers.get("origin") != f"http://{host}":
            return PlainTextResponse("not from this page\n", 403)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return PlainTextResponse("expected JSON\n", 415)
        return None


def _bounded(receive: Receive) -> Receive:
    """Receive at most LONGEST_BODY bytes; a longer body is cut, and is then not JSON."""
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            if received > LONGEST_BODY:
                return {"type": "http.request", "body": b"", "more_body": False}
        return message

    return bounded


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in _HEADERS.items() if name not in there]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent
