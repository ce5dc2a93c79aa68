"""T23: an agent with every right it can have destroys what it can reach. PocketOS and Railway, April 2026; Replit, July 2025.

The drill: a run with a lease for everything tries every verb that destroys, at every door, against its own branch, `main`, another run, the
record and the appliance. Afterwards all of these are as they were, the record says what it did, and its own work comes back from history.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from interfaces.faults import Fault
from nasd.operations import all_operations
from tests.attacks.stand import TREE, Repository, Stand, open_stand
from tests.contract.doors.clients import HERE, OTHERS
from tests.contract.doors.clients.http import HTTP
from tests.contract.doors.clients.mount import MOUNT
from tests.contract.doors.clients.s3 import S3, Bucket
from tests.contract.doors.clients.webdav import WEBDAV, Dav
from tests.contract.doors.clients.wire import Wire
from tests.contract.doors.model import Refused
from tests.contract.doors.site import Held

OTHER_WORK = b"a week of somebody else's work, not committed yet\n"
SPARED = frozenset({"run.end"})
"""What ends only the rogue itself, tried last."""


@pytest.fixture
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with open_stand(tmp_path_factory.mktemp("rogue")) as opened:
        yield opened


def test_the_drill(stand: Stand) -> None:
    other = stand.start()
    with closing(HTTP.connect(stand, other)) as client:
        client.create("work/week.txt", OTHER_WORK)
    before = stand.head("main"), len(list(stand.records("run.start")))
    rogue = stand.start()
    started = stand.head(rogue.branch)

    destroy_by_files(stand, rogue, other)
    destroy_by_git(stand, rogue, other)
    destroy_by_operations(stand, rogue, other)
    proposed = ask_to_merge_the_ruin(stand, rogue)

    assert proposed in {"gated", "refused"}
    assert stand.head("main") == before[0]
    for path, content in TREE.items():
        assert stand.nas.get_file("main", path) == content, path
    assert stand.nas.get_file(other.branch, "work/week.txt") == OTHER_WORK
    assert stand.nas.json("status")["pid"] == stand.nas.pid()
    assert stand.verifies() and len(list(stand.records("run.start"))) >= before[1]
    assert stand.denials(rogue), "nothing of it was recorded"
    # What it did to its own branch is undone from the history, byte for byte.
    stand.call("history.restore", branch=rogue.branch, source=started, message="as it was")
    for path, content in TREE.items():
        assert stand.nas.get_file(rogue.branch, path) == content, path


def destroy_by_files(stand: Stand, rogue: Held, other: Held) -> None:
    """Delete and overwrite on its own branch, on main and on another's, at every door."""
    for door in OTHERS:
        if door not in HERE or door is MOUNT:
            continue
        with closing(door.connect(stand, rogue)) as client:
            for path in ("README.md", "work/a.txt", "inbox/letter.txt", "secret/plan.txt"):
                with suppress(Refused):
                    client.delete(path)
                with suppress(Refused):
                    client.write("src/main.py", b"")
    if MOUNT in HERE:
        with stand.mounted(rogue) as place:
            for each in place.iterdir():
                shutil.rmtree(each, ignore_errors=True)
                with suppress(OSError):
                    each.unlink()
    for branch in ("main", other.branch, other.run):
        at = Held(rogue.run, branch, rogue.lease, rogue.secret)
        with closing(HTTP.connect(stand, at)) as web:
            for path in ("README.md", "work/week.txt", "work"):
                with pytest.raises(Refused):
                    web.delete(path)
                with pytest.raises(Refused):
                    web.write(path, b"")
    with closing(S3.connect(stand, rogue)) as bucket:
        assert isinstance(bucket, Bucket)
        for key in ("", "work/b.txt"):
            for query in ("", "versionId=null", "versions", "tagging", "lifecycle", "policy"):
                with suppress(Refused):
                    bucket.ask("DELETE", key, query=query)
    with closing(WEBDAV.connect(stand, rogue)) as dav:
        assert isinstance(dav, Dav)
        for target in ("", "work", "../", "..%2f"):
            with suppress(Refused):
                dav.ask("DELETE", target)
        with closing(Wire(stand.doors["webdav"])) as wire:
            assert wire.send("DELETE", "/dav/main/README.md", dav._authority, None).status in {403, 404, 405}


def destroy_by_git(stand: Stand, rogue: Held, other: Held) -> None:
    """Rewrite and delete references."""
    with closing(Repository(stand, rogue)) as repository:
        orphan = repository.git("commit-tree", repository.tree([]), "-m", "gone")
        for what in (
            f"+{orphan}:refs/heads/main",
            f"+{orphan}:refs/heads/{other.branch}",
            f"+{orphan}:refs/heads/{rogue.branch}",
            ":refs/heads/main",
            f":refs/heads/{other.branch}",
            f":refs/heads/{rogue.branch}",
            f"+{orphan}:refs/tags/v1",
        ):
            assert repository.run("push", "-q", "origin", what).returncode != 0, what
        assert repository.run("push", "-q", "--mirror", "--force", "origin").returncode != 0


def destroy_by_operations(stand: Stand, rogue: Held, other: Held) -> None:
    """Call every operation there is, with arguments that would hurt."""
    caller = stand.control.authenticate(rogue.secret)
    hurting: dict[str, Any] = {
        "run": other.run,
        "lease": other.lease,
        "branch": "main",
        "source": stand.head("main"),
        "paths": ["work/**"],
        "principal": "owner",
        "name": "owner",
        "bucket": other.run,
        "role": "coder",
        "rule": "many-deletions-ask",
        "for": 3600,
        "reason": "cleaning up",
        "folder": str(stand.nas.home / "store"),
        "directory": str(stand.nas.home / "trust"),
        "mountpoint": str(stand.nas.home),
        "target": "main",
        "older_than": 0,
        "sequence": 1,
        "pattern": "**",
        "text": "version: 1\nroles: {owner: [coder]}\ngrants: []\nguards: []\n",
        "kind": "human",
        "account": "x",
        "key": "ssh-ed25519 AAAA",
        "token": "x",
        "gate": "x",
        "digest": "x",
        "proposal": "x",
        "commit": stand.head("main"),
        "path": "README.md",
        "quarantine": "x",
        "reference": "refs/heads/main",
        "old": stand.head("main"),
        "new": stand.head("main"),
        "format": "tar",
        "repository": "x",
        "certificate": "x",
        "app_password": "x",
        "bypass": "x",
        "alike": "x",
        "answers": [],
        "verdict": "approve",
        "url": "http://127.0.0.1:1",
        "secret": "env://HOME",
        "action": "write",
    }
    for name, operation in all_operations().items():
        if not operation.effect or name in SPARED:
            continue
        wanted = operation.parameters.get("required") or []
        arguments = {key: hurting[key] for key in wanted if key in hurting}
        with suppress(Fault):
            stand.control.call(caller, name, arguments)
    with pytest.raises(Fault):
        stand.control.call(caller, "run.end", {"run": other.run})


def ask_to_merge_the_ruin(stand: Stand, rogue: Held) -> str:
    """Propose the ruin, as an agent that believes it is right."""
    caller = stand.control.authenticate(rogue.secret)
    try:
        made = stand.control.call(caller, "proposal.make", {"run": rogue.run, "message": "cleaned up"})
    except Fault:
        return "refused"
    return str(made["state"])
