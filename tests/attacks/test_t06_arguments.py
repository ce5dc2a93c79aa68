"""T6: a name that is an option. CVE-2025-68143, and the leading dashes of mcp-server-git."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from interfaces.faults import Fault
from tests.attacks.stand import Repository, Stand
from tests.contract.doors.clients.wire import Wire

HOSTILE = (
    "--upload-pack=touch {mark}",
    "-c core.sshCommand=touch {mark}",
    "--exec=touch {mark}",
    "-oProxyCommand=touch {mark}",
    "ext::sh -c touch% {mark}",
    "--output={mark}",
    "$(touch {mark})",
    "`touch {mark}`",
    "; touch {mark}",
    "--git-dir=/tmp",
    "@{u}",
    "-",
)
OPERATIONS = {
    "run.show": "run",
    "run.end": "run",
    "commit.make": "branch",
    "history.log": "branch",
    "history.show": "commit",
    "git.publish": "branch",
    "proposal.make": "run",
    "proposal.show": "proposal",
    "bucket.create": "bucket",
    "gate.show": "gate",
    "account.show": "account",
}


def test_no_name_becomes_an_option_or_a_command(stand: Stand, tmp_path: Path) -> None:
    mark = tmp_path / "owned"
    names = [name.replace("{mark}", str(mark)) for name in HOSTILE]
    held = stand.start()
    for name in names:
        for operation, argument in OPERATIONS.items():
            with pytest.raises(Fault):
                stand.call(operation, **{argument: name})
        for verb in (("log", name), ("diff", name), ("mount", name, str(tmp_path)), ("restore", name, "x"), ("branch", "show", name)):
            done = stand.nas.run(*verb, expect=None)
            assert done.returncode != 0 and "Traceback" not in done.stderr, verb
        with closing(Wire(stand.doors["http"])) as wire:
            headers = {"Authorization": f"Bearer {held.secret}"}
            for path in (
                f"/git/{quote(name, safe='')}.git/info/refs?service=git-upload-pack",
                f"/v1/branches/{quote(name, safe='')}/files/a",
            ):
                assert wire.send("GET", path, headers, None).status in {400, 401, 403, 404}
    with closing(Repository(stand, held)) as repository:
        for name in names:
            done = repository.run("push", "-q", "origin", f"{repository.head}:refs/heads/{name}")
            assert done.returncode != 0
    assert not mark.exists()


def test_a_service_that_is_no_service_of_git_is_refused(stand: Stand) -> None:
    held = stand.start()
    with closing(Wire(stand.doors["http"])) as wire:
        headers = {"Authorization": f"Bearer {held.secret}", "Git-Protocol": "version=2:--upload-pack=touch"}
        base = f"/git/{held.run}.git/info/refs?service="
        for service in ("git-upload-archive", "--upload-pack=x", "git-upload-pack%00", "sh"):
            assert wire.send("GET", base + service, headers, None).status >= 400
