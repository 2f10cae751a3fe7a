"""The ASGI application: API requests, the console page, the admin API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from localcloud.api import signature
from localcloud.api.admin import COOKIE, Admin, allowed
from localcloud.api.errors import ApiError
from localcloud.api.ids import request_id
from localcloud.api.render import to_json
from localcloud.api.server import Server

#: Largest body of an API request in bytes; user data is at most 44 KiB in base64.
MAX_BODY = 2 * 1024 * 1024
#: Bodies that are being read hold at most this many bytes together.
_MAX_HELD = 32 * 1024 * 1024
#: How long a client may take for its body, seconds.
_BODY_TIME = 30.0
#: What is read and thrown away of a larger body, so that the client gets to see the answer.
_MAX_DRAIN = 64 * 1024 * 1024
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Bodies:
    """Reads bodies of requests within limits on size, time and on what all of them hold together."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: Request) -> bytes:
        """The body.

        Raises:
            ApiError: it is too large, it takes too long, or too much is being read at once.
            ClientDisconnect: the client went away.
        """
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > _MAX_DRAIN:
            raise _too_large()
        parts: list[bytes] = []
        size = held = 0
        try:
            async with asyncio.timeout(_BODY_TIME):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > MAX_BODY:
                        parts.clear()
                        self._held, held = self._held - held, 0
                        if size > _MAX_DRAIN:
                            raise _too_large()
                        continue
                    if self._held + len(chunk) > _MAX_HELD:
                        raise ApiError(503, "ServiceUnavailable", "Too many requests are being read at once.")
                    parts.append(chunk)
                    held += len(chunk)
                    self._held += len(chunk)
        except TimeoutError:
            raise ApiError(408, "RequestTimeout", f"The body did not come within {_BODY_TIME:.0f} s.") from None
        finally:
            self._held -= held
        if size > MAX_BODY:
            raise _too_large()
        return b"".join(parts)


def _too_large() -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"The request body is larger than {MAX_BODY} bytes.")


def _refused(error: ApiError, host: str) -> Response:
    """The answer to a request of which not all was read."""
    body = to_json({"RequestId": request_id(), "HostId": host, "Code": error.code, "Message": error.message})
    return Response(body, error.status, media_type="application/json", headers={"Connection": "close"})


def make_app(server: Server) -> Starlette:
    """The application of one server."""
    bodies = _Bodies()

    async def api(request: Request) -> Response:
        query = request.scope["query_string"]
        if request.method == "GET" and b"Action=" not in query and "x-acs-action" not in request.headers:
            return console(request)
        try:
            body = await bodies.read(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except ApiError as error:
            return _refused(error, request.headers.get("host", ""))
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = await server.handle(request.method, request.url.path, query, headers, body)
        return Response(answer.body, answer.status, media_type=answer.media, headers=answer.headers)

    def console(request: Request) -> Response:
        given = request.query_params.get("token", "")
        if given and signature.equal(given, server.admin_token):
            response: Response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return response
        if not allowed(request, server.admin_token):
            return HTMLResponse(_page("locked.html"), 401, headers=_PAGE_HEADERS)
        return HTMLResponse(_page("console.html"), headers=_PAGE_HEADERS)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        timers = asyncio.create_task(server.run_timers())
        try:
            yield
        finally:
            timers.cancel()
            with suppress(asyncio.CancelledError):
                await timers

    return Starlette(
        routes=[*Admin(server).routes(), Route("/", api, methods=["GET", "POST"])],
        lifespan=lifespan,
    )


def _page(name: str) -> str:
    return (files("localcloud.api") / "pages" / name).read_text(encoding="utf-8")
