"""The HTTP files API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from interfaces.faults import Kind
from tests.contract.doors.clients.door import Aspect, Difference, Door, one_kind_each
from tests.contract.doors.clients.wire import Reply, Wire
from tests.contract.doors.leases import Standing
from tests.contract.doors.model import Operation, Refused, Seen
from tests.contract.doors.site import Held, Site

_JSON = {"Content-Type": "application/json"}


class Files(Wire):
    """A client of ``/v1/branches/{branch}/files``."""

    def __init__(self, url: str, branch: str, secret: str) -> None:
        super().__init__(url)
        self._base = f"/v1/branches/{quote(branch, safe='')}/files/"
        self._authority = {"Authorization": f"Bearer {secret}"}

    def read(self, path: str) -> bytes:
        return self.ask("GET", path).body

    def list(self, path: str) -> tuple[str, ...]:
        return tuple(item["name"] for item in self.ask("GET", f"{path}?list").json()["items"])

    def stat(self, path: str) -> Seen:
        found = self.ask("GET", f"{path}?stat").json()
        return Seen(found["type"] == "directory", found["size"])

    def write(self, path: str, content: bytes) -> None:
        self.ask("PUT", path, content)

    def create(self, path: str, content: bytes) -> None:
        self.ask("PUT", path, content, {"If-None-Match": "*"})

    def append(self, path: str, content: bytes) -> None:
        self.ask("POST", f"{path}?op=append", content)

    def copy(self, path: str, target: str) -> None:
        self.ask("POST", f"{path}?op=copy", json.dumps({"to": target}).encode(), _JSON)

    def move(self, path: str, target: str) -> None:
        self.ask("POST", f"{path}?op=move", json.dumps({"to": target}).encode(), _JSON)

    def delete(self, path: str) -> None:
        self.ask("DELETE", path)

    def search(self, path: str, text: str) -> tuple[str, ...]:
        found = self.ask("GET", f"{path}?search={quote(text)}").json()
        for failure in found["failures"]:
            raise Refused(f"in failures: {failure['code']}")
        return tuple(item["path"].rpartition("/")[2] for item in found["items"])

    def ask(self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send one request about a path and return its answer. Raises `Refused`."""
        reply = self.send(method, self._base + target, self._authority | dict(headers or {}), body)
        if reply.status >= 400:
            raise Refused(f"{reply.status} {reply.json()['code']}")
        return reply


WORDS = one_kind_each(
    {
        "400 invalid": Kind.INVALID,
        "400 name-too-long": Kind.NAME_TOO_LONG,
        "401 expired": Kind.EXPIRED,
        "401 revoked": Kind.REVOKED,
        "401 unauthenticated": Kind.UNAUTHENTICATED,
        "403 budget-spent": Kind.BUDGET,
        "403 denied": Kind.DENIED,
        "403 gated": Kind.GATED,
        "403 not-permitted": Kind.NOT_PERMITTED,
        "403 read-only": Kind.READ_ONLY,
        "404 no-attribute": Kind.NO_ATTRIBUTE,
        "404 not-found": Kind.NOT_FOUND,
        "409 conflict": Kind.CONFLICT,
        "409 exists": Kind.EXISTS,
        "409 into-itself": Kind.INTO_ITSELF,
        "409 is-a-directory": Kind.IS_A_DIRECTORY,
        "409 loop": Kind.LOOP,
        "409 not-a-directory": Kind.NOT_A_DIRECTORY,
        "409 not-empty": Kind.NOT_EMPTY,
        "409 stale": Kind.STALE,
        "409 too-many-links": Kind.TOO_MANY_LINKS,
        "412 precondition-failed": Kind.PRECONDITION,
        "413 too-large": Kind.TOO_LARGE,
        "422 key-reused": Kind.KEY_REUSED,
        "423 busy": Kind.BUSY,
        "429 throttled": Kind.THROTTLED,
        "500 corrupt": Kind.CORRUPT,
        "500 internal": Kind.INTERNAL,
        "501 unsupported": Kind.UNSUPPORTED,
        "503 unavailable": Kind.UNAVAILABLE,
        "507 no-space": Kind.NO_SPACE,
        # A search goes on past a file that it may not read, and says so.
        **{f"in failures: {kind.value}": kind for kind in Kind},
    }
)


def _connect(site: Site, held: Held) -> Files:
    return Files(site.doors["http"], held.branch, held.secret)


_MAKES = "`?op=append` makes a file that is not there, which is denied, there or not"

HTTP = Door(
    "HTTP",
    _connect,
    WORDS,
    differs=(
        Difference(Aspect.DECISION, {Standing.BESIDE}, {Operation.APPEND}, _MAKES),
        Difference(Aspect.RECORD, {Standing.BESIDE}, {Operation.APPEND}, _MAKES),
    ),
)
