"""The database as the machine below needs it: hosts, the whole network, metadata of an instance."""

from __future__ import annotations

import base64
import ipaddress
from datetime import UTC, datetime

from localcloud.api import credentials
from localcloud.api.clock import moment
from localcloud.api.offers import Offers
from localcloud.api.store import Doc, Store
from localcloud.contracts import (
    Eip,
    Host,
    Metadata,
    MountTarget,
    Network,
    RoleCredentials,
    SecurityGroup,
    SecurityRule,
    VSwitchNet,
)


def host(doc: Doc) -> Host:
    """An instance document as a host."""
    return Host(
        instance_id=doc["id"],
        hostname=doc["hostname"].lower(),
        vpc_id=doc["vpc_id"],
        vswitch_id=doc["vswitch_id"],
        private_ip=doc["private_ip"],
        mac=doc["mac"],
        security_group_ids=tuple(doc["security_group_ids"]),
        vcpus=doc["vcpus"],
        memory_mib=doc["memory_mib"],
        image_id=doc["image_id"],
        system_disk_id=doc["system_disk_id"],
    )


def _rule(doc: Doc) -> SecurityRule | None:
    if doc.get("cidr") and ":" in doc["cidr"]:
        return None  # the hosts have IPv4 only
    return SecurityRule(
        direction=doc["direction"],
        protocol=doc["protocol"],
        port_range=doc["port_range"],
        cidr=doc.get("cidr") or None,
        group_id=doc.get("peer_group_id") or None,
        accept=doc["policy"].lower() == "accept",
        priority=doc["priority"],
    )


def network(store: Store) -> Network:
    """Everything that decides which packet may go where."""
    with store.lock:
        vswitches = store.find("vswitch")
        groups = store.find("security_group")
        rules: dict[str, list[SecurityRule]] = {}
        for doc in store.find("rule"):
            if rule := _rule(doc):
                rules.setdefault(doc["group_id"], []).append(rule)
        eips = store.find("eip")
        snats = store.find("snat")
        access: dict[str, list[Doc]] = {}
        for doc in store.find("access_rule"):
            access.setdefault(doc["access_group_id"], []).append(doc)
        targets = store.find("mount_target")
        systems = {doc["id"]: doc for doc in store.find("file_system")}
        instances = store.find("instance")
    nat: set[str] = set()
    for entry in snats:
        if entry.get("vswitch_id"):
            nat.add(entry["vswitch_id"])
        elif entry.get("source_cidr"):
            source = ipaddress.ip_network(entry["source_cidr"])
            nat.update(
                doc["id"]
                for doc in vswitches
                if doc["vpc_id"] == entry["vpc_id"] and source.overlaps(ipaddress.ip_network(doc["cidr"]))
            )
    return Network(
        vswitches=tuple(VSwitchNet(doc["id"], doc["vpc_id"], doc["zone"], doc["cidr"]) for doc in vswitches),
        security_groups=tuple(
            SecurityGroup(
                doc["id"],
                doc["vpc_id"],
                doc["inner_access"] == "Accept",
                tuple(sorted(rules.get(doc["id"], []), key=lambda rule: rule.priority)),
            )
            for doc in groups
        ),
        eips=tuple(
            Eip(
                doc["id"],
                doc["address"],
                instance if (instance := doc.get("instance_id", "")).startswith("i-") else None,
            )
            for doc in eips
        ),
        nat_vswitches=tuple(sorted(nat)),
        mount_targets=tuple(
            MountTarget(
                domain=doc["domain"],
                file_system_id=doc["file_system_id"],
                vpc_id=doc["vpc_id"],
                export="/share" if systems[doc["file_system_id"]]["fs_type"] == "extreme" else "/",
                allowed_cidrs=tuple(rule["source"] for rule in access.get(doc["access_group_id"], [])),
                read_only_cidrs=tuple(
                    rule["source"] for rule in access.get(doc["access_group_id"], []) if rule["rw"] == "RDONLY"
                ),
            )
            for doc in targets
            if doc["status"] == "Active"
        ),
        hosts=tuple(host(doc) for doc in instances),
    )


class Source:
    """Answers the metadata service from the database (any thread)."""

    def __init__(self, store: Store, offers: Offers, account_id: str) -> None:
        self._store = store
        self._account_id = account_id

    def metadata(self, vpc_id: str, private_ip: str) -> Metadata | None:
        """The instance with this address in this VPC, or None."""
        with self._store.lock:
            found = self._store.find("instance", {"private_ip": private_ip, "vpc_id": vpc_id}, limit=1)
            if not found:
                return None
            doc = found[0]
            vpc = self._store.get("vpc", vpc_id)
            vswitch = self._store.get("vswitch", doc["vswitch_id"])
            key = self._store.get("key_pair", f"{doc['region']}/{doc['key_pair']}") if doc["key_pair"] else None
        if vpc is None or vswitch is None:
            return None
        user_data = self._store.text(doc["user_data"])
        ending = doc.get("reclaim_at")
        return Metadata(
            host=host(doc),
            region_id=doc["region"],
            zone_id=doc["zone"],
            instance_type=doc["instance_type"],
            vpc_cidr=vpc["cidr"],
            vswitch_cidr=vswitch["cidr"],
            user_data=base64.b64decode(user_data),
            public_keys=(key["public_key"],) if key else (),
            token_required=doc["http_tokens"] == "required",
            ram_role=doc["ram_role"] or None,
            spot_termination_time=moment(ending) if ending else None,
            tags=dict(doc["tags"]),
        )

    def role_credentials(self, instance_id: str, role: str) -> RoleCredentials | None:
        """Credentials of the role for six hours if it is bound to the instance, else None."""
        doc = self._store.get("instance", instance_id)
        if doc is None or doc["ram_role"] != role or self._store.get("role", role) is None:
            return None
        now = datetime.now(UTC).timestamp()
        made = credentials.issue(self._store, role=role, session=instance_id, now=now, lifetime=6 * 3600)
        return RoleCredentials(made.access_key_id, made.secret, made.token, moment(made.expires))
