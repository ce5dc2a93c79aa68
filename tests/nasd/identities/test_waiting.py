"""Those who present wrong credentials wait; nobody else does. Through every door, on a real socket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from interfaces.faults import Fault, Kind
from interfaces.port import Arrival
from nasd.identities.attempts import Attempts
from nasd.identities.doorkeeper import NOBODY
from nasd.identities.lockout import FREE, FREE_ADDRESS
from tests.nasd.identities.conftest import Served, basic, bearer, keep_failing

AWAY, OTHER = "192.0.2.10", "192.0.2.11"
Wrong = Callable[[str], str]


def locked(served: Served) -> list[dict[str, object]]:
    return served.house.house.records("auth.locked")


@pytest.mark.parametrize(
    ("door", "method", "path"),
    [("http", "GET", "/v1/runs"), ("webdav", "PROPFIND", "/dav/"), ("git", "GET", "/git/main.git/info/refs?service=git-upload-pack")],
)
def test_wrong_passwords_wait_longer_and_longer_at_their_address_and_at_no_other(
    served: Served, wrong: Wrong, door: str, method: str, path: str
) -> None:
    token = served.house.issue_token("ana", roles="owner")
    for _ in range(FREE):
        assert served.ask(method, path, basic("ana", wrong(token)), client=AWAY).status == 401
    refused = served.ask(method, path, basic("ana", wrong(token)), client=AWAY)
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    keep_failing(served, "ana", AWAY)
    assert served.ask(method, path, basic("ana", wrong(token)), client=AWAY).status == 429
    # The right one is not even looked at there; elsewhere, and for who has another name, nothing changed.
    assert served.ask(method, path, basic("ana", token), client=AWAY).status == 429
    assert served.ask(method, path, basic("ana", token), client=OTHER).status < 300
    assert served.ask(method, path, basic("owner", served.house.owner), client=AWAY).status < 300
    assert locked(served) == [{"subject": "ana", "client": AWAY, "door": door, "failures": FREE + 1}]


def test_what_was_right_before_is_let_in_while_others_wait_under_its_name(served: Served, wrong: Wrong) -> None:
    token = served.house.issue_token("ana")
    assert served.ask("PROPFIND", "/dav/", basic("ana", token)).status == 207
    for _ in range(FREE + 3):
        served.ask("PROPFIND", "/dav/", basic("ana", wrong(token)))
    keep_failing(served, "ana", "127.0.0.1")
    assert served.ask("PROPFIND", "/dav/", basic("ana", wrong(token))).status == 429
    assert served.ask("PROPFIND", "/dav/", basic("ana", token)).status == 207
    fresh = served.house.issue_token("ana")
    assert served.ask("PROPFIND", "/dav/", basic("ana", fresh)).status == 429


def test_no_agent_of_this_machine_locks_out_another_ones_lease_by_guessing_under_its_name(served: Served, wrong: Wrong) -> None:
    run = served.house.start_run()
    password = served.house.call(run.secret, "lease.credentials", {"lease": run.lease, "for": "webdav"})["settings"]["password"]
    path = f"/dav/{run.branch}/"
    keep_failing(served, run.lease, "127.0.0.1")
    assert served.ask("PROPFIND", path, basic(run.lease, wrong(password)) | {"depth": "0"}).status == 429
    assert served.ask("PROPFIND", path, basic(run.lease, password) | {"depth": "0"}).status == 207
    assert served.ask("GET", "/v1/runs", bearer(run.secret)).status == 200


def test_invented_names_share_one_count_so_that_neither_table_nor_record_grows(served: Served) -> None:
    told = [served.ask("PROPFIND", "/dav/", basic(f"invented{number}", "x"), client=AWAY).status for number in range(FREE + 1)]
    assert told == [401] * FREE + [429]
    keep_failing(served, NOBODY, AWAY)
    assert served.ask("PROPFIND", "/dav/", basic("invented", "x"), client=AWAY).status == 429
    assert [record["subject"] for record in locked(served)] == ["nobody known"]
    assert served.ask("PROPFIND", "/dav/", basic("owner", served.house.owner), client=AWAY).status == 207


def test_an_address_that_guesses_under_many_known_names_waits_as_a_whole_unless_it_is_the_loopback(served: Served, wrong: Wrong) -> None:
    names = [f"person{number}" for number in range(FREE_ADDRESS // FREE + 1)]
    tokens = {name: served.house.issue_token(name) for name in names}
    for client in (AWAY, ""):
        for name in names:
            for _ in range(FREE):
                served.ask("GET", "/v1/runs", basic(name, wrong(tokens[name])), client=client)
    fresh = served.house.issue_token("fresh")
    keep_failing(served, "", AWAY)
    assert served.ask("GET", "/v1/runs", basic("fresh", fresh), client=AWAY).status == 429
    assert served.ask("GET", "/v1/runs", basic("fresh", fresh)).status == 200
    assert [record["subject"] for record in locked(served)] == ["anybody"]


def test_a_wrong_signature_of_s3_is_told_to_slow_down_and_the_right_one_goes_on(served: Served, wrong: Wrong) -> None:
    run = served.house.start_run()
    pair = served.house.call(run.secret, "lease.credentials", {"lease": run.lease, "for": "s3"})["settings"]

    def buckets(secret: str) -> str:
        client = boto3.client(
            "s3",
            endpoint_url=served.url,
            region_name="us-east-1",
            aws_access_key_id=pair["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=secret,
            config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}),
        )
        try:
            client.list_buckets()
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "listed"

    secret = pair["AWS_SECRET_ACCESS_KEY"]
    assert buckets(wrong(secret)) == "SignatureDoesNotMatch"
    keep_failing(served, run.lease, "127.0.0.1")
    assert buckets(wrong(secret)) == "SlowDown"
    assert buckets(secret) == "listed"


def test_at_the_unix_socket_nothing_is_counted(served: Served, wrong: Wrong) -> None:
    control = served.house.control
    for _ in range(FREE + 20):
        with pytest.raises(Fault) as caught:
            control.authenticate_basic("owner", wrong(served.house.owner), Arrival("http"))
        assert caught.value.kind is Kind.UNAUTHENTICATED
    assert control.authenticate(served.house.owner, Arrival("http")).principal == "owner"
    assert locked(served) == []


def test_a_wait_ends_by_itself_and_other_processes_know_of_it(served: Served, wrong: Wrong, tmp_path: Path) -> None:
    token = served.house.issue_token("ana")
    for _ in range(FREE + 1):
        served.ask("GET", "/v1/runs", basic("ana", wrong(token)), client=AWAY)
    beside = Attempts(served.house.house.appliance.settings.run / "attempts")
    strikes = beside.find("ana", AWAY)
    beside.close()
    assert strikes.count == FREE + 1
    assert 0 < strikes.wait(strikes.last) <= 1
    assert strikes.wait(strikes.until) == 0
