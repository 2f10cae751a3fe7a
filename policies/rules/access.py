"""How instances are reached and what they may do: keys, metadata tokens, public addresses, RAM policies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from policies import kinds
from policies.model import Config, Resource, Rule, Setting, Severity, Stack, Violation, each
from policies.props import UNKNOWN, Props, UnverifiedError

_TEXTS = {"type": "array", "items": {"type": "string"}}
_TOKENS = (kinds.INSTANCE, *kinds.TEMPLATES)


def no_password(resource: Resource, config: Config) -> Iterator[str]:
    """Passwords of instances. Their value is never shown."""
    props = resource.props
    for key in ("password", "kmsEncryptedPassword"):
        if props.has(key):
            yield f"{key} is set; log in with a key pair"
    if props.flag("passwordInherit", False):
        yield "passwordInherit takes over the password of the image"


def has_key(resource: Resource, config: Config) -> Iterator[str]:
    """Instances without a key pair."""
    key = "keyPairName" if resource.type in kinds.TEMPLATES else "keyName"
    if not resource.props.has(key):
        yield f"{key} is not given"


def metadata_tokens(resource: Resource, config: Config) -> Iterator[str]:
    """Metadata that every program, and every request that is forwarded by one, may read without a token."""
    props = resource.props
    if props.text("httpEndpoint", "enabled") != "disabled" and props.text("httpTokens", "optional") != "required":
        yield "httpTokens is not `required`: the role's credentials can be read without a token"


def require_tokens(resource: Resource, config: Config) -> Mapping[str, Any] | None:
    """Ask for tokens; an instance takes that over while it runs."""
    values = resource.props.values
    if values.get("httpTokens") in (UNKNOWN, "required") or values.get("httpEndpoint") in (UNKNOWN, "disabled"):
        return None
    return {"httpEndpoint": "enabled", "httpTokens": "required"}


def public_address(resource: Resource, config: Config) -> Iterator[str]:
    """Public addresses of anything but what the roles allow."""
    props = resource.props
    if resource.type == kinds.POOL:
        if props.flag("publicIp", False):
            yield "the pool gives its nodes public addresses"
        return
    allowed = {str(role) for role in config["roles"]}
    if kinds.role(resource) in allowed and resource.type != kinds.SCALING:
        return
    if (props.number("internetMaxBandwidthOut") or 0) > 0:
        yield f"internetMaxBandwidthOut above 0 gives it a public address; only {_listed(allowed)} may have one"
    if props.flag("allocatePublicIp", False):
        yield f"allocatePublicIp gives it a public address; only {_listed(allowed)} may have one"


def bound_address(stack: Stack, config: Config) -> Iterator[Violation]:
    """Elastic addresses of instances that may have none."""
    allowed = {str(role) for role in config["roles"]}
    by_id = {str(one.props.values.get("id")): one for one in stack.of(kinds.INSTANCE, kinds.INTERFACE)}

    def check(resource: Resource) -> Iterator[str]:
        props = resource.props
        if props.text("instanceType", "EcsInstance") not in ("EcsInstance", "NetworkInterface"):
            return
        sources = [stack.by_urn[urn] for urn in resource.sources.get("instanceId", ()) if urn in stack.by_urn]
        owners = [one for one in sources if one.type in (kinds.INSTANCE, kinds.INTERFACE)]
        if not owners and (known := by_id.get(props.text("instanceId"))):
            owners = [known]
        if not owners:
            yield "could not be verified: the instance that gets the address is not one of this stack"
        for owner in owners:
            if (role := kinds.role(owner)) not in allowed:
                yield f"{owner.name} has the role {role or '(none)'}; only {_listed(allowed)} may have an address"

    yield from each(stack.of(kinds.ADDRESS_BINDING), check)


def _listed(roles: Iterable[str]) -> str:
    return " and ".join(sorted(roles)) or "nothing"


def ram_actions(resource: Resource, config: Config) -> Iterator[str]:
    """Policies that allow more than single actions."""
    props = resource.props
    for action in dict.fromkeys(_allowed_actions(props)):
        if "*" in action and action not in config["allowed"]:
            yield f"the policy allows `{action}`; name single actions"


def _allowed_actions(props: Props) -> Iterator[str]:
    for key in ("policyDocument", "document"):
        if text := props.text(key):
            try:
                document = json.loads(text)
                statements = document["Statement"]
            except (ValueError, KeyError, TypeError):
                raise UnverifiedError(key, "is no policy document") from None
            for statement in [statements] if isinstance(statements, Mapping) else statements:
                yield from _actions(statement, key)
    for statement_props in props.parts("statements"):
        if statement_props.text("effect", "Allow") == "Allow":
            yield from statement_props.texts("actions")


def _actions(statement: Any, key: str) -> Iterator[str]:
    if not isinstance(statement, Mapping):
        raise UnverifiedError(key, "has a statement that is no object")
    if statement.get("Effect", "Allow") != "Allow":
        return
    if "NotAction" in statement:
        yield "NotAction: * but some"
    actions = statement.get("Action", [])
    for action in [actions] if isinstance(actions, str) else actions:
        yield str(action)


def ram_attachments(resource: Resource, config: Config) -> Iterator[str]:
    """The cloud's own wide policies."""
    props = resource.props
    if props.text("policyType", "Custom") != "System":
        return
    name = props.text("policyName")
    if name not in config["allowed"] and (name == "AdministratorAccess" or name.endswith("FullAccess")):
        yield f"{name} allows everything of a product or of the account"


RULES = (
    Rule(
        name="hpc-keys-not-passwords",
        code="HPC740",
        severity=Severity.HIGH,
        types=kinds.MAKERS,
        checks=(no_password, has_key),
    ),
    Rule(
        name="hpc-metadata-tokens",
        code="HPC741",
        severity=Severity.HIGH,
        types=_TOKENS,
        checks=(metadata_tokens,),
        remedy=require_tokens,
    ),
    Rule(
        name="hpc-no-public-address",
        code="HPC742",
        severity=Severity.HIGH,
        types=(kinds.POOL, *kinds.MAKERS),
        settings={"roles": Setting(_TEXTS, ["login"], "Roles whose instances may have a public address.")},
        checks=(public_address,),
    ),
    Rule(
        name="hpc-no-elastic-address",
        code="HPC743",
        severity=Severity.HIGH,
        types=(kinds.ADDRESS_BINDING,),
        settings={"roles": Setting(_TEXTS, ["login"], "Roles whose instances may have an elastic address.")},
        stack_check=bound_address,
    ),
    Rule(
        name="hpc-ram-actions",
        code="HPC744",
        severity=Severity.CRITICAL,
        types=(kinds.RAM_POLICY,),
        settings={"allowed": Setting(_TEXTS, [], "Actions with a wildcard that are accepted, as they are written.")},
        checks=(ram_actions,),
    ),
    Rule(
        name="hpc-ram-system-policies",
        code="HPC745",
        severity=Severity.CRITICAL,
        types=kinds.RAM_ATTACHMENTS,
        settings={"allowed": Setting(_TEXTS, [], "Names of wide system policies that are accepted.")},
        checks=(ram_attachments,),
    ),
)
