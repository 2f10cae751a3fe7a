"""The admin API under `/_local/`: knobs, clock, faults, spot reclaim, what exists, calls, metrics.

Every request carries the admin token of `cloud.json`: header `X-Local-Token`, or the cookie that the console page got.
A cookie counts only for requests of the page itself (same origin), so no other web site can use it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from localcloud.api import signature
from localcloud.api.actions import instance_ops
from localcloud.api.clock import iso_seconds
from localcloud.api.knobs import Fault, Knobs, Stock
from localcloud.api.server import Server
from localcloud.api.store import Doc

COOKIE = "localcloud_token"
_MAX_BODY = 1 << 20
Endpoint = Callable[[Request], Awaitable[Response]]


class _Advance(BaseModel):
    model_config = ConfigDict(extra="forbid")
    seconds: float = Field(ge=0, le=86_400 * 366 * 3)


class _Target(BaseModel):
    model_config = ConfigDict(extra="forbid")
    instance_id: str
    notice: float | None = Field(default=None, ge=0, le=86_400)


def allowed(request: Request, token: str) -> bool:
    """Whether the request carries the admin token."""
    given = request.headers.get("x-local-token", "")
    if given:
        return signature.equal(given, token)
    cookie = request.cookies.get(COOKIE, "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    return site in ("same-origin", "none") and signature.equal(cookie, token)


class Admin:
    """Routes of the admin API of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def routes(self) -> list[Route]:
        """All routes."""
        table: list[tuple[str, str, Endpoint]] = [
            ("GET", "/_local/health", self.health),
            ("GET", "/_local/snapshot", self.snapshot),
            ("GET", "/_local/instances", self.instances),
            ("GET", "/_local/knobs", self.get_knobs),
            ("PUT", "/_local/knobs", self.put_knobs),
            ("PATCH", "/_local/knobs", self.patch_knobs),
            ("POST", "/_local/stock", self.stock),
            ("POST", "/_local/faults", self.fault),
            ("GET", "/_local/clock", self.clock),
            ("POST", "/_local/clock/advance", self.advance),
            ("POST", "/_local/reclaim", self.reclaim),
            ("POST", "/_local/vanish", self.vanish),
            ("POST", "/_local/expire-credentials", self.expire_credentials),
            ("GET", "/_local/calls", self.calls),
            ("GET", "/_local/events", self.events),
            ("GET", "/_local/metrics", self.metrics),
        ]
        return [Route(path, self._guarded(handler), methods=[method]) for method, path, handler in table]

    def _guarded(self, handler: Endpoint) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            if not allowed(request, self._server.admin_token):
                return JSONResponse({"error": "the admin token is missing or wrong"}, 401)
            try:
                return await handler(request)
            except ValidationError as error:
                details = [
                    {"path": ".".join(str(part) for part in item["loc"]), "message": item["msg"]}
                    for item in error.errors()
                ]
                return JSONResponse({"error": "the value is not valid", "details": details}, 422)
            except ValueError as error:
                return JSONResponse({"error": str(error)}, 422)
            except LookupError as error:
                return JSONResponse({"error": str(error.args[0])}, 404)

        return endpoint

    @staticmethod
    async def _body(request: Request) -> Any:
        if int(request.headers.get("content-length") or 0) > _MAX_BODY:
            raise ValueError("the body is too large")
        data = await request.body()
        try:
            return json.loads(data or b"{}")
        except ValueError:
            raise ValueError("the body is not JSON") from None

    async def health(self, request: Request) -> Response:
        """Says that the server serves."""
        return JSONResponse({"ok": True, "hosts": self._server.cloud.driver.real})

    async def snapshot(self, request: Request) -> Response:
        """Everything that exists, by kind."""
        store = self._server.store
        kinds = store.counts()
        documents = request.query_params.get("documents", "1") != "0"
        return JSONResponse(
            {
                "counts": kinds,
                "resources": {kind: store.find(kind) for kind in kinds} if documents else {},
            }
        )

    async def instances(self, request: Request) -> Response:
        """Instances for the console: newest first, at most `limit`."""
        store = self._server.store
        limit = min(int(request.query_params.get("limit", "200")), 1000)
        total = store.count("instance")
        docs = store.find("instance", limit=limit, offset=max(0, total - limit))[::-1]
        eips = {item["instance_id"]: item["address"] for item in store.find("eip")}
        return JSONResponse(
            {
                "total": total,
                "instances": [
                    {
                        "id": doc["id"],
                        "name": doc["name"],
                        "hostname": doc["hostname"],
                        "status": doc["status"],
                        "type": doc["instance_type"],
                        "zone": doc["zone"],
                        "charge": doc["charge"],
                        "price_hour": doc["price_hour"],
                        "private_ip": doc["private_ip"],
                        "public_ip": eips.get(doc["id"], ""),
                        "created": iso_seconds(doc["created"]),
                        "auto_release": iso_seconds(doc["auto_release"]) if doc["auto_release"] else "",
                        "reclaim_at": iso_seconds(doc["reclaim_at"]) if doc.get("reclaim_at") else "",
                        "tags": doc["tags"],
                    }
                    for doc in docs
                ],
            }
        )

    async def get_knobs(self, request: Request) -> Response:
        """The knobs."""
        return JSONResponse(self._server.cloud.knobs.model_dump())

    async def put_knobs(self, request: Request) -> Response:
        """Replace all knobs; those not given get their defaults."""
        self._server.set_knobs(Knobs.model_validate(await self._body(request)))
        return await self.get_knobs(request)

    async def patch_knobs(self, request: Request) -> Response:
        """Change the knobs that are given; members of `quotas` singly."""
        change = await self._body(request)
        if not isinstance(change, dict):
            raise ValueError("the body must be an object")
        present = self._server.cloud.knobs.model_dump()
        if isinstance(change.get("quotas"), dict):
            change = {**change, "quotas": {**present["quotas"], **change["quotas"]}}
        self._server.set_knobs(Knobs.model_validate({**present, **change}))
        return await self.get_knobs(request)

    async def stock(self, request: Request) -> Response:
        """Set the stock of one combination; `count` null makes it unlimited again."""
        body = await self._body(request)
        if not isinstance(body, dict):
            raise ValueError("the body must be an object")
        unlimited = body.get("count", 0) is None
        wanted = Stock.model_validate({**body, "count": 0 if unlimited else body.get("count")})
        knobs = self._server.cloud.knobs
        key = (wanted.zone, wanted.instance_type, wanted.charge)
        rest = [item for item in knobs.stock if (item.zone, item.instance_type, item.charge) != key]
        if not unlimited:
            rest.append(wanted)
        self._server.set_knobs(knobs.model_copy(update={"stock": rest}))
        return await self.get_knobs(request)

    async def fault(self, request: Request) -> Response:
        """Have the next calls of an action fail."""
        wanted = Fault.model_validate(await self._body(request))
        knobs = self._server.cloud.knobs
        self._server.set_knobs(knobs.model_copy(update={"faults": [*knobs.faults, wanted]}))
        return await self.get_knobs(request)

    async def clock(self, request: Request) -> Response:
        """The cloud's time."""
        clock = self._server.cloud.clock
        return JSONResponse({"now": iso_seconds(clock.now()), "seconds": clock.now(), "offset": clock.offset})

    async def advance(self, request: Request) -> Response:
        """Move the clock forward."""
        self._server.advance(_Advance.model_validate(await self._body(request)).seconds)
        return await self.clock(request)

    def _instance(self, instance_id: str) -> Doc:
        doc = self._server.store.get("instance", instance_id)
        if doc is None:
            raise LookupError(f"there is no instance {instance_id}")
        return doc

    async def reclaim(self, request: Request) -> Response:
        """Take a spot instance back: notice first, release after it."""
        wanted = _Target.model_validate(await self._body(request))
        doc = self._instance(wanted.instance_id)
        if doc["charge"] != "spot":
            raise ValueError(f"{wanted.instance_id} is not a spot instance")
        call = self._server.call("reclaim")
        if wanted.notice is not None:
            call.cloud.knobs = (knobs := call.cloud.knobs).model_copy(update={"spot_notice": wanted.notice})
        try:
            with self._server.store.transaction():
                at = instance_ops.reclaim(call, doc)
        finally:
            if wanted.notice is not None:
                call.cloud.knobs = knobs
        return JSONResponse({"instance_id": doc["id"], "termination_time": iso_seconds(at)})

    async def vanish(self, request: Request) -> Response:
        """Remove an instance behind everybody's back."""
        doc = self._instance(_Target.model_validate(await self._body(request)).instance_id)
        call = self._server.call("vanish")
        with self._server.store.transaction():
            instance_ops.release(call, doc)
        self._server.finish(call)
        return JSONResponse({"instance_id": doc["id"]})

    async def expire_credentials(self, request: Request) -> Response:
        """Have all temporary credentials expire now."""
        return JSONResponse({"expired": self._server.store.expire_credentials(time.time() - 1)})

    async def calls(self, request: Request) -> Response:
        """The last calls, oldest first: `?action=RunInstances&since=NUMBER&limit=N`."""
        query = request.query_params
        found = self._server.calls.last(
            action=query.get("action", ""),
            since=int(query.get("since", "0")),
            limit=max(1, int(query.get("limit", "1000"))),
        )
        return JSONResponse({"count": self._server.calls.count, "calls": [item.view() for item in found]})

    async def events(self, request: Request) -> Response:
        """Calls as server-sent events."""
        log = self._server.calls

        async def stream() -> AsyncIterator[str]:
            listener = log.listen()
            try:
                yield ": calls\n\n"
                while True:
                    try:
                        record = await asyncio.wait_for(listener.get(), timeout=10)
                    except TimeoutError:
                        yield ": still here\n\n"
                        continue
                    yield f"event: call\ndata: {json.dumps(record.view())}\n\n"
            finally:
                log.forget(listener)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def metrics(self, request: Request) -> Response:
        """Prometheus metrics."""
        return Response(self._server.metrics.text(), media_type="text/plain; version=0.0.4")
