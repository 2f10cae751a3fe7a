"""SSH key pairs."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_minutes
from localcloud.api.errors import ApiError, not_found
from localcloud.api.registry import read, write
from localcloud.api.store import Doc


def need_key_pair(call: Call, name: str) -> Doc:
    """The key pair of this name in the region of the request."""
    return call.store.need("key_pair", f"{call.region}/{name}", not_found("InvalidKeyPairName.NotFound", "KeyPairName"))


def _fingerprint(public_key: str) -> str:
    try:
        kind, data = public_key.split()[:2]
        raw = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        raise ApiError(400, "InvalidPublicKeyBody.Malformed", "The specified PublicKeyBody is not valid.") from None
    if not kind.startswith(("ssh-", "ecdsa-", "sk-")) or len(raw) < 32:
        raise ApiError(400, "InvalidPublicKeyBody.Malformed", "The specified PublicKeyBody is not valid.")
    return hashlib.md5(raw, usedforsecurity=False).hexdigest()  # the form of fingerprint that the service shows


def _add(call: Call, public_key: str) -> Doc:
    params = call.params
    name = params.require("KeyPairName")
    if call.store.get("key_pair", f"{call.region}/{name}"):
        raise ApiError(400, "KeyPair.AlreadyExist", "The key pair already exist.")
    doc = {
        "id": f"{call.region}/{name}",
        "region": call.region,
        "name": name,
        "public_key": public_key.strip(),
        "fingerprint": _fingerprint(public_key),
        "created": call.now,
        "resource_group": params.text("ResourceGroupId", "rg-acfm-default"),
        "tags": params.tags(),
    }
    call.store.insert("key_pair", doc)
    return doc


@write("ecs", "CreateKeyPair", "RegionId KeyPairName! ResourceGroupId Tag.N.{Key Value}")
def create_key_pair(call: Call) -> dict[str, Any]:
    """Make a key pair; the private key is in this answer only."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    doc = _add(call, public.decode())
    return {
        "KeyPairId": f"ssh-{doc['fingerprint'][:18]}",
        "KeyPairName": doc["name"],
        "KeyPairFingerPrint": doc["fingerprint"],
        "PrivateKeyBody": private.decode(),
    }


@write("ecs", "ImportKeyPair", "RegionId KeyPairName! PublicKeyBody! ResourceGroupId Tag.N.{Key Value}")
def import_key_pair(call: Call) -> dict[str, Any]:
    """Keep a public key under a name."""
    doc = _add(call, call.params.require("PublicKeyBody"))
    return {"KeyPairName": doc["name"], "KeyPairFingerPrint": doc["fingerprint"]}


@read(
    "ecs",
    "DescribeKeyPairs",
    "RegionId KeyPairName KeyPairFingerPrint ResourceGroupId IncludePublicKey PageNumber PageSize MaxResults "
    "NextToken Tag.N.{Key Value}",
)
def describe_key_pairs(call: Call) -> dict[str, Any]:
    """Key pairs by name and tags."""
    name = call.params.text("KeyPairName")
    exact = None if not name or "*" in name else [f"{call.region}/{name}"]
    docs, page = call.listing("key_pair", {"region": call.region}, ids=exact, max_size=50, tags=call.params.tags())
    views = [
        {
            "KeyPairName": doc["name"],
            "KeyPairFingerPrint": doc["fingerprint"],
            "CreationTime": iso_minutes(doc["created"]),
            "ResourceGroupId": doc["resource_group"],
            "PublicKey": doc["public_key"] if call.params.flag("IncludePublicKey") else "",
            "Tags": tag_list(doc),
        }
        for doc in docs
        if "*" not in name or name.strip("*") in doc["name"]
    ]
    return {"KeyPairs": {"KeyPair": views}, **page}


@write("ecs", "DeleteKeyPairs", "RegionId KeyPairNames!")
def delete_key_pairs(call: Call) -> dict[str, Any]:
    """Delete key pairs that no instance is bound to; unknown names are not an error."""
    for name in call.params.json_texts("KeyPairNames"):
        if call.store.count("instance", {"key_pair": name, "region": call.region}):
            raise ApiError(400, "DependencyViolation", f"The key pair {name} is bound to instances.")
        call.store.delete("key_pair", f"{call.region}/{name}")
    return {}


def _instances(call: Call) -> list[Doc]:
    return [
        call.store.need("instance", instance_id, not_found("InvalidInstanceId.NotFound", "InstanceId"))
        for instance_id in call.params.json_texts("InstanceIds")
    ]


def _results(name: str, docs: list[Doc]) -> dict[str, Any]:
    return {
        "KeyPairName": name,
        "TotalCount": str(len(docs)),
        "FailCount": "0",
        "Results": {
            "Result": [
                {"InstanceId": doc["id"], "Success": "true", "Code": "200", "Message": "successful"} for doc in docs
            ]
        },
    }


@write("ecs", "AttachKeyPair", "RegionId KeyPairName! InstanceIds!")
def attach_key_pair(call: Call) -> dict[str, Any]:
    """Bind a key pair to instances (it reaches a running one at its next start)."""
    name = call.params.require("KeyPairName")
    need_key_pair(call, name)
    docs = _instances(call)
    for doc in docs:
        doc["key_pair"] = name
        call.store.update("instance", doc)
    return _results(name, docs)


@write("ecs", "DetachKeyPair", "RegionId KeyPairName! InstanceIds!")
def detach_key_pair(call: Call) -> dict[str, Any]:
    """Unbind a key pair from instances."""
    name = call.params.require("KeyPairName")
    need_key_pair(call, name)
    docs = _instances(call)
    for doc in docs:
        if doc["key_pair"] == name:
            doc["key_pair"] = ""
            call.store.update("instance", doc)
    return _results(name, docs)
