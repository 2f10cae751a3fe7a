"""An OpenID Connect issuer on this machine, as a CI system has one: public keys over HTTP, tokens for jobs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

AUDIENCE = "sts.aliyuncs.com"
SUBJECT = "repo:owner/repository:environment:prod"


class Issuer:
    """An issuer with one key; `broken` makes its answers useless."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.asked = 0
        self.broken = False

    def document(self, path: str) -> dict[str, Any]:
        self.asked += 1
        if self.broken:
            return {"oops": True}
        if path.endswith("/openid-configuration"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]}

    def token(self, *, kid: str = "one", key: Any = None, **claims: Any) -> str:
        """A token; a claim of None is left out."""
        now = int(time.time())
        said = {"iss": self.url, "aud": AUDIENCE, "sub": SUBJECT, "iat": now, "exp": now + 600, **claims}
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, key or self.key, algorithm="ES256", headers={"kid": kid})


@contextmanager
def running() -> Iterator[Issuer]:
    """An issuer that answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(issuer.document(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = Issuer(f"http://127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield issuer
        server.shutdown()


def trust(provider_arn: str, **conditions: Any) -> str:
    """The trust policy that docs/policies/README.md shows."""
    equals = {"oidc:aud": [AUDIENCE], "oidc:sub": [SUBJECT], **conditions}
    statement = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Federated": [provider_arn]},
        "Condition": {"StringEquals": equals},
    }
    return json.dumps({"Version": "1", "Statement": [statement]})
