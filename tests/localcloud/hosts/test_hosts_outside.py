"""Hosts whose vSwitch has NAT, and the way from hosts to the API server."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host_cloud import Cloud

from localcloud.hosts.reset import leftovers, reset

pytestmark = pytest.mark.hosts

EIP = "198.18.1.10"


class _Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = b"%s %s" % (self.headers["Host"].encode(), body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def outside(hosts_possible: None, ssh_key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state_dir = tmp_path_factory.mktemp("outside")
    cloud = Cloud(state_dir, ssh_key, api_port=server.server_port)
    cloud.adopt()
    cloud.add_vpc("nat", "10.91.0.0/24", nat=True)
    cloud.add_vpc("nonat", "10.91.1.0/24")
    cloud.add_host("a", "vpc-nat", "10.91.0.10", eip=EIP)
    cloud.add_host("b", "vpc-nat", "10.91.0.11")
    cloud.wait_ssh(EIP)
    cloud.wait_ssh("10.91.0.11", through=EIP)
    yield cloud
    cloud.backend.close()
    server.shutdown()
    server.server_close()
    reset(state_dir, data=True)
    assert leftovers(state_dir) == ()


def test_api_is_reached_by_its_name(outside: Cloud) -> None:
    answer = outside.ssh(EIP, "curl -sf -d Action=DescribeInstances http://ecs.cn-hangzhou.aliyuncs.com/")
    assert answer == "ecs.cn-hangzhou.aliyuncs.com Action=DescribeInstances"


def test_only_the_api_port_of_the_machine_is_reached(outside: Cloud) -> None:
    assert outside.ssh(EIP, "curl -s -m 2 http://100.100.2.150:22/; echo $?") in ("7", "28")


def test_names_of_the_outside_resolve_with_nat(outside: Cloud) -> None:
    # Answered by this machine's resolver; where that knows no names, the answer says so in time.
    code = outside.ssh("10.91.0.11", "timeout 20 getent hosts deb.debian.org >/dev/null; echo $?", through=EIP)
    assert code in ("0", "2")


def test_private_networks_stay_closed_with_nat(outside: Cloud) -> None:
    for address in ("10.1.2.3", "192.168.1.1", "169.254.169.254", "10.91.1.10"):
        # 7: refused at once by the VPC's router; 28: dropped
        assert outside.ssh(EIP, f"curl -s -m 2 http://{address}/; echo $?") in ("7", "28")
