"""Git over SSH: a real sshd on a loopback port, whose forced command is the installed ``nas ssh``."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import Nas
from tests.interfaces.git.conftest import attempt, commit, git, refused

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or ""

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="an sshd that logs anybody in needs root"),
    pytest.mark.skipif(not SSHD, reason="there is no sshd on this machine"),
]


@dataclass
class Way:
    """How git reaches an appliance over SSH."""

    nas: Nas
    folder: Path
    port: int

    @property
    def user(self) -> str:
        return pwd.getpwuid(os.geteuid()).pw_name

    def key(self, name: str) -> Path:
        path = self.folder / f"{name}{len(list(self.folder.iterdir()))}"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", os.fspath(path)], check=True)
        return path

    def let_in(self) -> None:
        """Write what the appliance says an SSH server should let in."""
        authorized = self.folder / "authorized_keys"
        authorized.write_text(self.nas.run("key", "authorized").stdout)
        authorized.chmod(0o600)

    def ssh(self, key: Path) -> dict[str, str]:
        options = f"-i {key} -p {self.port} -F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        return {"GIT_SSH_COMMAND": f"ssh {options} -o LogLevel=ERROR -o BatchMode=yes"}

    def address(self, branch: str) -> str:
        return f"{self.user}@127.0.0.1:/git/{branch}.git"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def way(shared: Nas, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp("ssh")
    made = Way(shared, folder, free_port())
    host = made.key("host")
    settings = [
        f"Port {made.port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {host}",
        f"AuthorizedKeysFile {folder / 'authorized_keys'}",
        "AcceptEnv GIT_PROTOCOL",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "PermitRootLogin yes",
        f"PidFile {folder / 'pid'}",
    ]
    (folder / "config").write_text("\n".join([*settings, ""]))
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", os.fspath(folder / "config")], stderr=subprocess.DEVNULL)
    try:
        _wait_for(made.port, server)
        yield made
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        assert server.poll() is None, "sshd did not start"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("sshd does not listen")


def test_a_run_clones_fetches_and_pushes_with_its_key(way: Way, tmp_path: Path) -> None:
    run = way.nas.start()
    key = way.key("agent")
    way.nas.run("key", "add", f"{key}.pub", "--lease", run["lease"])
    way.let_in()
    for version in ("0", "2"):
        clone = tmp_path / f"clone{version}"
        git(tmp_path, "-c", f"protocol.version={version}", "clone", "--quiet", way.address(run["branch"]), os.fspath(clone), **way.ssh(key))
        pushed = commit(clone, {f"file{version}": os.urandom(200_000)})
        git(clone, "-c", f"protocol.version={version}", "push", "--quiet", "origin", "HEAD", **way.ssh(key))
        assert git(clone, "ls-remote", "origin", "HEAD", **way.ssh(key)).split()[0] == pushed
    git(tmp_path / "clone0", "pull", "--quiet", "--ff-only", **way.ssh(key))
    assert (tmp_path / "clone0/file2").exists()
    said = refused(clone, "push", "origin", "HEAD:main", **way.ssh(key))
    assert f"main moves by merges only: propose the run (nas propose {run['run']})" in said
    other = way.nas.start()
    assert "no such branch" in refused(tmp_path, "ls-remote", way.address(other["branch"]), **way.ssh(key))
    partial = tmp_path / "partial"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", "--depth=1", way.address(run["branch"]), os.fspath(partial), **way.ssh(key))
    assert (partial / "file2").exists()


def test_what_is_not_seen_is_not_sent(way: Way, tmp_path: Path) -> None:
    run, other = way.nas.start(), way.nas.start()
    key = way.key("agent")
    way.nas.run("key", "add", f"{key}.pub", "--lease", run["lease"])
    way.let_in()
    way.nas.put_file(other, "theirs", b"secret")
    hidden = way.nas.json("commit", other["run"])["commit"]
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", way.address(run["branch"]), os.fspath(clone), **way.ssh(key))
    for version in ("0", "2"):
        said = refused(clone, "-c", f"protocol.version={version}", "fetch", "origin", hidden, **way.ssh(key))
        assert f"not our ref {hidden}" in said


def test_a_key_runs_git_and_nothing_else_and_falls_with_its_lease(way: Way, tmp_path: Path) -> None:
    run = way.nas.start()
    key = way.key("agent")
    registered = way.nas.json("key", "add", f"{key}.pub", "--lease", run["lease"])
    assert registered["key"] in [each["key"] for each in way.nas.json("key", "list")]
    way.let_in()
    words = way.ssh(key)["GIT_SSH_COMMAND"].split()
    asked = subprocess.run([*words, f"{way.user}@127.0.0.1", "id"], capture_output=True, text=True, timeout=60, check=False)
    assert asked.returncode != 0
    assert "serves git and nothing else" in asked.stderr
    assert "uid=" not in asked.stdout
    way.nas.run("lease", "revoke", run["lease"], "--reason", "enough")
    assert attempt(tmp_path, "ls-remote", way.address(run["branch"]), **way.ssh(key)).returncode != 0
    assert registered["key"] not in way.nas.run("key", "authorized").stdout
    way.nas.run("key", "remove", registered["key"])
    assert registered["key"] not in [each["key"] for each in way.nas.json("key", "list")]


def test_a_lease_that_is_bound_to_a_key_of_ssh_counts_for_that_key_alone(way: Way, tmp_path: Path) -> None:
    run = way.nas.start()
    key, other = way.key("agent"), way.key("agent")
    fingerprint = subprocess.run(["ssh-keygen", "-l", "-f", f"{key}.pub"], capture_output=True, text=True, check=True).stdout.split()[1]
    bound = json.loads(way.nas.run("lease", "narrow", run["lease"], "--holder", f"ssh:{fingerprint}", "--json").stdout)
    away = json.loads(way.nas.run("lease", "narrow", run["lease"], "--doors", "http,git", "--json").stdout)
    way.nas.run("key", "add", f"{key}.pub", "--lease", bound["lease"])
    way.nas.run("key", "add", f"{other}.pub", "--lease", bound["lease"])
    way.let_in()
    assert git(tmp_path, "ls-remote", way.address(run["branch"]), **way.ssh(key))
    assert "bound to the key" in refused(tmp_path, "ls-remote", way.address(run["branch"]), **way.ssh(other))
    elsewhere = way.key("agent")
    way.nas.run("key", "add", f"{elsewhere}.pub", "--lease", away["lease"])
    way.let_in()
    assert "the lease counts at git, http only" in refused(tmp_path, "ls-remote", way.address(run["branch"]), **way.ssh(elsewhere))


def test_a_person_reads_with_their_own_key(way: Way, tmp_path: Path) -> None:
    run = way.nas.start()
    way.nas.put_file(run, "file", b"1")
    key = way.key("person")
    way.nas.run("key", "add", f"{key}.pub", "--label", "laptop")
    way.let_in()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", way.address(run["run"]), os.fspath(clone), **way.ssh(key))
    assert (clone / "file").read_bytes() == b"1"


def test_large_files_go_on_over_http(way: Way, tmp_path: Path) -> None:
    run = way.nas.start()
    key = way.key("agent")
    way.nas.run("key", "add", f"{key}.pub", "--lease", run["lease"])
    way.let_in()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", way.address(run["branch"]), os.fspath(clone), **way.ssh(key))
    git(clone, "lfs", "install", "--local")
    git(clone, "lfs", "track", "*.big")
    content = os.urandom(100_000)
    commit(clone, {"a.big": content}, "large")
    git(clone, "push", "--quiet", "origin", "HEAD", **way.ssh(key))
    again = tmp_path / "again"
    git(tmp_path, "clone", "--quiet", way.address(run["branch"]), os.fspath(again), **way.ssh(key))
    git(again, "lfs", "install", "--local")
    git(again, "lfs", "pull", **way.ssh(key))
    assert (again / "a.big").read_bytes() == content
