"""T21: a secret that lies around: logs, arguments, variables, addresses, objects, exports. CVE-2026-21852."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.attacks.stand import Repository, Stand, open_stand
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.mount import MOUNT
from tests.nasd.broker.upstream import Upstream, upstream
from trust.secret import Secret

CANARY = "canary-9f2a-do-not-let-this-out-7c1d"


@pytest.fixture
def server() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


def processes(daemon: int) -> Iterator[Path]:
    """Yield the daemon's process and all that it started, and that these did."""
    parents = {int(folder.name): _parent(folder) for folder in Path("/proc").glob("[0-9]*")}
    family = {daemon}
    while more := {pid for pid, parent in parents.items() if parent in family and pid not in family}:
        family |= more
    yield from (Path(f"/proc/{pid}") for pid in sorted(family))


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_no_secret_is_anywhere_but_with_its_holder(server: Upstream, tmp_path: Path) -> None:
    with open_stand(tmp_path, TOKEN_OF_API=CANARY) as stand:
        secrets = use_everything(stand, server, tmp_path)
        found = list(processes(stand.nas.pid()))
        assert len(found) >= 3, "the processes were not found"
        for folder in found:
            told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            assert not [name for name, secret in secrets.items() if secret.encode() in told], folder
        export = tmp_path / "export"
        stand.nas.run("record", "export", str(export))
        clone = tmp_path / "clone"
        stand.nas.run("export", "main", str(clone), expect=None)
    places = [path for folder in (stand.nas.home, export, clone) for path in folder.rglob("*") if path.is_file()]
    assert len(places) > 20
    own = stand.nas.home / "owner.token"
    for path in places:
        if path != own:
            content = path.read_bytes()
            assert not [name for name, secret in secrets.items() if secret.encode() in content], path
    for repository in {
        path.parent for folder in (stand.nas.home, clone) for path in folder.rglob("HEAD") if (path.parent / "objects").is_dir()
    }:
        told = subprocess.run(
            ["git", "--git-dir", str(repository), "cat-file", "--batch-all-objects", "--batch", "--buffer"],
            capture_output=True,
            check=False,
        ).stdout
        assert not [name for name, secret in secrets.items() if secret.encode() in told], repository


def use_everything(stand: Stand, server: Upstream, folder: Path) -> dict[str, str]:
    """Go through every door, be refused, make mistakes with secrets in them, and return what must not be found."""
    stand.call("account.add", name="api", kind="bearer", url=server.url, secret="env://TOKEN_OF_API", rules=["* **"])
    run = stand.call("run.start", role="coder", paths=["work/**"], destinations=["api"], actions=["read", "list", "write", "egress"])
    caller = stand.control.authenticate(run["secret"])
    stand.control.call(caller, "egress.http", {"account": "api", "path": "/echo", "into": "work/answer.json"})
    assert CANARY.encode() not in (stand.nas.get_file(run["branch"], "work/answer.json") or b"")
    held = stand.start()
    secrets = {"account": CANARY, "lease": run["secret"], "narrowed": held.secret, "owner": stand.nas.token()}
    for door in OTHERS:
        if door is MOUNT:
            continue
        with closing(door.connect(stand, held)) as client:
            assert client.read("work/a.txt") == b"one\n"
    for door in ("webdav", "s3", "git"):
        settings = stand.credentials(held, door)["settings"]
        secrets[f"password of {door}"] = settings["AWS_SECRET_ACCESS_KEY"] if door == "s3" else settings["password"]
    # A person pastes a secret where none belongs: it is refused, and the refusal does not keep it.
    stand.nas.run("run", "show", run["secret"], expect=None)
    stand.nas.run("lease", "show", held.secret, expect=None)
    with closing(Repository(stand, held)) as repository:
        repository.run("push", "-q", "origin", "HEAD:refs/heads/nothing")
    return secrets


def test_a_secret_shows_itself_to_nobody_who_prints_it() -> None:
    secret = Secret(CANARY.encode())
    for text in (str(secret), repr(secret), f"{secret}", f"{secret!r}", "%s" % (secret,)):  # noqa: UP031
        assert CANARY not in text
