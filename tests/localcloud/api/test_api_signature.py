"""Signatures against the clients' own implementations and against published values."""

from __future__ import annotations

from alibabacloud_tea_openapi.utils import Utils

from localcloud.api import signature


def test_version_1_agrees_with_the_official_client() -> None:
    parameters = {
        "Action": "DescribeRegions", "Version": "2014-05-26", "Format": "JSON", "AccessKeyId": "testid",
        "SignatureMethod": "HMAC-SHA1", "SignatureNonce": "x y*z~/ä", "SignatureVersion": "1.0",
        "Timestamp": "2026-12-01T10:00:00Z", "Tag.1.Key": "a=b&c",
    }  # fmt: skip
    mine = signature.sign_v1("secret", signature.string_to_sign_v1("POST", {**parameters, "Signature": "old"}))
    assert mine == Utils.get_rpcsignature(dict(parameters), "POST", "secret")


def test_version_1_string_of_the_documentation() -> None:
    # The worked example of the RPC signature in the ECS API documentation.
    parameters = {
        "Timestamp": "2016-02-23T12:46:24Z", "Format": "XML", "AccessKeyId": "testid", "Action": "DescribeRegions",
        "SignatureMethod": "HMAC-SHA1", "SignatureNonce": "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf",
        "Version": "2014-05-26", "SignatureVersion": "1.0",
    }  # fmt: skip
    text = signature.string_to_sign_v1("GET", parameters)
    assert text.startswith("GET&%2F&AccessKeyId%3Dtestid%26Action%3DDescribeRegions%26Format%3DXML%26")
    assert signature.sign_v1("testsecret", text) == "OLeaidS1JvxuMvnyHOwuJ+uX5qY="


def test_acs3_header() -> None:
    header = "ACS3-HMAC-SHA256 Credential=key,SignedHeaders=host;x-acs-action,Signature=0af3"
    assert signature.parse_acs3(header) == ("key", ("host", "x-acs-action"), "0af3")
    for broken in ("", "ACS3-HMAC-SHA256", "ACS3-HMAC-SHA256 Credential=key,Signature=00", "Basic abc"):
        assert signature.parse_acs3(broken) is None


def test_different_bodies_and_headers_give_different_texts() -> None:
    def text(query: tuple[tuple[str, str], ...] = (("a", "b"),), header: str = "x", body: str = "0") -> str:
        return signature.string_to_sign_acs3("POST", "/", query, {"host": header}, ("host",), body)

    assert len({text(), text(query=(("a", "c"),)), text(header="y"), text(body="1")}) == 4
