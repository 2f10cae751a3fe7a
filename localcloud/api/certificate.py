"""The certificate of a local cloud: some calls of the real provider insist on HTTPS whatever its settings say.

Such clients have to trust `trust.pem` (Go programs: environment variable SSL_CERT_FILE). It holds this machine's own
bundle, too, so that nothing else stops working for them.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_CERTIFICATE, _KEY, TRUST = "certificate.pem", "certificate.key", "trust.pem"
_LIFE = timedelta(days=825)
_RENEW = timedelta(days=30)


def _private(path: Path, data: bytes) -> None:
    part = path.with_suffix(path.suffix + ".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(data)
    part.replace(path)


def _usable(path: Path, address: str) -> bool:
    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    covered = ipaddress.ip_address(address) in names.get_values_for_type(x509.IPAddress)
    return covered and found.not_valid_after_utc - datetime.now(UTC) > _RENEW


def _make(state: Path, address: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own: the machine's bundle may be another local cloud's, and of two certificates with one name a
    # client tries the first only.
    title = f"local Alibaba Cloud {os.urandom(8).hex()}"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    now = datetime.now(UTC)
    addresses = dict.fromkeys((address, "127.0.0.1", "::1"))
    names = [x509.DNSName("localhost"), *(x509.IPAddress(ipaddress.ip_address(item)) for item in addresses)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _private(state / _KEY, secret)
    _private(state / _CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM))


def tls_context(state: Path, address: str) -> ssl.SSLContext:
    """Server context with the certificate of this state folder, made (again) where needed; writes `trust.pem`.

    Args:
        state: folder of the cloud.
        address: IP address that clients connect to.
    """
    if not _usable(state / _CERTIFICATE, address) or not (state / _KEY).exists():
        _make(state, address)
    system = ssl.get_default_verify_paths().cafile
    bundle = Path(system).read_bytes() if system and Path(system).is_file() else b""
    _private(state / TRUST, bundle + b"\n" + (state / _CERTIFICATE).read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(state / _CERTIFICATE, state / _KEY)
    return context
