"""A small HTTP server that answers as the cloud's APIs do, from bodies that the SDK's own models have shaped."""

from __future__ import annotations

import importlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Answer = dict[str, Any]
Handler = Callable[[dict[str, str]], Answer]

_PACKAGES = {
    "DescribeInstanceTypes": "alibabacloud_ecs20140526.models",
    "DescribeAvailableResource": "alibabacloud_ecs20140526.models",
    "DescribePrice": "alibabacloud_ecs20140526.models",
    "DescribeSpotPriceHistory": "alibabacloud_ecs20140526.models",
    "DescribePricingModule": "alibabacloud_bssopenapi20171214.models",
    "GetPayAsYouGoPrice": "alibabacloud_bssopenapi20171214.models",
}


class RecordedError(Exception):
    """An error answer of the API."""

    def __init__(self, status: int, code: str, message: str = "told by the test") -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message


class RecordedApi:
    """Handlers by action, and what was asked."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.calls: Counter[str] = Counter()
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.address = ""

    def answer(self, action: str, parameters: dict[str, str]) -> tuple[int, Answer]:
        self.calls[action] += 1
        self.requests.append((action, parameters))
        try:
            body = self.handlers[action](parameters)
        except RecordedError as error:
            return error.status, {"RequestId": "r", "Code": error.code, "Message": error.message}
        model = getattr(importlib.import_module(_PACKAGES[action]), f"{action}ResponseBody")
        shaped = model().from_map(body).to_map()
        assert shaped == body, f"the SDK's model of {action} does not know all keys of the recorded answer"
        return 200, shaped


@contextmanager
def serving(api: RecordedApi) -> Iterator[RecordedApi]:
    """Serve the API on a free port of the loopback interface."""

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = dict(parse_qsl(urlsplit(self.path).query))
            length = int(self.headers.get("Content-Length") or 0)
            query.update(parse_qsl(self.rfile.read(length).decode()))
            action = self.headers.get("x-acs-action") or query.get("Action", "")
            status, body = api.answer(action, query)
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    api.address = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
