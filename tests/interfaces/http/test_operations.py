"""The table of operations over the wire, and its description."""

from __future__ import annotations

import json

import pytest
from openapi_spec_validator import validate

from interfaces.http.openapi import describe_api
from interfaces.http.routes import Table, read_route
from tests.interfaces.http.conftest import Site
from tests.interfaces.http.room import OPERATIONS, operation


def test_arguments_come_from_path_query_and_body_with_their_types(site: Site) -> None:
    site.ask("GET", "/v1/echoes/a%2Fb%20%C3%A9?limit=7&deep=true&tag=x&tag=y")
    site.ask("POST", "/v1/echoes", {"name": "one", "more": {"list": [1, None, "\U0001f600"]}})
    assert site.room.calls == [
        ("echo.show", {"name": "a/b é", "limit": 7, "deep": True, "tag": ["x", "y"]}),
        ("echo.make", {"name": "one", "more": {"list": [1, None, "\U0001f600"]}}),
    ]


def test_a_branch_with_a_slash_is_one_segment(site: Site) -> None:
    assert site.ask("GET", "/v1/branches/builder%2Frun-1/commits").document["arguments"] == {"branch": "builder/run-1"}


def test_a_literal_place_wins_over_an_argument(site: Site) -> None:
    assert site.ask("GET", "/v1/echoes/all").document["operation"] == "echo.list"
    assert site.ask("GET", "/v1/echoes/al%6C").document["operation"] == "echo.show"


@pytest.mark.parametrize("query", ["limit=many", "limit=1.5", "limit=" + "9" * 30, "deep=perhaps", "deep=1&deep=0", "x=%ff", "name=b"])
def test_a_query_that_cannot_be_read_is_refused(site: Site, query: str) -> None:
    assert site.ask("GET", f"/v1/echoes/a?{query}").document["code"] == "invalid"
    assert site.room.calls == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1]",
        b'"text"',
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": "\xff"}',
        b'{"a":' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"name": "x"}x',
        b'{"name": "\\uD800"}',
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_body_that_is_no_plain_object_is_refused(site: Site, body: bytes) -> None:
    answer = site.ask("POST", "/v1/echoes", body, Content_Type="application/json")
    assert (answer.status, answer.document["code"]) == (400, "invalid")
    assert site.room.calls == []


def test_a_form_of_another_page_cannot_pose_as_json(site: Site) -> None:
    assert site.ask("POST", "/v1/echoes", b'{"name": "x"}', Content_Type="text/plain").status == 415
    assert site.ask("POST", "/v1/echoes", b'{"name": "x"}', Content_Type="application/json; charset=utf-8").status == 201


def test_a_document_over_the_limit_is_refused(site: Site) -> None:
    assert site.ask("POST", "/v1/echoes", {"name": "x" * 70_000}).status == 413


def test_a_read_has_an_entity_tag_and_an_effect_is_never_kept(site: Site) -> None:
    read = site.ask("GET", "/v1/echoes/a")
    assert site.ask("GET", "/v1/echoes/a", If_None_Match=read.headers["etag"]).status == 304
    assert site.ask("GET", "/v1/echoes/b", If_None_Match=read.headers["etag"]).status == 200
    head = site.ask("HEAD", "/v1/echoes/a")
    assert (head.content, head.headers["etag"]) == (b"", read.headers["etag"])
    effect = site.ask("POST", "/v1/echoes", {"name": "x"})
    assert (effect.headers["cache-control"], "etag" in effect.headers) == ("no-store", False)


def test_keys_and_conditions_of_effects_reach_the_operation(site: Site) -> None:
    site.ask("POST", "/v1/echoes", {"name": "x"}, Idempotency_Key="key-1", If_Match='"tag"')
    site.ask("GET", "/v1/echoes/a", Idempotency_Key="key-1")
    assert site.room.calls == [("echo.make", {"name": "x", "idempotency_key": "key-1", "if_match": '"tag"'}), ("echo.show", {"name": "a"})]


def test_a_condition_that_would_be_ignored_is_refused(site: Site) -> None:
    assert site.ask("POST", "/v1/echoes/a/refuse", {}, If_Match='"tag"').document["code"] == "invalid"
    assert site.ask("POST", "/v1/echoes", {"name": "x"}, Idempotency_Key="x" * 256).status == 400
    assert site.ask("POST", "/v1/echoes", {"name": "x", "idempotency_key": "a"}, Idempotency_Key="b").status == 400
    assert site.room.calls == []


def test_a_wrong_method_names_the_right_ones(site: Site) -> None:
    answer = site.ask("DELETE", "/v1/echoes/a")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert site.ask("GET", "/v1/nothing/here").status == 404
    assert site.ask("GET", "/v1/echoes/").status == 404


def test_the_description_is_valid_and_names_every_operation(site: Site) -> None:
    described = json.loads(site.ask("GET", "/openapi.json").content)
    validate(described)
    named = {place["operationId"] for path in described["paths"].values() for name, place in path.items() if name != "parameters"}
    assert named == set(OPERATIONS) | {
        "file.read",
        "file.put",
        "file.delete",
        "file.change",
        "event.follow",
        "service.health",
        "service.ready",
        "service.describe",
    }
    body = described["paths"]["/v1/echoes"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert (list(body["properties"]), body["required"]) == (["name"], ["name"])


def test_the_description_does_not_depend_on_the_order_of_the_table() -> None:
    backwards = dict(reversed(OPERATIONS.items()))
    assert json.dumps(describe_api(OPERATIONS, "0")) == json.dumps(describe_api(backwards, "0"))


def test_two_operations_in_one_place_are_an_error_when_the_table_is_made() -> None:
    for path in ("/v1/echoes/{name}", "/v1/echoes/{other}"):
        routes = [read_route("a", operation("GET", "/v1/echoes/{name}")), read_route("b", operation("GET", path))]
        with pytest.raises(ValueError, match="share"):
            Table(routes)
