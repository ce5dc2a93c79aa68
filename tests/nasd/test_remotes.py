"""Git remotes through accounts, against git's own HTTP server: what comes in is decided and labelled, what goes out is weighed first."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from nasd.broker.environment import seal
from nasd.broker.supervisor import Broker
from nasd.faults import as_fault
from nasd.operations import all_operations
from nasd.runs import MAIN, Run
from tests.nasd.broker.upstream import GIT_USER, git_upstream
from tests.nasd.conftest import House, build_house
from trust.errors import TrustError
from trust.labels import DEFAULT
from trust.model import USUAL, Action, Identity

CANARY = "canary-0123456789-secret"


def git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}
    identity = ["-c", "user.name=Up", "-c", "user.email=up@example.com"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "git")
    settings = built.appliance.settings
    built.broker = built.outward.broker = Broker(settings.broker_socket, settings.log / "broker.log", seal({"FORGE": CANARY}))
    yield built
    built.broker.close()
    built.appliance.close()


@pytest.fixture
def remote(house: House, tmp_path: Path) -> Iterator[Path]:
    """Serve a bare repository that begins with what `main` holds, as the account ``forge``."""
    folder = tmp_path / "served" / "org"
    folder.mkdir(parents=True)
    house.appliance.engine.export_git(MAIN, folder / "a.git", lambda *_: None)
    git(folder / "a.git", "config", "http.receivepack", "true")
    with git_upstream(tmp_path / "served", CANARY) as url:
        document = {"name": "forge", "kind": "git", "url": url, "secret": "env://FORGE", "username": GIT_USER, "rules": ["* org/*"]}
        do(house, house.owner, "account.add", **document)
        yield folder / "a.git"


def do(house: House, identity: Identity, operation: str, **arguments: Any) -> dict[str, Any]:
    try:
        return all_operations()[operation].handle(house.desk, identity, arguments)
    except TrustError as error:
        raise as_fault(error) from error


def start(house: House, *paths: str, **more: Any) -> tuple[Run, Identity]:
    run, secret = house.start(paths=paths, actions=USUAL | {Action.EGRESS}, destinations=("forge",), **more)
    return run, house.holder(secret)


def add_upstream(remote: Path, tmp_path: Path, files: dict[str, str]) -> str:
    """Commit files on the remote's main, as somebody else would."""
    work = tmp_path / "work"
    if not work.exists():
        git(tmp_path, "clone", "-q", str(remote), "work")
    for name, content in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(content)
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "from upstream")
    git(work, "push", "-q", "origin", "HEAD:main")
    return git(work, "rev-parse", "HEAD")


def fetch(house: House, identity: Identity, run: Run) -> dict[str, Any]:
    return do(house, identity, "egress.fetch", account="forge", run=run.run, repository="org/a.git")


def push(house: House, identity: Identity, run: Run, branch: str = "work") -> dict[str, Any]:
    return do(house, identity, "egress.push", account="forge", run=run.run, repository="org/a.git", branch=branch)


def everything(house: House) -> tuple[Run, Identity]:
    """Start a run with every path; a person has to agree, since it could combine what must not be combined."""
    with pytest.raises(Fault) as caught:
        start(house, "**")
    gate = caught.value.gate
    do(house, house.owner, "gate.approve", gate=gate, digest=house.trust.gate(gate).digest)  # type: ignore[arg-type]
    return start(house, "**")


def test_what_a_remote_added_comes_into_the_run_and_taints_it(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = everything(house)
    head = add_upstream(remote, tmp_path, {"src/new.py": "print('words of a stranger, long enough')\n"})
    done = fetch(house, holder, run)
    assert (done["fetched"], done["commits"], done["label"]) == (head, 1, "external/internal")
    assert house.appliance.engine.branch(run.branch).head == done["commit"] == head
    assert house.trust.ledger.taint(run.run).untrusted
    (change,) = house.appliance.engine.diff(house.appliance.engine.branch(MAIN).head, done["commit"])
    assert change.new is not None
    assert house.trust.ledger.label(house.trust.policy(), change.path, change.new.content.encode()).untrusted
    intent = next(iter(house.trust.records(kind="egress"))).body
    assert (intent["verb"], intent["act"]["path"]) == ("fetch", "/org/a.git")


def test_a_fetch_of_what_is_here_already_changes_nothing(house: House, remote: Path) -> None:
    run, holder = everything(house)
    assert fetch(house, holder, run)["commits"] == 0


def test_a_path_that_the_lease_does_not_cover_keeps_the_fetch_out(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = start(house, "src/**")
    before = house.appliance.engine.branch(run.branch).head
    add_upstream(remote, tmp_path, {"docs/two.md": "2\n"})
    with pytest.raises(Fault) as caught:
        fetch(house, holder, run)
    assert caught.value.kind in (Kind.DENIED, Kind.CONFLICT, Kind.INVALID)
    assert house.appliance.engine.branch(run.branch).head == before


def test_a_remote_that_went_another_way_is_merged(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = everything(house)
    house.write(run, {"src/mine.py": b"mine\n"})
    head = add_upstream(remote, tmp_path, {"src/theirs.py": "theirs, long enough to be known again by its label\n"})
    done = fetch(house, holder, run)
    engine = house.appliance.engine
    assert engine.branch(run.branch).head == done["commit"]
    assert [change.path for change in engine.diff(engine.branch(MAIN).head, done["commit"])] == [b"src/mine.py", b"src/theirs.py"]
    assert head in engine.read_commit(done["commit"]).parents
    assert engine.branches("fetched/") == []
    (theirs,) = [change for change in engine.diff(engine.branch(MAIN).head, done["commit"]) if change.path == b"src/theirs.py"]
    assert theirs.new is not None
    assert house.trust.ledger.label(house.trust.policy(), theirs.path, theirs.new.content.encode()).untrusted


def test_what_both_sides_changed_is_named_and_nothing_moves(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = everything(house)
    house.write(run, {"src/a.py": b"mine\n"})
    house.runs.commit(run, holder, "mine")
    before = house.appliance.engine.branch(run.branch).head
    add_upstream(remote, tmp_path, {"src/a.py": "theirs\n"})
    with pytest.raises(Fault, match=r"both sides changed src/a\.py") as caught:
        fetch(house, holder, run)
    assert caught.value.kind is Kind.CONFLICT
    assert house.appliance.engine.branch(run.branch).head == before
    assert house.appliance.engine.branches("fetched/") == []


def test_a_history_that_has_nothing_in_common_stays_out(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = everything(house)
    tree = git(remote, "rev-parse", "main^{tree}")
    git(remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", tree, "-m", "another beginning"))
    with pytest.raises(Fault, match="no commit in common") as caught:
        fetch(house, holder, run)
    assert caught.value.kind is Kind.CONFLICT


def test_what_a_fetch_left_in_a_crash_is_removed_at_the_next_start(house: House) -> None:
    engine = house.appliance.engine
    engine.create_branch("fetched/x", engine.branch(MAIN).head, house.appliance.now())
    house.reconciliation.finish()
    assert engine.branches("fetched/") == []


def test_a_run_pushes_its_branch_and_the_remote_has_it(house: House, remote: Path) -> None:
    run, holder = everything(house)
    house.write(run, {"src/mine.py": b"mine\n"})
    fetch_free = push(house, holder, run)
    assert git(remote, "rev-parse", "work") == fetch_free["commit"] == house.appliance.engine.branch(run.branch).head
    assert git(remote, "show", "work:src/mine.py") == "mine"
    house.write(run, {"src/mine.py": b"mine again\n"})
    assert push(house, holder, run)["commits"] == 1, "what the remote is known to have was counted again"


def test_a_push_of_something_sensitive_asks_also_when_a_later_commit_removed_it(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = everything(house)
    push(house, holder, run)
    assert house.trust.ledger.taint(run.run).untrusted, "a remote answers, and what it answers is a stranger's"
    house.write(run, {"private/plan.txt": b"a plan that is long enough to be known again\n"})
    house.runs.commit(run, holder, "the plan")
    house.write(run, {"private/plan.txt": None})
    house.runs.commit(run, holder, "not here")
    before = git(remote, "rev-parse", "work")
    with pytest.raises(Fault) as caught:
        push(house, holder, run)
    assert caught.value.kind is Kind.GATED
    assert git(remote, "rev-parse", "work") == before
    gate = caught.value.gate
    assert house.trust.gate(gate).card["labels"]["sensitivity"] == "sensitive"  # type: ignore[arg-type]
    do(house, house.owner, "gate.approve", gate=gate, digest=house.trust.gate(gate).digest)  # type: ignore[arg-type]
    assert push(house, holder, run)["commits"] == 2


def test_a_long_history_is_weighed_by_what_its_roots_ever_held(house: House, remote: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, holder = everything(house)
    house.write(run, {"private/plan.txt": b"a plan that is long enough to be known again\n"})
    house.runs.commit(run, holder, "the plan")
    house.write(run, {"private/plan.txt": None})
    house.runs.commit(run, holder, "not here")
    monkeypatch.setattr("nasd.remotes._MOST_WEIGHED", 1)
    with pytest.raises(Fault) as caught:
        push(house, holder, run)
    assert caught.value.kind is Kind.GATED


def test_a_push_never_forces(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = everything(house)
    house.write(run, {"src/mine.py": b"mine\n"})
    add_upstream(remote, tmp_path, {"src/theirs.py": "theirs\n"})
    theirs = git(remote, "rev-parse", "main")
    with pytest.raises(Fault) as caught:
        push(house, holder, run, branch="main")
    assert caught.value.kind is Kind.CONFLICT
    assert git(remote, "rev-parse", "main") == theirs


def test_a_lease_that_sees_a_part_pushes_that_part(house: House, remote: Path) -> None:
    run, holder = start(house, "src/**")
    house.write(run, {"src/mine.py": b"mine\n"})
    push(house, holder, run)
    assert git(remote, "ls-tree", "-r", "--name-only", "work").splitlines() == ["src/a.py", "src/b.py", "src/mine.py"]
    assert house.trust.ledger.taint(run.run) != DEFAULT


def test_a_hostile_remote_brings_nothing_in(house: House, remote: Path, tmp_path: Path) -> None:
    run, holder = everything(house)
    before = house.appliance.engine.branch(run.branch).head
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=remote, input=b"[core]\n", capture_output=True, check=True
    ).stdout.strip()
    entry = b"100644 config\0" + bytes.fromhex(blob.decode())
    inner = _store(remote, entry)
    tree = _store(remote, b"40000 .GIT\0" + bytes.fromhex(inner))
    commit = git(remote, "commit-tree", tree, "-p", git(remote, "rev-parse", "main"), "-m", "evil")
    git(remote, "update-ref", "refs/heads/main", commit)
    with pytest.raises(Fault):
        fetch(house, holder, run)
    assert house.appliance.engine.branch(run.branch).head == before


def _store(remote: Path, tree: bytes) -> str:
    arguments = ["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"]
    return subprocess.run(arguments, cwd=remote, input=tree, capture_output=True, check=True).stdout.decode().strip()
