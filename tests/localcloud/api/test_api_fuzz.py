"""Whatever an action gets, it answers, or refuses in the shape of the real API: never a 500, nothing half done."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import oidc_issuer
import pytest
from direct_cloud import IMAGE, Direct
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_api_sdk import POLICY, STEPS, TRUST

from localcloud.api import rpc
from localcloud.api.params import flatten
from localcloud.api.registry import ACTIONS, VERSIONS, Action
from localcloud.api.store.index import INDEXED, attributes

PRODUCTS = {product: version for version, product in VERSIONS.items()}
CODE = re.compile(r"[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9]+)*")


class Anyone(rpc.Authenticator):
    """Takes every caller for the account: the parameters are what is looked at here."""

    def caller(self, request: rpc.Request) -> Any:
        return rpc.Caller("test", self._account_id)


class Fuzzed:
    """A cloud with one of everything, so that generated names can hit something."""

    def __init__(self, state: Path) -> None:
        self.direct = direct = Direct(state)
        server = direct.server
        server._authenticator = Anyone(server.store, "", "", server.account_id)
        vpc, vswitch, group = direct.network()
        first, second = direct.run(vswitch, group, DataDisk_1_Size=40, Amount=2)
        server.advance(10)
        direct.call("ecs", "StopInstance", InstanceId=second)
        server.advance(10)
        nat = direct.call("vpc", "CreateNatGateway", VpcId=vpc, VSwitchId=vswitch)
        table = nat["SnatTableIds"]["SnatTableId"][0]
        eip = direct.call("vpc", "AllocateEipAddress")
        bind = {"InstanceId": nat["NatGatewayId"], "InstanceType": "Nat"}
        direct.call("vpc", "AssociateEipAddress", AllocationId=eip["AllocationId"], **bind)
        entry = {"SnatTableId": table, "SnatIp": eip["EipAddress"], "SourceVSwitchId": vswitch}
        snat = direct.call("vpc", "CreateSnatEntry", **entry)["SnatEntryId"]
        template = direct.call(
            "ecs", "CreateLaunchTemplate", LaunchTemplateName="lt", ImageId=IMAGE, InstanceType="ecs.c8ae.4xlarge"
        )["LaunchTemplateId"]
        direct.call("ecs", "CreateLaunchTemplateVersion", LaunchTemplateId=template, InstanceType="ecs.c7.large")
        direct.call("ecs", "CreateKeyPair", KeyPairName="own")
        extreme = {"FileSystemType": "extreme"}
        direct.call("nas", "CreateAccessGroup", AccessGroupName="g", AccessGroupType="Vpc", **extreme)
        rule = direct.call("nas", "CreateAccessRule", AccessGroupName="g", SourceCidrIp="10.0.0.0/8", **extreme)
        system = direct.call(
            "nas", "CreateFileSystem", StorageType="standard", ProtocolType="NFS", Capacity=100, ZoneId="cn-hangzhou-j",
            **extreme,
        )["FileSystemId"]  # fmt: skip
        server.advance(10)
        target = direct.call(
            "nas", "CreateMountTarget", FileSystemId=system, AccessGroupName="g", NetworkType="Vpc", VpcId=vpc,
            VSwitchId=vswitch,
        )["MountTargetDomain"]  # fmt: skip
        account = server.account_id
        for name in ("role", "made"):
            direct.call("ram", "CreateRole", RoleName=name, AssumeRolePolicyDocument=TRUST)
        direct.call("ram", "CreatePolicy", PolicyName="policy", PolicyDocument=POLICY)
        direct.call("ram", "CreatePolicyVersion", PolicyName="policy", PolicyDocument=POLICY)
        direct.call("ims", "CreateOIDCProvider", OIDCProviderName="ci", IssuerUrl="http://127.0.0.1:1")
        store = server.store
        disk = direct.call("ecs", "CreateDisk", ZoneId="cn-hangzhou-j", Size=40)["DiskId"]
        deployment = direct.call("ecs", "CreateDeploymentSet", Strategy="LowLatency")["DeploymentSetId"]
        other = direct.call("ecs", "CreateSecurityGroup", VpcId=vpc)["SecurityGroupId"]
        interface = direct.call("ecs", "CreateNetworkInterface", VSwitchId=vswitch, SecurityGroupId=group)
        image = direct.call("ecs", "CreateImage", InstanceId=second, ImageName="baked")["ImageId"]
        server.advance(10)
        #: What the names in the steps of the conformance test stand for here.
        self.known = {
            "account": account, "vpc": vpc, "vsw": vswitch, "sg": group, "sg2": other, "i": first, "i2": second,
            "nat": nat["NatGatewayId"], "snats": table, "snat": snat, "eip": eip["AllocationId"],
            "address": eip["EipAddress"], "lt": template, "fs": system, "rule": rule["AccessRuleId"], "target": target,
            "disk": disk, "ds": deployment, "eni": interface["NetworkInterfaceId"], "image": image, "token": "a.b.c",
            "table": store.find("route_table")[0]["id"], "eni0": store.find("eni", {"instance_id": first})[0]["id"],
            "issuer": "https://x", "trust": oidc_issuer.trust(f"acs:ram::{account}:oidc-provider/ci"),
        }  # fmt: skip
        self.names = [*self.known.values(), IMAGE, "ecs.c7.large", "ecs.c8ae.4xlarge", "role", "policy", "own", "ci"]
        self.bases: dict[tuple[str, str], list[dict[str, str]]] = {}
        for product, name, parameters, _ in STEPS:
            text = re.sub(r"\$(\w+)", lambda match: self.known[match.group(1)], json.dumps(parameters).replace(
                '"$trust"', json.dumps(self.known["trust"])
            ))  # fmt: skip
            self.bases.setdefault((product, name.lower()), []).append(dict(flatten(json.loads(text))))

    def ask(self, action: Action, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """The answer over everything but the socket: parsing, dispatch, rendering."""
        form = {
            "Action": action.name, "Version": PRODUCTS[action.product], "Format": "JSON", "RegionId": "cn-hangzhou",
            "SignatureNonce": uuid.uuid4().hex, **parameters,
        }  # fmt: skip
        headers = {"content-type": "application/x-www-form-urlencoded", "host": "x"}
        body = urlencode(form, errors="surrogatepass").encode()
        answer = asyncio.run(self.direct.server.handle("POST", "/", b"", headers, body))
        return answer.status, json.loads(answer.body)

    def consistent(self) -> None:
        """The index says what the documents say."""
        store = self.direct.server.store
        for kind in INDEXED:
            rows = store._db.execute(
                "SELECT r.id, a.key, a.value FROM attr a JOIN resource r ON r.seq = a.seq WHERE a.kind=?", (kind,)
            ).fetchall()
            wanted = [(doc["id"], key, value) for doc in store.find(kind) for key, value in attributes(kind, doc)]
            assert sorted(rows) == sorted(wanted)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    made = Fuzzed(tmp_path_factory.mktemp("fuzz") / "state")
    yield made
    made.direct.server.close()


#: Values that have broken such servers before.
NASTY = [
    "", " ", "0", "-1", "1", "2147483648", "9" * 40, "1e999", "nan", "1.5", "true", "True", "yes", "[]", "[1]", '["x"]',
    "[[]]", "{}", '{"Statement": 1}', '{"Statement": [null]}', "null", "[", '"', "%", "_", "*", "**", "\\", "'", "; --",
    "../../etc/passwd", "\u202e", "\U0001f600", "\u0663", "a" * 5000, "10.0.0.0/8", "10.0.0.0/33", "0.0.0.0/0", "::/0",
    "300.1.1.1", "10.1.0.0", "22/22", "-1/-1", "22", "9999-99-99T00:00:00Z", "2030-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "0001-01-01T00:00Z", "PrePaid", "PostPaid", "Running", "instance", "cn-hangzhou-j",
    "cn-beijing", "cloud_essd", "Primary", "Secondary", "extreme", "standard", "NFS", "Vpc", "Nat", "ingress", "tcp",
    "all", "System", "Custom", "SpotWithPriceLimit", "SpotAsPriceGo", "name[1,3]", "[,]", "[999999,6]", "LowLatency",
    "\u2028", "a.b.c", "c2VxOjE=", "\r\nX-Injected: 1", "<&>", "\ufffe", "\x01", "$Latest", "$Default",
]  # fmt: skip


class _UndoError(Exception):
    """Ends a transaction without a trace."""


@pytest.mark.parametrize("key", sorted(ACTIONS), ids=".".join)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_parameters(fuzzed: Fuzzed, key: tuple[str, str], data: st.DataObject) -> None:
    """A good request of the conformance test with some parameters left out, some spoilt and some added."""
    action, bases = ACTIONS[key], fuzzed.bases[key]
    parameters = dict(data.draw(st.sampled_from(bases)))
    value = st.one_of(
        st.sampled_from(fuzzed.names), st.sampled_from(NASTY), st.text(max_size=30),
        st.lists(st.sampled_from(fuzzed.names), max_size=3).map(json.dumps), st.integers().map(str),
    )  # fmt: skip
    if parameters:
        for name in data.draw(st.sets(st.sampled_from(sorted(parameters)), max_size=2), label="spoilt"):
            parameters[name] = data.draw(value)
        for name in data.draw(st.sets(st.sampled_from(sorted(parameters)), max_size=1), label="left out"):
            del parameters[name]
    number = data.draw(st.sampled_from(["1", "2", "3", "100", "999999"]))
    for name in data.draw(st.sets(st.sampled_from([*action.declared.names, "x.N"]), max_size=3), label="added"):
        parameters.setdefault(re.sub(r"(?<=\.)N(?=\.|$)", number, name), data.draw(value))
    if data.draw(st.integers(0, 9)):
        parameters.pop("RegionId", None)

    def ask() -> tuple[int, dict[str, Any]]:
        status, document = fuzzed.ask(action, parameters)
        if status == 200 and action.write:
            fuzzed.consistent()
        return status, document

    if action.prepare:  # it works in a thread, which would wait for the transaction
        status, document = ask()
    else:
        with contextlib.suppress(_UndoError), fuzzed.direct.server.store.transaction():
            status, document = ask()
            raise _UndoError
    assert re.fullmatch(r"[0-9A-F-]{36}", document["RequestId"])
    if status == 200:
        return
    assert 400 <= status < 500, (status, document, parameters)
    assert CODE.fullmatch(document["Code"]), document
    assert document["Message"]
    assert document["Recommend"].endswith(document["Code"])
    assert "Traceback" not in document["Message"]


@pytest.mark.parametrize("key", sorted(ACTIONS), ids=".".join)
def test_the_good_requests_reach_the_work(fuzzed: Fuzzed, key: tuple[str, str]) -> None:
    """What is spoilt above was good before: no parameter is unknown, none that is mandatory is missing."""
    for parameters in fuzzed.bases[key]:
        with contextlib.suppress(_UndoError):
            if ACTIONS[key].prepare:
                status, document = fuzzed.ask(ACTIONS[key], parameters)
            else:
                with fuzzed.direct.server.store.transaction():
                    status, document = fuzzed.ask(ACTIONS[key], parameters)
                    raise _UndoError
        assert status == 200 or not document["Code"].startswith("Missing"), document
        assert status == 200 or document["Code"] != "InvalidParameter", document


def test_nothing_is_out_of_step_afterwards(fuzzed: Fuzzed) -> None:
    fuzzed.consistent()
    fuzzed.direct.server.advance(3600)
    fuzzed.consistent()
    started = time.monotonic()
    assert fuzzed.ask(ACTIONS["ecs", "describeinstances"], {})[0] == 200
    assert time.monotonic() - started < 5


BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from([b"Action=", b"DescribeRegions", b"&", b"=", b"%00", b"%", b"\xff", b"Version=2014-05-26",
                              b"RegionId=", b"Signature", b"{", b"}", b'"a"', b":", b"[", b"]", b"\\ud800"]),
             max_size=20).map(b"".join),
)  # fmt: skip


HEADERS = ["x-acs-action", "x-acs-version", "authorization", "x-acs-date", "x-acs-signature-nonce", "host"]
CONTENTS = ["DescribeRegions", "2014-05-26", "ACS3-HMAC-SHA256 Credential=a,SignedHeaders=host,Signature=00"]


@settings(
    max_examples=250, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    query=BYTES,
    body=BYTES,
    kind=st.sampled_from(["", "application/json", "application/x-www-form-urlencoded", "text/xml", "\u00e9"]),
    headers=st.dictionaries(st.sampled_from(HEADERS), st.one_of(st.text(max_size=30), st.sampled_from(CONTENTS))),
)
def test_any_request(direct: Direct, query: bytes, body: bytes, kind: str, headers: dict[str, str]) -> None:
    answer = asyncio.run(direct.server.handle("POST", "/", query, {**headers, "content-type": kind}, body))
    assert 400 <= answer.status < 500
    text = answer.body.decode()
    assert "<Code>" in text if "xml" in answer.media else json.loads(text)["Code"]
