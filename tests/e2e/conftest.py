"""The installed ``nas`` over a data directory of its own, with a real daemon."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

NAS = Path(sys.executable).with_name("nas")
TIMEOUT = 120


class Nas:
    """One appliance as the command line sees it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.mounts = folder / "mounts"
        self.mounts.mkdir()
        self.environment = {
            "PATH": f"{NAS.parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "NAS_HOME": str(self.home),
            "NAS_WORKERS": "1",  # a worker is a second of reading modules; what is about several asks for them
        }

    def run(self, *arguments: str, expect: int | None = 0, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run ``nas``; a status other than `expect` (None: any) fails the test with what was printed."""
        done = subprocess.run(
            [str(NAS), *arguments],
            env=self.environment | (env or {}),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if expect is not None:
            assert done.returncode == expect, f"nas {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done

    def json(self, *arguments: str, expect: int | None = 0, env: dict[str, str] | None = None) -> Any:
        """Run ``nas … --json`` and return what it printed."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        done = self.run(*arguments[:end], "--json", *arguments[end:], expect=expect, env=env)
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            pytest.fail(f"nas {' '.join(arguments)} printed no JSON: {done.stdout!r} {done.stderr!r}\n{self.logs()}")

    def init(self, *arguments: str) -> Any:
        return self.json("init", *arguments)

    def serve(self) -> None:
        self.run("serve", "--background")

    def stop(self) -> None:
        """Stop the daemon, and take away whatever a failed test left behind."""
        self.run("stop", expect=None)
        for line in Path("/proc/mounts").read_text().splitlines():
            if f" {self.mounts}/" in line:
                subprocess.run(["umount", "-l", line.split()[1]], check=False, capture_output=True)

    def start(self, role: str = "coder", *arguments: str) -> Any:
        return self.json("run", "start", role, *arguments)

    def mount(self, target: str) -> Path:
        place = self.mounts / target.replace("/", "-")
        place.mkdir()
        self.run("mount", target, str(place))
        return place

    def call(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Make one request of the API as the owner and return its document; None when nobody answered."""
        status, content = self._request(method, path, body, self.token())
        return json.loads(content) if status == 200 else None

    def put_file(self, run: Any, path: str, content: bytes) -> bool:
        """Write a file with a run's own secret over HTTP and tell whether that was acknowledged."""
        place = f"/v1/branches/{quote(run['branch'], safe='')}/files/{path}"
        status, _ = self._request("PUT", place, content, run["secret"])
        assert status in (0, 200, 201, 204), f"PUT {path}: {status}"
        return status in (200, 201, 204)

    def get_file(self, branch: str, path: str) -> bytes | None:
        """Read a file over HTTP; None when it is not there."""
        status, content = self._request("GET", f"/v1/branches/{quote(branch, safe='')}/files/{path}", None, self.token())
        return content if status == 200 else None

    def token(self) -> str:
        """Return the owner's own secret."""
        return (self.home / "owner.token").read_text().strip()

    def _request(self, method: str, path: str, body: bytes | None, secret: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("localhost", timeout=TIMEOUT)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(str(self.home / "run" / "nasd.sock"))
            connection.request(method, path, body, {"Authorization": f"Bearer {secret}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def pid(self) -> int:
        return int(self.json("status")["pid"])

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in sorted(self.home.glob("log/*.log")))


def wait_until(holds: Any, seconds: float = 15.0) -> None:
    """Wait for a condition that something else makes true."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def cannot_mount() -> str:
    """Return why this machine mounts nothing, empty when it does."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is missing or closed to this user"
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        return "not root, and fusermount3 is missing"
    return ""


needs_fuse = pytest.mark.skipif(bool(cannot_mount()), reason=cannot_mount() or "mounts work")


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Nas]:
    """An appliance that does not exist yet."""
    nas = Nas(tmp_path)
    yield nas
    nas.stop()


def plant(root: Path) -> Path:
    """Write a small tree with everything a tree can hold and return it."""
    for path, text in {
        "README.md": "hello\n",
        "src/a.py": "a = 1\n",
        "src/b.py": "b = 1\n",
        "secret/plan.txt": "the plan\n",
        "docs/one.md": "1\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "tool").write_text("#!/bin/sh\necho ran\n")
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("README.md")
    (root / "empty").mkdir()
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small directory to import."""
    return plant(tmp_path / "tree")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nas]:
    """A serving appliance that the tests of a module share; each works in runs of its own."""
    folder = tmp_path_factory.mktemp("shared")
    nas = Nas(folder)
    nas.init("--import", str(plant(folder / "tree")))
    nas.serve()
    yield nas
    nas.stop()


@pytest.fixture
def nas(bare: Nas, tree: Path) -> Nas:
    """A serving appliance with `tree` on main."""
    bare.init("--import", str(tree))
    bare.serve()
    return bare
