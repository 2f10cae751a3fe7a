"""Clients that are slow, many, or send what is no request: the server answers the others and keeps its memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import h11
import httpx
import pytest
import uvicorn
from test_api_protocol import error, post, signed

from localcloud.api import app, connection
from localcloud.api.client import LocalCloud


def address(cloud: LocalCloud) -> tuple[str, int]:
    host, _, port = cloud.endpoint.rpartition(":")
    return host, int(port)


def memory_kib(cloud: LocalCloud, what: str = "VmRSS") -> int:
    text = Path(f"/proc/{cloud.record.pid}/status").read_text()
    return int(text.split(f"{what}:")[1].split()[0])


def raw(cloud: LocalCloud, data: bytes, *, end: bool = True) -> bytes:
    """What the server answers to bytes."""
    with socket.create_connection(address(cloud), timeout=40) as client:
        client.sendall(data)
        if end:
            client.shutdown(socket.SHUT_WR)
        answer = b""
        while part := client.recv(65536):
            answer += part
    return answer


def head(length: int, extra: str = "") -> bytes:
    return (
        f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {length}\r\n{extra}\r\n"
    ).encode()


# -- no request --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"Action=DescribeRegions&Action=DescribeZones",
        b"Action=%FF%FE",
        b"Action=\xff\xfe",
        b"Action=Describe%00Regions",
        b"%00=1&Action=DescribeRegions",
        b"&".join(b"a%d=1" % number for number in range(5000)),
    ],
    ids=["twice", "not UTF-8", "raw bytes", "NUL", "NUL in a name", "many"],
)
def test_forms_that_are_none(cloud: LocalCloud, body: bytes) -> None:
    for response in (
        httpx.post(
            cloud.url,
            content=body,
            headers={"content-type": "application/x-www-form-urlencoded"},
            trust_env=False,
        ),
        httpx.get(cloud.url, headers={"x-acs-action": "DescribeRegions"}, trust_env=False),
    ):
        status, code = error(response)
        assert status == 400
        assert code in ("InvalidParameter", "MissingVersion")


@pytest.mark.parametrize("query", ["Action=a&Action=b", "Action=%C3%28", "Action=x%00"])
def test_queries_that_are_none(cloud: LocalCloud, query: str) -> None:
    answer = raw(cloud, f"GET /?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["Code"] == "InvalidParameter"


@pytest.mark.parametrize(
    "body",
    [
        '{"InstanceName": "\\ud800"}',
        '{"InstanceName": "a\\u0000b"}',
        '{"\\udfff": 1}',
        '{"Amount": 1' + "0" * 5000 + "}",
    ],
    ids=["half a pair", "NUL", "half a pair in a name", "large number"],
)
def test_json_that_cannot_be_kept(cloud: LocalCloud, body: str) -> None:
    headers = {"content-type": "application/json", "x-acs-action": "RunInstances", "x-acs-version": "2014-05-26"}
    assert error(httpx.post(cloud.url, content=body, headers=headers, trust_env=False)) == (400, "InvalidParameter")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", b"400"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n", b"400"),
        (b"BREW / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"405"),
        (b"GET /etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"404"),
    ],
    ids=["negative length", "two lengths", "bad chunk", "long head", "method", "path"],
)
def test_http_that_is_none(cloud: LocalCloud, data: bytes, status: bytes) -> None:
    answer = raw(cloud, data)
    assert answer == b"" or answer.split()[1] == status  # a broken body may end the connection without an answer
    assert post(cloud, signed(cloud, "DescribeRegions")).status_code == 200


def test_a_body_that_is_far_too_large_is_not_read(cloud: LocalCloud) -> None:
    answer = raw(cloud, head(10**12), end=False)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"RequestEntityTooLarge" in answer


def test_names_and_values_do_not_fill_the_log_of_calls(cloud: LocalCloud) -> None:
    since = cloud.calls()[-1]["number"] if cloud.calls() else 0
    long = "x" * 200_000
    post(cloud, signed(cloud, long, **{long: long}))
    (record,) = cloud.calls(since=since)
    assert len(json.dumps(record)) < 2000


# -- many and slow -----------------------------------------------------------------------------------------------


def test_five_hundred_connections_at_once(cloud: LocalCloud) -> None:
    before = memory_kib(cloud)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(address(cloud), timeout=60)) for _ in range(500)]
        for client in clients:  # all have begun, none has finished
            body = urlencode(signed(cloud, "DescribeRegions")).encode()
            client.sendall(head(len(body)) + body[:10])
        assert post(cloud, signed(cloud, "DescribeRegions")).status_code == 200
        assert memory_kib(cloud) - before < 60_000
        for client in clients:
            client.close()

    def one(_: int) -> int:
        return post(cloud, signed(cloud, "DescribeRegions")).status_code

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(one, range(200))) == {200}
    assert memory_kib(cloud) - before < 60_000


def test_bodies_that_never_end_are_bounded_together(cloud: LocalCloud) -> None:
    """Each is within its limit, all of them together are not: late ones are told to come again."""
    before = memory_kib(cloud)
    refused = 0
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(40):
            client = stack.enter_context(socket.create_connection(address(cloud), timeout=5))
            clients.append(client)
            with contextlib.suppress(OSError):
                client.sendall(head(app.MAX_BODY) + b"a=" + b"x" * (app.MAX_BODY - 1000))
        for client in clients:
            client.settimeout(0.05)
            with contextlib.suppress(OSError):
                refused += b"ServiceUnavailable" in client.recv(4096)
        assert refused >= 20
        assert memory_kib(cloud) - before < 110_000
        assert post(cloud, signed(cloud, "DescribeRegions")).status_code in (200, 503)
    deadline = time.monotonic() + 10
    while post(cloud, signed(cloud, "DescribeRegions")).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, uvicorn.Server]]:
    """A small server in this process with the same connections and short times, with its port."""
    monkeypatch.setattr(connection, "HEADER_TIME", 0.4)
    monkeypatch.setattr(connection, "READ_TIME", 0.4)

    async def big(scope: dict[str, str], receive: Callable[[], object], send: Callable[..., object]) -> None:
        size = 50_000_000 if scope["path"] == "/big" else 2
        headers = [(b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[misc]
        await send({"type": "http.response.body", "body": b"x" * size})  # type: ignore[misc]

    config = uvicorn.Config(big, log_config=None, lifespan="off", http=connection.Connection)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    yield listener.getsockname()[1], server
    server.should_exit = True
    thread.join(10)


def test_a_head_that_drips_is_dropped(impatient: tuple[int, uvicorn.Server]) -> None:
    with socket.create_connection(("127.0.0.1", impatient[0]), timeout=10) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        started = time.monotonic()
        with contextlib.suppress(OSError):
            for _ in range(100):
                client.sendall(b"X: y\r\n")
                time.sleep(0.05)
        assert 0.2 < time.monotonic() - started < 4


def test_silence_is_dropped_and_a_second_request_may_come_later(impatient: tuple[int, uvicorn.Server]) -> None:
    with socket.create_connection(("127.0.0.1", impatient[0]), timeout=10) as client:
        for _ in range(2):
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"\r\n\r\nxx"):
                answer += client.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            time.sleep(0.7)  # idle between two requests is not slowness
        client.sendall(b"GET / HT")  # a second head that never ends
        with contextlib.suppress(ConnectionError):
            assert client.recv(4096) == b""


def test_a_client_that_does_not_read_is_dropped(impatient: tuple[int, uvicorn.Server]) -> None:
    with socket.create_connection(("127.0.0.1", impatient[0]), timeout=10) as client:
        client.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(4096)
        deadline = time.monotonic() + 10
        while impatient[1].server_state.connections:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_tls_that_stops_in_the_middle_holds_nobody_up(cloud: LocalCloud) -> None:
    with socket.create_connection(address(cloud), timeout=10) as half:
        half.sendall(b"\x16\x03\x01\x02\x00")
        context = ssl.create_default_context(cafile=cloud.record.trust_file)
        with httpx.Client(verify=context, trust_env=False) as client:
            response = client.post(cloud.url.replace("http:", "https:"), data=signed(cloud, "DescribeRegions"))
        assert response.status_code == 200


# -- numbers and tokens --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["1" + "0" * 30, "-1", "0", "1_0", "\u0663", "1e3", " 1", "0x1", "9" * 5000, "2147483648"]
)
def test_page_numbers(cloud: LocalCloud, value: str) -> None:
    assert error(post(cloud, signed(cloud, "DescribeInstances", PageNumber=value))) == (
        400, "InvalidParameter.PageNumber",
    )  # fmt: skip


def test_a_page_far_beyond_the_last_is_empty(cloud: LocalCloud) -> None:
    answer = post(cloud, signed(cloud, "DescribeInstances", PageNumber=str(2**31 - 1), PageSize="100")).json()
    assert answer["Instances"]["Instance"] == []


@pytest.mark.parametrize("token", ["x", "////", "c2VxOjE=", "\u00e9", "0f" * 16, "A" * 5000])
def test_tokens_that_nobody_gave_out(cloud: LocalCloud, token: str) -> None:
    assert error(post(cloud, signed(cloud, "DescribeInstances", NextToken=token))) == (
        400, "InvalidParameter.NextToken",
    )  # fmt: skip


def test_h11_still_has_the_states_that_the_connection_looks_at() -> None:
    parser = h11.Connection(h11.SERVER)
    assert parser.their_state is h11.IDLE
    parser.receive_data(b"GET / HT")
    assert parser.next_event() is h11.NEED_DATA
    assert parser.their_state is h11.IDLE
    assert parser.trailing_data[0]
    parser.receive_data(b"TP/1.1\r\nHost: x\r\n\r\n")
    assert isinstance(parser.next_event(), h11.Request)
    assert parser.their_state is not h11.IDLE
