"""The cloud at work: opens the state, runs actions in transactions, lets timers run out, drives the hosts."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import itertools
import json
import logging
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localcloud.api import access, actions, hosts_view, ids, rpc
from localcloud.api.access import Caller
from localcloud.api.actions import ecs_images_disks, instance_ops, nas
from localcloud.api.call import Call, Cloud
from localcloud.api.calls import CallLog, CallRecord, presentable, shortened
from localcloud.api.clock import Clock
from localcloud.api.driver import Driver
from localcloud.api.errors import ApiError
from localcloud.api.knobs import Knobs
from localcloud.api.metrics import Metrics
from localcloud.api.offers import Offers
from localcloud.api.oidc import Issuers
from localcloud.api.params import Params
from localcloud.api.rates import Rates
from localcloud.api.registry import ACTIONS, VERSIONS, Action
from localcloud.api.render import to_json, to_xml
from localcloud.api.store import Store
from localcloud.contracts import HostBackend, HostState

_log = logging.getLogger("localcloud.api")
_TIMERS = {
    "instance": instance_ops.on_timer,
    "file_system": nas.on_timer,
    "image": ecs_images_disks.on_timer,
}
#: How often timers are looked at, and the pause between two batches of them, seconds.
_ON_TIME = 0.2
_BETWEEN = 0.005
_CHECKPOINT_ROUNDS = 10
__all__ = ["Server", "actions"]


class Answer:
    """Status, media type and body of an answer."""

    __slots__ = ("body", "headers", "media", "status")

    def __init__(self, status: int, media: str, body: bytes, request_id: str) -> None:
        self.status = status
        self.media = media
        self.body = body
        self.headers = {"x-acs-request-id": request_id}


class Server:
    """One local cloud, opened.

    Args:
        state: folder with the database; made if missing.
        backend: makes instances real, or not.
        region: region of requests that name none.
        endpoint: `host:port` that clients use.
    """

    def __init__(self, state: Path, backend: HostBackend, *, region: str, endpoint: str) -> None:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.store = Store(state / "cloud.db")
        setting = self.store.setting
        self.account_id = setting("account_id", lambda: str(secrets.randbelow(9 * 10**15) + 10**15))
        key_id, secret = json.loads(setting("access_key", lambda: json.dumps(ids.access_key())))
        self.access_key_id: str = key_id
        self.access_key_secret: str = secret
        self.admin_token = setting("admin_token", lambda: secrets.token_urlsafe(32))
        knobs = Knobs.model_validate_json(setting("knobs", lambda: Knobs().model_dump_json()))
        clock = Clock(float(setting("clock_offset", lambda: "0")))
        offers = Offers()
        driver = Driver(backend, self.store, self._settled, self._vanished)
        self.cloud = Cloud(
            self.store, clock, knobs, offers, self.account_id, region, driver, Rates(), Issuers(), endpoint
        )
        self._authenticator = rpc.Authenticator(self.store, key_id, secret, self.account_id)
        self.calls = CallLog()
        self.metrics = Metrics(self.store)

    def begin(self) -> None:
        """Bring the machine to what the database says."""
        source = hosts_view.Source(self.store, self.cloud.offers, self.account_id)
        self.cloud.driver.begin(source)
        if not self.cloud.driver.real:
            self._revive_timers()

    def _revive_timers(self) -> None:
        """Without hosts, instances get where they were going by the clock (they may come from a run with hosts)."""
        call = self.call("restart")
        with self.store.transaction():
            for doc in self.store.find("instance", {"status": ["Pending", "Starting", "Stopping"]}):
                event = "stopped" if doc["status"] == "Stopping" else "started"
                self.store.set_timer("instance", doc["id"], event, call.now + self.cloud.knobs.instance_start)

    def close(self) -> None:
        """Orderly end."""
        self.cloud.driver.close()
        self.store.close()

    # -- knobs and clock ---------------------------------------------------------------------------------------

    def set_knobs(self, knobs: Knobs) -> None:
        """Change the knobs for good."""
        self.cloud.knobs = knobs
        self.store.set_setting("knobs", knobs.model_dump_json())

    def advance(self, seconds: float) -> None:
        """Move the clock forward and let everything happen that is due by then."""
        self.cloud.clock.advance(seconds)
        self.store.set_setting("clock_offset", repr(self.cloud.clock.offset))
        while self.tick():
            pass

    def call(self, action: str) -> Call:
        """A call of the cloud itself."""
        cloud = self.cloud
        caller = Caller("", self.account_id)
        return Call(cloud, action, Params({}), caller, cloud.region, cloud.clock.now())

    def finish(self, call: Call) -> None:
        """Hand the effects of a committed call to the driver."""
        for effect in call.effects:
            effect(self.cloud.driver)
        call.effects.clear()

    def tick(self) -> bool:
        """Let timers run out; says whether any did."""
        now = self.cloud.clock.now()
        if self.store.next_timer is None or self.store.next_timer > now:
            return False
        call = self.call("timer")
        with self.store.transaction():
            due = self.store.due(now)
            for (kind, event, at), timers in itertools.groupby(due, key=lambda timer: (timer[0], timer[2], timer[3])):
                call.now = at
                _TIMERS[kind](call, [resource_id for _, resource_id, _, _ in timers], event)
        self.finish(call)
        return bool(due)

    async def run_timers(self) -> None:
        """Let timers run out, and keep the log of the database short, for ever."""
        for round_ in itertools.count(1):
            await asyncio.sleep(_ON_TIME)
            try:
                while self.tick():
                    await asyncio.sleep(_BETWEEN)  # requests that wait come first
                if round_ % _CHECKPOINT_ROUNDS == 0:
                    await asyncio.to_thread(self.store.checkpoint)
            except Exception:
                _log.exception("a timer failed")

    def _settled(self, instance_id: str, state: HostState) -> None:
        call = self.call("host")
        with self.store.transaction():
            instance_ops.settle(call, [instance_id], str(state.value))

    def _vanished(self, instance_id: str) -> None:
        _log.warning("%s: its host has stopped by itself", instance_id)
        self._settled(instance_id, HostState.STOPPED)

    # -- requests ----------------------------------------------------------------------------------------------

    async def handle(self, method: str, path: str, query: bytes, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer an API request."""
        started = time.perf_counter()
        request_id = ids.request_id()
        request: rpc.Request | None = None
        action: Action | None = None
        caller: Caller | None = None
        waited = 0.0
        lost: ApiError | None = None
        try:
            request = rpc.parse(method, path, query, headers, body)
            action = self._action(request)
            caller = Caller("", self.account_id) if action.anonymous else self._authenticator.caller(request)
            knobs = self.cloud.knobs
            delay = knobs.latency.get(action.name, knobs.latency.get("*", 0.0))
            if delay:
                before = time.perf_counter()
                await asyncio.sleep(delay)
                waited = time.perf_counter() - before
            if action.prepare:
                params = Params(action.declared.canonical(request.parameters))
                await asyncio.to_thread(action.prepare, self.cloud, params)
            self.tick()
            self.cloud.rates.call(self.cloud.clock.now(), action.name, self.cloud.knobs.throttle)
            lost = self._fault(action.name)
            status, document, code = 200, self._run(action, request, caller), ""
            if lost is not None:
                raise lost
        except ApiError as error:
            status, code, document = error.status, error.code, self._error_document(error, headers)
            if code == "InvalidAction.NotFound" or code == "InvalidParameter":
                _log.warning("%r: %s", shortened(request.action) if request else "?", shortened(error.message))
        except Exception:
            _log.exception("%r failed", shortened(request.action) if request else "?")
            broken = ApiError(500, "InternalError", "The request processing has failed due to some unknown error.")
            status, code, document = 500, broken.code, self._error_document(broken, headers)
        document = {"RequestId": request_id, **document}
        name = action.name if action else shortened(request.action) if request else ""
        if request is not None and request.wants_xml:
            media = "text/xml;charset=utf-8"
            rendered = to_xml("Error" if code else f"{name}Response", document)
        else:
            media, rendered = "application/json;charset=utf-8", to_json(document)
        answer = Answer(status, media, rendered, request_id)
        if code.startswith("Throttling"):  # the SDKs tell callers from this how long to wait
            left = self.cloud.rates.left(self.cloud.clock.now())
            answer.headers["x-ratelimit-user-api"] = f"Limit:0,Remain:0,TimeLeft:{left},Reset:{left}"
        spent = time.perf_counter() - started - waited
        product = action.product if action else ""
        self.calls.add(
            CallRecord(
                self.calls.next_number(),
                time.time(),
                product,
                name[:80],
                status,
                code,
                round(spent * 1000, 3),
                request_id,
                caller.arn if caller else "",
                presentable(request.parameters) if request else {},
            )
        )
        known = action.name if action else "unknown"
        self.metrics.calls.labels(product, known, code).inc()
        self.metrics.seconds.labels(product, known).observe(spent)
        return answer

    @staticmethod
    def _error_document(error: ApiError, headers: Mapping[str, str]) -> dict[str, Any]:
        return {
            "HostId": headers.get("host", ""),
            "Code": error.code,
            "Message": error.message,
            "Recommend": f"https://api.aliyun.com/troubleshoot?q={error.code}",
            **error.extra,
        }

    @staticmethod
    def _action(request: rpc.Request) -> Action:
        if not request.action:
            raise ApiError(400, "MissingParameter.Action", "Action is mandatory for this action.")
        if not request.version:
            raise ApiError(400, "MissingVersion", "Version is mandatory for this action.")
        product = VERSIONS.get(request.version)
        if product is None:
            raise ApiError(400, "InvalidVersion", "Specified parameter Version is not valid.")
        action = ACTIONS.get((product, request.action.lower()))
        if action is None:
            raise ApiError(
                404, "InvalidAction.NotFound", "Specified api is not found, please check your url and method."
            )
        return action

    def _fault(self, name: str) -> ApiError | None:
        """Raise the fault that was asked for, or hand it back if it is to come after the work."""
        knobs = self.cloud.knobs
        for fault in knobs.faults:
            if fault.action in ("*", name):
                rest = [item for item in knobs.faults if item is not fault]
                if fault.count > 1:
                    rest.insert(0, fault.model_copy(update={"count": fault.count - 1}))
                self.set_knobs(knobs.model_copy(update={"faults": rest}))
                error = ApiError(fault.status, fault.code, fault.message)
                if fault.when == "after":
                    return error
                raise error
        return None

    def _run(self, action: Action, request: rpc.Request, caller: Caller) -> dict[str, Any]:
        flat = action.declared.canonical(request.parameters)
        params = Params(flat)
        region = params.text("RegionId", self.cloud.region)
        if action.product not in ("ram", "ims", "sts", "location", "bss"):
            self.cloud.offers.zones(region)  # refuses a region that does not exist
        call = Call(self.cloud, action.name, params, caller, region, self.cloud.clock.now())
        if (action.product, action.name) != ("sts", "GetCallerIdentity"):  # who may call may ask who he is
            try:
                access.check(self.store, caller, f"{_POLICY_PREFIX.get(action.product, action.product)}:{action.name}")
            except ApiError:
                if action.name not in _EMPTY or params.flag("DryRun"):
                    raise
                return copy.deepcopy(_EMPTY[action.name])
        if not action.write:
            return action.handler(call)
        token = params.text("ClientToken")
        if len(token) > 64 or not token.isascii():
            code = "InvalidClientToken.ValueNotSupported" if action.product == "ecs" else "InvalidClientToken"
            raise ApiError(400, code, "The ClientToken provided is invalid.")
        digest = hashlib.sha256(
            json.dumps([region, sorted((k, v) for k, v in flat.items() if k not in _PROTOCOL)]).encode()
        ).hexdigest()
        with self.store.transaction():
            if token and (earlier := self.store.answered(action.name, token)):
                if earlier[0] != digest:
                    raise ApiError(
                        400,
                        "IdempotentParameterMismatch",
                        "The request uses the same client token as a previous, but non-identical request.",
                    )
                return earlier[1]
            document = action.handler(call)
            if params.flag("DryRun"):
                code = "DRYRUN.SUCCESS" if action.name in _BATCHES else "DryRunOperation"
                raise ApiError(400, code, "Request validation has been passed with DryRun flag set.")
            if token:
                self.store.keep_answer(action.name, token, digest, document, call.now)
        self.finish(call)
        return document


#: What callers get who may not call: an empty list, unless they ask by DryRun.
_EMPTY: dict[str, dict[str, Any]] = {
    "DescribeInstances": {
        "Instances": {"Instance": []},
        "TotalCount": 0,
        "PageNumber": 1,
        "PageSize": 10,
        "NextToken": "",
    }
}
#: Actions whose dry run ends with another code than that of all others.
_BATCHES = {"StartInstances", "StopInstances", "RebootInstances", "DeleteInstances"}
#: Products whose actions have another name in policies.
_POLICY_PREFIX = {"ims": "ram"}
_PROTOCOL = {
    "Action", "Version", "Format", "AccessKeyId", "Signature", "SignatureMethod", "SignatureVersion", "SignatureNonce",
    "SignatureType", "Timestamp", "SecurityToken", "ClientToken", "RegionId", "AcceptLanguage", "SourceIp",
    "SecureTransport", "AppIp",
}  # fmt: skip
