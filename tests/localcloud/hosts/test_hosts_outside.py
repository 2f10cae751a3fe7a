"""Hosts whose vSwitch has NAT, and the way from hosts to the API server."""

from __future__ import annotations

import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host_cloud import Cloud

from localcloud.hosts import namespaces
from localcloud.hosts.httpd import HttpService, Response
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
    assert outside.ssh(EIP, "curl -s -m 2 http://100.100.2.150:22/; echo $?") == "7"  # refused at once
    assert outside.ssh(EIP, "curl -s -o /dev/null -d x -w %{http_code} http://ecs.aliyuncs.com:443/") == "200"


def test_names_of_the_outside_resolve_with_nat(outside: Cloud) -> None:
    # Answered by this machine's resolver; where that knows no names, the answer says so in time.
    code = outside.ssh("10.91.0.11", "timeout 20 getent hosts deb.debian.org >/dev/null; echo $?", through=EIP)
    assert code in ("0", "2")


@pytest.fixture
def world() -> Iterator[str]:
    """A web server on a network beside this machine, in a namespace of its own; answers with the client's address."""
    name = "alihpc-test-world"
    namespaces.create(name)
    try:
        namespaces.ip_batch(
            [
                f"link add alihpctw type veth peer name eth0 netns {name}",
                "addr add 198.51.100.1/30 dev alihpctw",
                "link set alihpctw up",
            ]
        )
        namespaces.ip_batch(["addr add 198.51.100.2/30 dev eth0", "link set eth0 up"], namespace=name)
        server = HttpService(name, "198.51.100.2", 80, lambda request: Response(200, request.client.encode()))
        yield "http://198.51.100.2/"
        server.close()
    finally:
        subprocess.run(["ip", "link", "delete", "alihpctw"], check=False)
        namespaces.delete(name)


def test_nat_leads_out_under_the_machines_address(outside: Cloud, world: str) -> None:
    assert outside.ssh("10.91.0.11", f"curl -s -m 5 {world}", through=EIP) == "198.51.100.1"
    assert outside.ssh(EIP, f"curl -s -m 5 {world}") == "198.51.100.1"


def test_without_nat_only_an_elastic_address_leads_out(outside: Cloud, world: str) -> None:
    nat = outside.network.nat_vswitches
    outside.change(nat_vswitches=())
    try:
        assert outside.ssh("10.91.0.11", f"curl -s -m 2 {world}; echo $?", through=EIP) == "28"
        assert outside.ssh(EIP, f"curl -s -m 5 {world}") == "198.51.100.1"
    finally:
        outside.change(nat_vswitches=nat)


def test_private_networks_stay_closed_with_nat(outside: Cloud) -> None:
    for address in ("10.1.2.3", "192.168.1.1", "169.254.169.254", "10.91.1.10"):
        # 7: refused at once by the VPC's router; 28: dropped
        assert outside.ssh(EIP, f"curl -s -m 2 http://{address}/; echo $?") in ("7", "28")
