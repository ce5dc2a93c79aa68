"""A real issuer (the npm package oidc-provider) in a process of its own, and what it hands out."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
from joserfc.jwk import ECKey, RSAKey

AUDIENCE = "https://nas.example"
ROOT = Path(__file__).parents[3]
NODE = ROOT / ".venv" / "bin" / "node"


@dataclass(frozen=True, slots=True)
class RealIssuer:
    """A running issuer."""

    url: str

    def robot_token(self) -> str:
        """Return an access token that the program `robot` gets for itself."""
        answer = httpx2.post(
            f"{self.url}/token",
            data={"grant_type": "client_credentials", "scope": "storage", "resource": AUDIENCE},
            auth=("robot", "robot-secret-of-tests"),
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])


def fresh_keys(kind: str = "RSA", kid: str = "one") -> list[Mapping[str, Any]]:
    """Return a private key set with one key."""
    key = RSAKey.generate_key(2048) if kind == "RSA" else ECKey.generate_key("P-256")
    return [{**key.as_dict(private=True), "kid": kid, "use": "sig", "alg": "RS256" if kind == "RSA" else "ES256"}]


def free_port() -> int:
    """Return a port that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def running_issuer(
    port: int, keys: Sequence[Mapping[str, Any]], *, algorithm: str = "RS256", lifetime: int = 600, groups: Mapping[str, Any] | None = None
) -> Iterator[RealIssuer]:
    """Run an issuer with these keys while the block does."""
    asked = {
        "modules": node_modules(),
        "port": port,
        "keys": list(keys),
        "audience": AUDIENCE,
        "lifetime": lifetime,
        "algorithm": algorithm,
        "groups": groups or {},
    }
    process = subprocess.Popen(
        [NODE, ROOT / "tests" / "node" / "issuer.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        try:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            url = process.stdout.readline().strip()
            assert url, process.stderr.read()
            yield RealIssuer(url)
        finally:
            process.kill()


@cache
def node_modules() -> str:
    """Return the folder of the node packages of tests, installing them when they are not there."""
    found = subprocess.run([ROOT / "script" / "node-modules"], capture_output=True, text=True, check=True)
    return found.stdout.strip()
