"""Every fault has a code Amazon documents, a status and XML that botocore understands."""

from __future__ import annotations

import botocore.session
import pytest
from botocore.parsers import create_parser

from interfaces.faults import Fault, Kind
from interfaces.s3.codes import CODES, KIND_OF_STATUS, KINDS
from interfaces.s3.faults import S3Fault, code_of
from interfaces.s3.refusals import describe_fault, render_fault
from interfaces.web.problems import Refusal
from tests.interfaces.s3.signing import received

OUTPUT = botocore.session.get_session().get_service_model("s3").operation_model("GetObject").output_shape
PARSER = create_parser("rest-xml")


def told(fault: Fault, method: str = "GET") -> tuple[int, dict[str, str], dict[str, str]]:
    """Return status, what botocore makes of the answer, and its headers."""
    reply = render_fault(fault, received(method, "http://127.0.0.1/main/a%20b%3C", {}))
    headers = dict(reply.headers)
    parsed = PARSER.parse({"status_code": reply.status, "headers": headers, "body": reply.body}, OUTPUT)
    return reply.status, {**parsed.get("Error", {}), **parsed["ResponseMetadata"]}, headers


def test_the_table_of_kinds_is_total_and_every_code_is_known() -> None:
    assert set(KINDS) == set(Kind)
    assert set(KINDS.values()) <= set(CODES)


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_is_told_with_its_message_hint_and_policy(kind: Kind) -> None:
    status, error, headers = told(Fault(kind, "what happened", hint="what to do", policy="policy.yaml:3:1"))
    assert error["Code"] == KINDS[kind]
    assert status == CODES[error["Code"]].status
    assert error["Message"] == "what happened: what to do (policy policy.yaml:3:1)"
    assert (error["Resource"], error["RequestId"]) == ("/main/a b<", "request-1")
    assert headers["x-amz-request-id"] == "request-1"


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_is_enough(code: str) -> None:
    fault = S3Fault(code)
    assert (fault.status, fault.message, code_of(fault)) == (CODES[code].status, CODES[code].message, code)
    assert fault.kind is KIND_OF_STATUS.get(CODES[code].status, Kind.INVALID)
    assert describe_fault(fault) == (code, fault.message)
    if fault.status != 304:
        assert told(fault)[1]["Code"] == code


def test_an_unknown_code_is_a_defect() -> None:
    with pytest.raises(KeyError):
        S3Fault("NoSuchCode")


def test_elements_and_headers_go_along() -> None:
    fault = S3Fault("NoSuchKey", "gone", elements={"Key": "a&b"}, headers={"x-amz-delete-marker": "true"})
    status, error, headers = told(fault)
    assert (status, error["Key"], headers["x-amz-delete-marker"]) == (404, "a&b", "true")


def test_a_refused_head_and_not_modified_have_no_body() -> None:
    head = render_fault(S3Fault("NoSuchKey"), received("HEAD", "http://127.0.0.1/main/a", {}))
    same = render_fault(S3Fault("NotModified", headers={"etag": '"a"'}), received("GET", "http://127.0.0.1/main/a", {}))
    assert (head.status, head.body) == (404, b"")
    assert (same.status, same.body, dict(same.headers)["etag"]) == (304, b"", '"a"')
    assert not any(name == "content-type" for name, _ in [*head.headers, *same.headers])


@pytest.mark.parametrize(
    ("status", "code"), [(408, "RequestTimeout"), (413, "EntityTooLarge"), (416, "InvalidRange"), (400, "InvalidArgument")]
)
def test_a_refusal_of_the_family_keeps_its_status(status: int, code: str) -> None:
    fault = Refusal(status, Kind.INVALID, "no", headers={"connection": "close"})
    answered, error, headers = told(fault)
    assert (answered, error["Code"], headers["connection"]) == (status, code, "close")
