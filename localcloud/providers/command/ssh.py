"""SSH as the command provider needs it: key only, through a proxy where asked, with retries until the host answers."""

from __future__ import annotations

import base64
import io
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paramiko

from localcloud.providers.servicer import ProviderError

#: Defaults of the real provider's `connection` input.
DIAL_ERROR_LIMIT = 10
PER_DIAL_TIMEOUT_S = 15
_MAX_WAIT_S = 5.0


def _private_key(text: str, password: str | None) -> paramiko.PKey:
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(text), password=password)
        except (paramiko.SSHException, ValueError):
            continue
    raise ProviderError("the private key of the connection is in no known format")


def _connect(where: Mapping[str, Any], through: paramiko.SSHClient | None) -> paramiko.SSHClient:
    host, port = str(where["host"]), int(where.get("port") or 22)
    timeout = float(where.get("perDialTimeout") or PER_DIAL_TIMEOUT_S)
    client = paramiko.SSHClient()
    if where.get("hostKey"):
        kind, body = str(where["hostKey"]).split()[:2]
        key = paramiko.PKey.from_type_string(kind, base64.b64decode(body))
        client.get_host_keys().add(host if port == 22 else f"[{host}]:{port}", kind, key)
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
    else:
        # A host that has just been made has a key that nobody knows yet; give hostKey to pin it.
        client.set_missing_host_key_policy(paramiko.AutoAddPolicy())  # noqa: S507
    channel = None
    if through is not None:
        transport = through.get_transport()
        assert transport is not None  # noqa: S101  a connected client has one
        channel = transport.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout)
    client.connect(
        host,
        port=port,
        username=str(where.get("user") or "root"),
        pkey=_private_key(str(where["privateKey"]), where.get("privateKeyPassword")),
        sock=channel,
        timeout=timeout,
        banner_timeout=timeout,
        auth_timeout=timeout,
        allow_agent=False,
        look_for_keys=False,
    )
    return client


@contextmanager
def connected(connection: Mapping[str, Any]) -> Iterator[paramiko.SSHClient]:
    """A connected client; tries again while the host does not answer, `dialErrorLimit` times (0: for ever).

    Raises:
        ProviderError: the host cannot be reached or refuses the key.
    """
    limit = int(connection.get("dialErrorLimit", DIAL_ERROR_LIMIT))
    tries = 0
    while True:
        proxy = None
        try:
            if connection.get("proxy"):
                proxy = _connect(connection["proxy"], None)
            client = _connect(connection, proxy)
            break
        except (TimeoutError, OSError, EOFError, paramiko.SSHException) as error:
            if proxy:
                proxy.close()
            tries += 1
            if limit and tries >= limit:
                raise ProviderError(f"{connection['host']}: no SSH after {tries} tries: {error}") from error
            time.sleep(min(_MAX_WAIT_S, 0.5 * 2 ** min(tries, 4)))
    try:
        yield client
    finally:
        client.close()
        if proxy:
            proxy.close()


def run(
    connection: Mapping[str, Any], command: str, environment: Mapping[str, str], stdin: str | None
) -> tuple[str, str]:
    """Run a command; standard output and standard error without the last line end.

    Raises:
        ProviderError: it cannot be run, or ends with another code than 0; the end of its output is in the message.
    """
    with connected(connection) as client:
        transport = client.get_transport()
        assert transport is not None  # noqa: S101
        channel = transport.open_session()
        for name, value in environment.items():
            try:
                channel.set_environment_variable(name, value)
            except paramiko.SSHException as error:
                raise ProviderError(
                    f"sshd on {connection['host']} does not take the environment variable {name} (AcceptEnv)"
                ) from error
        channel.exec_command(command)
        if stdin:
            channel.sendall(stdin.encode())
        channel.shutdown_write()
        stdout, stderr = _drain(channel)
        code = channel.recv_exit_status()
    if code:
        tail = (stderr or stdout)[-4000:]
        raise ProviderError(f"{connection['host']}: the command ended with exit code {code}:\n{tail}")
    return stdout.removesuffix("\n"), stderr.removesuffix("\n")


def _drain(channel: paramiko.Channel) -> tuple[str, str]:
    out, err = bytearray(), bytearray()
    while True:
        busy = False
        while channel.recv_ready():
            out += channel.recv(65536)
            busy = True
        while channel.recv_stderr_ready():
            err += channel.recv_stderr(65536)
            busy = True
        if not busy:
            if channel.exit_status_ready() and not channel.recv_ready() and not channel.recv_stderr_ready():
                return out.decode(errors="replace"), err.decode(errors="replace")
            time.sleep(0.02)


def copy(connection: Mapping[str, Any], source: Path, target: str) -> None:
    """Copy a file or a folder to `target`, into it where it is an existing folder.

    Raises:
        ProviderError: the copy is not possible.
    """
    with connected(connection) as client, client.open_sftp() as sftp:
        try:
            is_folder = stat.S_ISDIR(sftp.stat(target).st_mode or 0)
            exists = True
        except FileNotFoundError:
            is_folder = exists = False
        if source.is_dir() and exists and not is_folder:
            raise ProviderError(f"{target} on {connection['host']} is a file; a folder cannot be copied over it")
        destination = f"{target.rstrip('/')}/{source.name}" if is_folder else target
        try:
            _put(sftp, source, destination)
        except OSError as error:
            raise ProviderError(f"copy to {connection['host']}:{destination}: {error}") from error


def _put(sftp: paramiko.SFTPClient, source: Path, target: str) -> None:
    if source.is_dir():
        try:
            sftp.stat(target)
        except FileNotFoundError:
            sftp.mkdir(target)
        for item in sorted(source.iterdir()):
            _put(sftp, item, f"{target}/{item.name}")
    else:
        sftp.put(str(source), target)
        sftp.chmod(target, source.stat().st_mode & 0o777)
