"""Secrets from a Vault-compatible server (HashiCorp Vault, OpenBao): version 2 of its key-value store.

1. Which server and as whom say the variables that Vault's own clients use, in the daemon's environment: ``VAULT_ADDR``,
   ``VAULT_NAMESPACE``, ``VAULT_CACERT``, and ``VAULT_TOKEN`` or ``VAULT_TOKEN_FILE``, or ``VAULT_ROLE_ID`` with ``VAULT_SECRET_ID`` or
   ``VAULT_SECRET_ID_FILE``.
2. With a role it logs in when it must, and again when the server no longer takes the token; that is the one thing kept between uses.
3. What the server says is told as its status and its own error lines, which hold no secret.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from interfaces.faults import Fault, Kind
from nasd.broker.references import missing, read_private
from nasd.broker.wire import Bounds, Reply, exchange
from trust.accounts import Destination, Reference, parse_destination
from trust.errors import AccountInvalid
from trust.secret import Secret

_BOUNDS = Bounds(seconds=15.0, largest=1 << 20)
_REFUSED = 403


class VaultServer:
    """One server, one identity. Any thread may call."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take server and identity from the environment, when something is read."""
        self._environment = environment
        self._token: Secret | None = None
        self._lock = threading.Lock()

    def read(self, reference: Reference) -> str:
        """Return a field of a secret's newest version. Raises `Kind.UNAVAILABLE`."""
        reply = self._ask(reference, self._identify(reference))
        if reply.status == _REFUSED and "VAULT_ROLE_ID" in self._environment:
            reply = self._ask(reference, self._identify(reference, afresh=True))
        if reply.status != 200:
            raise missing(
                reference, f"the vault answers {reply.status}{_errors(reply)}", "look at the path, and at what the token may read"
            )
        value = _parse(reply).get("data", {}).get("data", {}).get(reference.field)
        if not isinstance(value, str):
            raise missing(reference, f"there is no text in the field {reference.field}", "`vault kv get` shows the fields")
        return value

    def _ask(self, reference: Reference, token: Secret) -> Reply:
        mount, _, path = reference.place.partition("/")
        return self._exchange(reference, "GET", f"/v1/{quote(mount)}/data/{quote(path)}", {"X-Vault-Token": token.reveal().decode()}, b"")

    def _identify(self, reference: Reference, *, afresh: bool = False) -> Secret:
        if "VAULT_ROLE_ID" not in self._environment:
            return Secret(self._own(reference, "VAULT_TOKEN"))
        with self._lock:
            if self._token is None or afresh:
                self._token = self._log_in(reference)
            return self._token

    def _log_in(self, reference: Reference) -> Secret:
        role = {"role_id": self._environment["VAULT_ROLE_ID"], "secret_id": self._own(reference, "VAULT_SECRET_ID").decode()}
        reply = self._exchange(reference, "POST", "/v1/auth/approle/login", {}, json.dumps(role).encode())
        token = (_parse(reply).get("auth") or {}).get("client_token") if reply.status == 200 else None
        if not isinstance(token, str):
            raise missing(
                reference, f"the vault lets this role not in: {reply.status}{_errors(reply)}", "look at VAULT_ROLE_ID and its secret"
            )
        return Secret(token.encode())

    def _own(self, reference: Reference, name: str) -> bytes:
        if path := self._environment.get(f"{name}_FILE"):
            return read_private(reference, Path(path)).strip()
        if value := self._environment.get(name):
            return value.encode()
        raise missing(reference, f"the daemon was started without {name}_FILE", "set it where the daemon is started, then restart it")

    def _exchange(self, reference: Reference, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        if space := self._environment.get("VAULT_NAMESPACE"):
            headers = headers | {"X-Vault-Namespace": space}
        try:
            return exchange(self._server(reference), method, target, headers, body, _BOUNDS, self._environment.get("VAULT_CACERT", ""))
        except ValueError:
            raise missing(reference, "the token has characters that cannot be sent", "look at VAULT_TOKEN_FILE") from None

    def _server(self, reference: Reference) -> Destination:
        try:
            return parse_destination(self._environment["VAULT_ADDR"])
        except KeyError:
            raise missing(reference, "the daemon was started without VAULT_ADDR", "set it where the daemon is started") from None
        except AccountInvalid as error:
            raise Fault(Kind.UNAVAILABLE, f"VAULT_ADDR: {error}", hint="name the server as https://HOST:PORT") from None


def _parse(reply: Reply) -> dict[str, Any]:
    try:
        document = json.loads(reply.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _errors(reply: Reply) -> str:
    errors = _parse(reply).get("errors") or []
    return f" ({'; '.join(str(error)[:200] for error in errors[:3])})" if errors else ""
