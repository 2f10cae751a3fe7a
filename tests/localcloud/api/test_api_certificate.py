"""Clients trust a local cloud also where the machine's own bundle is an earlier local cloud's."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from localcloud.api.certificate import TRUST, tls_context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """TLS without a network: version that both agree on."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[0].version()


def test_two_local_clouds_in_one_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        servers.append(tls_context(tmp_path / name, "127.0.0.1"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name / TRUST))
    client = ssl.create_default_context(cafile=str(tmp_path / "second" / TRUST))
    for server in servers:
        assert handshake(server, client) == "TLSv1.3"
