"""WebDAV, by the requests that a file browser sends."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote, urlsplit
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from interfaces.faults import Kind
from tests.contract.doors.clients.composed import MORE_BY_APPENDING, append_by_reading, search_by_reading
from tests.contract.doors.clients.door import Door, one_kind_each
from tests.contract.doors.clients.wire import Reply, Wire
from tests.contract.doors.model import Operation, Refused, Seen
from tests.contract.doors.site import Held, Site

_D = "{DAV:}"


class Dav(Wire):
    """A client of one branch's collection."""

    def __init__(self, url: str, user: str, password: str) -> None:
        super().__init__(url)
        self._base = urlsplit(url).path
        self._url = url
        self._authority = {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}

    def read(self, path: str) -> bytes:
        return self.ask("GET", path).body

    def list(self, path: str) -> tuple[str, ...]:
        found = self._properties(path, "1")
        return tuple(sorted(unquote(_text(each, "href")).rstrip("/").rpartition("/")[2] for each in found[1:]))

    def stat(self, path: str) -> Seen:
        found = self._properties(path, "0")[0]
        is_directory = found.find(f".//{_D}resourcetype/{_D}collection") is not None
        return Seen(is_directory, 0 if is_directory else int(_text(found, "getcontentlength")))

    def write(self, path: str, content: bytes) -> None:
        self.ask("PUT", path, content)

    def create(self, path: str, content: bytes) -> None:
        self.ask("PUT", path, content, {"If-None-Match": "*"})

    def append(self, path: str, content: bytes) -> None:
        found = self.ask("GET", path)
        self.ask("PUT", path, found.body + content, {"If-Match": found.headers["etag"]})

    def copy(self, path: str, target: str) -> None:
        self.ask("COPY", path, headers={"Destination": self._url + quote(target), "Overwrite": "F"})

    def move(self, path: str, target: str) -> None:
        self.ask("MOVE", path, headers={"Destination": self._url + quote(target), "Overwrite": "F"})

    def delete(self, path: str) -> None:
        self.ask("DELETE", path)

    def search(self, path: str, text: str) -> tuple[str, ...]:
        return search_by_reading(self, path, text)

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send one request about a path and return its answer. Raises `Refused`."""
        reply = self.send(method, self._base + quote(path), self._authority | dict(headers or {}), body)
        if reply.status >= 400:
            told = re.search(rb'<N:code xmlns:N="urn:agent-nas">([a-z-]+)</N:code>', reply.body)
            raise Refused(f"{reply.status} {told[1].decode() if told else ''}")
        return reply

    def _properties(self, path: str, depth: str) -> Sequence[Element]:
        return tuple(fromstring(self.ask("PROPFIND", path, headers={"Depth": depth}).body))


def _text(element: Element, name: str) -> str:
    found = element.find(f".//{_D}{name}")
    assert found is not None and found.text is not None
    return found.text


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
        "403 into-itself": Kind.INTO_ITSELF,
        "403 not-permitted": Kind.NOT_PERMITTED,
        "403 read-only": Kind.READ_ONLY,
        "404 loop": Kind.LOOP,
        "404 no-attribute": Kind.NO_ATTRIBUTE,
        "404 not-found": Kind.NOT_FOUND,
        "405 exists": Kind.EXISTS,
        "405 is-a-directory": Kind.IS_A_DIRECTORY,
        "409 conflict": Kind.CONFLICT,
        "409 not-a-directory": Kind.NOT_A_DIRECTORY,
        "409 not-empty": Kind.NOT_EMPTY,
        # The directory above a name is not there (RFC 4918 section 9.7.1).
        "409 not-found": Kind.NOT_FOUND,
        "409 stale": Kind.STALE,
        "409 too-many-links": Kind.TOO_MANY_LINKS,
        "412 precondition-failed": Kind.PRECONDITION,
        "413 too-large": Kind.TOO_LARGE,
        "422 key-reused": Kind.KEY_REUSED,
        "429 throttled": Kind.THROTTLED,
        "500 corrupt": Kind.CORRUPT,
        "500 internal": Kind.INTERNAL,
        "501 unsupported": Kind.UNSUPPORTED,
        "503 busy": Kind.BUSY,
        "503 unavailable": Kind.UNAVAILABLE,
        # A spent budget is a spent quota to who writes (RFC 4331 section 6).
        "507 budget-spent": Kind.BUDGET,
        "507 no-space": Kind.NO_SPACE,
    }
)


def _connect(site: Site, held: Held) -> Dav:
    given = site.credentials(held, "webdav")
    return Dav(given["url"], given["settings"]["user"], given["settings"]["password"])


WEBDAV = Door(
    "WebDAV",
    _connect,
    WORDS,
    by={Operation.APPEND: "GET and PUT with If-Match", Operation.SEARCH: "PROPFIND and GET"},
    differs=append_by_reading(),
    more=MORE_BY_APPENDING,
)
