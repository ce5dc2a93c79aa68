"""Acts through accounts: decided with what the run has read, recorded first, gated for exactly one request, without a secret in sight."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import Access, walk
from nasd.broker.environment import seal
from nasd.broker.supervisor import Broker
from nasd.faults import as_fault
from nasd.operations import all_operations
from nasd.processes import Process, birth_of
from nasd.runs import Run
from nasd.workspaces import open_workspace
from tests.nasd.broker.upstream import Upstream, upstream
from tests.nasd.conftest import SEED, House, build_house
from trust.errors import TrustError
from trust.labels import DEFAULT, Label, Origin, Sensitivity
from trust.model import USUAL, Action, Identity

CANARY = "canary-0123456789-secret"
EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)


@pytest.fixture
def server() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "git")
    settings = built.appliance.settings
    built.broker = built.outward.broker = Broker(settings.broker_socket, settings.log / "broker.log", seal({"API_TOKEN": CANARY}))
    yield built
    built.broker.close()
    built.appliance.close()


def do(house: House, identity: Identity, operation: str, **arguments: Any) -> dict[str, Any]:
    try:
        return all_operations()[operation].handle(house.desk, identity, arguments)
    except TrustError as error:
        raise as_fault(error) from error


def add(house: House, server: Upstream, **more: Any) -> None:
    document = {"name": "api", "kind": "bearer", "url": server.url, "secret": "env://API_TOKEN", "rules": ["* **"]}
    do(house, house.owner, "account.add", **document | more)


def start(house: House, *destinations: str, **more: Any) -> tuple[Run, Identity]:
    """Start a run that may act outside, on paths where nothing is labelled: one for everything would ask a person first."""
    wanted = {"paths": ("src/**", "docs/**"), "actions": USUAL | {Action.EGRESS}, "destinations": destinations}
    run, secret = house.start(**wanted | more)
    return run, house.holder(secret)


def ask(house: House, identity: Identity, **more: Any) -> dict[str, Any]:
    return do(house, identity, "egress.http", **{"account": "api", "path": "/x"} | more)


def refused(house: House, identity: Identity, kind: Kind, **more: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        ask(house, identity, **more)
    assert caught.value.kind is kind, caught.value.message
    return caught.value


def read_as(house: House, run: Run, identity: Identity, path: str) -> None:
    """Read a file of a run as its holder."""
    workspace = open_workspace(house.appliance, identity, run.branch, lambda _: {})
    handle = workspace.open(walk(workspace, path.encode()).node, Access())
    handle.read(0, 100)
    handle.close()
    workspace.close()


def answer(house: House, gate: str, *, approve: bool) -> None:
    operation = "gate.approve" if approve else "gate.reject"
    do(house, house.owner, operation, gate=gate, digest=house.trust.gate(gate).digest)  # type: ignore[arg-type]


def test_a_run_gets_an_answer_and_never_the_secret(house: House, server: Upstream) -> None:
    add(house, server)
    run, holder = start(house, "api")
    given = ask(house, holder, method="POST", body='{"a": 1}', headers={"content-type": "application/json"}, query=[["q", "1"]])
    assert given["status"] == 200
    assert server.seen[0].headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY not in json.dumps(given)
    intent = next(iter(house.trust.records(kind="egress")))
    assert (intent.body["account"], intent.body["run"], intent.body["act"]["method"]) == ("api", run.run, "POST")
    assert intent.body["judged"]["decision"]["effect"] == "allow"
    kinds = [(record.kind, record.phase.value) for record in house.trust.records(run=run.run)]
    assert kinds.index(("egress", "intent")) < kinds.index(("taint", "fact")) < kinds.index(("egress", "outcome"))


def test_what_comes_back_taints_the_run(house: House, server: Upstream) -> None:
    add(house, server)
    run, holder = start(house, "api")
    assert house.trust.ledger.taint(run.run) == DEFAULT
    ask(house, holder)
    assert house.trust.ledger.taint(run.run) == EXTERNAL


def test_an_answer_goes_into_a_file_that_carries_the_label(house: House, server: Upstream) -> None:
    add(house, server)
    server.answers["/x"] = lambda _: (200, {"Content-Type": "text/plain"}, b"words of a stranger, more than a few of them\n")
    run, holder = start(house, "api")
    given = ask(house, holder, into="docs/answer.txt")
    assert "body" not in given
    commit = house.runs.commit(run, holder, "an answer")["commit"]
    workspace = open_workspace(house.appliance, house.owner, run.branch, lambda _: {}, at=commit)
    attributes = walk(workspace, b"docs/answer.txt")
    assert workspace.xattrs(attributes.node)[b"user.nas.origin"] == b"external"
    workspace.close()


def test_a_body_from_a_file_is_read_as_the_run_reads_it(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house, "api", paths=("src/**",))
    ask(house, holder, method="POST", body_path="src/a.py")
    assert server.seen[-1].body == SEED["src/a.py"]
    refused(house, holder, Kind.NOT_FOUND, method="POST", body_path="secret/plan.txt")
    assert len(server.seen) == 1


def test_a_lease_without_egress_sends_nothing(house: House, server: Upstream) -> None:
    add(house, server)
    _, secret = house.start()
    fault = refused(house, house.holder(secret), Kind.DENIED)
    assert "egress" in fault.message
    assert server.seen == []
    denied = next(iter(house.trust.records(kind="denied"))).body
    assert (denied["action"], denied["account"]) == ("egress", "api")
    assert "judged" in denied


def test_untrusted_words_and_an_account_that_the_lease_does_not_name_ask_a_person(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house)
    ask(house, holder)  # nothing untrusted was read before the first
    fault = refused(house, holder, Kind.GATED, method="POST", body="exfiltrate")
    card = house.trust.gate(fault.gate).card  # type: ignore[arg-type]
    assert card["account"] == "api"
    assert card["taint"]["origin"] == "external"
    assert len(server.seen) == 1
    assert "exfiltrate" not in json.dumps(card, default=str)
    answer(house, fault.gate, approve=True)
    refused(house, holder, Kind.GATED, method="POST", body="exfiltrate more")
    assert len(server.seen) == 1, "an approval of one request let another out"
    ask(house, holder, method="POST", body="exfiltrate")
    assert server.seen[-1].body == b"exfiltrate"
    again = refused(house, holder, Kind.GATED, method="POST", body="exfiltrate")
    assert again.gate != fault.gate, "an approval counted twice"


def test_a_rejection_is_a_denial(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house)
    ask(house, holder)
    fault = refused(house, holder, Kind.GATED, body="x", method="POST")
    answer(house, fault.gate, approve=False)
    refused(house, holder, Kind.DENIED, body="x", method="POST")
    assert len(server.seen) == 1


def test_an_account_that_the_lease_names_needs_no_question(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house, "api")
    for _ in range(3):
        ask(house, holder, method="POST", body="x")
    assert len(server.seen) == 3


def test_the_rule_of_two_counts_what_would_come_back(house: House, server: Upstream) -> None:
    """Sensitive data and an outward act are two of the three; an answer of a stranger would be the third."""
    add(house, server)
    run, holder = start(house, "api", paths=("src/**", "private/**"))
    house.write(run, {"private/salaries.txt": b"a secret that is long enough to be known again\n"})
    read_as(house, run, holder, "private/salaries.txt")
    fault = refused(house, holder, Kind.GATED)
    assert "untrusted input, sensitive data" in fault.message
    assert server.seen == []


def test_an_account_of_somebody_else_does_not_exist(house: House, server: Upstream) -> None:
    add(house, server, principals=["writer"])
    _, holder = start(house, "api")
    assert refused(house, holder, Kind.NOT_FOUND).message == "api: no such account"
    assert refused(house, holder, Kind.NOT_FOUND, account="none").message == "none: no such account"
    assert do(house, holder, "account.list")["items"] == []


def test_a_run_sees_what_an_account_lets_and_not_where_its_secret_is(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house, "api")
    (shown,) = do(house, holder, "account.list")["items"]
    assert shown["rules"] == ["* **"]
    assert "secret" not in shown
    assert do(house, house.owner, "account.show", account="api")["secret"] == "env://API_TOKEN"


@pytest.mark.parametrize("operation", ["account.add", "account.remove", "account.test"])
def test_only_who_administers_changes_accounts(house: House, server: Upstream, operation: str) -> None:
    add(house, server)
    _, holder = start(house, "api")
    arguments = {"name": "b", "kind": "bearer", "url": server.url, "secret": "env://API_TOKEN"}
    with pytest.raises(Fault) as caught:
        do(house, holder, operation, **arguments if operation == "account.add" else {"account": "api"})
    assert caught.value.kind is Kind.DENIED


def test_the_owner_tries_an_account(house: House, server: Upstream) -> None:
    add(house, server)
    assert do(house, house.owner, "account.test", account="api") == {"account": "api", "resolves": True, "status": None}
    assert do(house, house.owner, "account.test", account="api", path="/x")["status"] == 200
    add(house, server, name="other", secret="env://NOT_THERE")
    with pytest.raises(Fault, match="NOT_THERE"):
        do(house, house.owner, "account.test", account="other")


def test_a_daily_budget_is_spent_and_comes_back(house: House, server: Upstream) -> None:
    add(house, server, daily=2)
    _, holder = start(house, "api")
    ask(house, holder)
    ask(house, holder)
    refused(house, holder, Kind.BUDGET)
    assert len(server.seen) == 2
    house.pass_time(86400)
    _, next_day = start(house, "api")
    ask(house, next_day)


def test_a_ceiling_keeps_a_lease_from_asking_for_what_it_may_not_read(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house, "api", ceiling=DEFAULT)
    refused(house, holder, Kind.DENIED)
    assert server.seen == []


def test_a_secret_of_ours_is_not_forwarded(house: House, server: Upstream) -> None:
    add(house, server)
    _, secret = house.start(paths=("src/**",), actions=USUAL | {Action.EGRESS}, destinations=("api",))
    holder = house.holder(secret)
    refused(house, holder, Kind.DENIED, method="POST", body=secret)
    refused(house, holder, Kind.INVALID, query=[["token", secret]])
    refused(house, holder, Kind.INVALID, headers={"authorization": f"Bearer {secret}"})
    encoded = base64.b64encode(secret.encode()).decode()
    refused(house, holder, Kind.DENIED, method="POST", body_base64=encoded)
    assert server.seen == []
    assert list(house.trust.records(kind="egress")) == [], "it went as far as the broker"


def test_a_broker_that_dies_is_started_again(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house, "api")
    ask(house, holder)
    first = Process(house.broker.pid, birth_of(house.broker.pid))
    first.signal(signal.SIGKILL)
    assert first.wait_gone(30)
    ask(house, holder)
    assert house.broker.pid not in (0, first.pid)


def test_the_broker_hears_nobody_but_its_daemon(house: House, server: Upstream) -> None:
    add(house, server)
    _, holder = start(house, "api")
    ask(house, holder)
    program = (
        "import sys, pathlib\n"
        "from nasd.link import LinkClient\n"
        "from interfaces.faults import Fault\n"
        "try:\n"
        "    print(LinkClient(pathlib.Path(sys.argv[1])).ask({'operation': 'test', 'account': {}}))\n"
        "except Fault as fault:\n"
        "    print(fault.kind.value)\n"
    )
    path = house.appliance.settings.broker_socket
    told = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "unavailable"
