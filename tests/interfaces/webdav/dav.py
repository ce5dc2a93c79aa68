"""A small WebDAV client for tests: one request at a time, nothing interpreted but multistatus."""

from __future__ import annotations

import http.client
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from interfaces.web.family import Family, Members
from interfaces.web.pool import Pool
from interfaces.webdav import WebdavDoor
from tests.house_of_doors import HouseOfDoors, Started, open_house
from tests.serving import serving

D = "{DAV:}"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """Return the kind of failure in the body of an error."""
        found = re.search(r">([a-z-]+)</N:code>", self.body.decode())
        return found[1] if found else ""

    @property
    def token(self) -> str:
        """Return the token of the lock that was granted."""
        return self.headers["lock-token"].strip("<>")

    def responses(self) -> dict[str, ElementTree.Element]:
        """Return the responses of a multistatus by address."""
        root = ElementTree.fromstring(self.body)
        assert root.tag == f"{D}multistatus"
        return {response.findtext(f"{D}href", ""): response for response in root}

    def properties(self, href: str, status: int = 200) -> dict[str, ElementTree.Element]:
        """Return the properties of a resource that were told with a status."""
        return {
            element.tag: element
            for propstat in self.responses()[href].iterfind(f"{D}propstat")
            if f" {status} " in propstat.findtext(f"{D}status", "")
            for element in propstat.find(f"{D}prop") or ()
        }


@dataclass
class Dav:
    """A client with one secret, at one address."""

    address: str
    base: str
    credentials: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: bytes | Iterable[bytes] = b"", headers: dict[str, str] | None = None) -> Answer:
        """Send a request about a path below the base (absolute with a slash at its start)."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        sent = {**({"authorization": self.credentials} if self.credentials else {}), **self.extra, **(headers or {})}
        try:
            connection.request(method, self.href(path), body or None, sent, encode_chunked=not isinstance(body, bytes))
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def href(self, path: str) -> str:
        """Return the absolute path of an address."""
        return path if path.startswith("/") else self.base + path

    def put(self, path: str, body: bytes = b"content", **headers: str) -> Answer:
        """Put a file."""
        return self.ask("PUT", path, body, _dashed(headers))

    def get(self, path: str, **headers: str) -> Answer:
        """Get a file."""
        return self.ask("GET", path, b"", _dashed(headers))

    def mkcol(self, path: str, **headers: str) -> Answer:
        """Make a collection."""
        return self.ask("MKCOL", path, b"", _dashed(headers))

    def delete(self, path: str, **headers: str) -> Answer:
        """Remove."""
        return self.ask("DELETE", path, b"", _dashed(headers))

    def transfer(self, method: str, source: str, target: str, **headers: str) -> Answer:
        """Copy or move."""
        return self.ask(method, source, b"", {"destination": f"http://{self.address}{self.href(target)}", **_dashed(headers)})

    def find(self, path: str, *names: str, depth: str = "0", **headers: str) -> Answer:
        """Ask for properties (``D:name``, or ``{namespace}name``); for everything when none is named."""
        wanted = "".join(_element(name) for name in names)
        body = f'<?xml version="1.0"?><D:propfind xmlns:D="DAV:"><D:prop>{wanted}</D:prop></D:propfind>' if names else ""
        return self.ask("PROPFIND", path, body.encode(), {"depth": depth, **_dashed(headers)})

    def patch(self, path: str, instructions: str, **headers: str) -> Answer:
        """Change properties by instructions (``D:set`` and ``D:remove`` elements)."""
        body = f'<?xml version="1.0"?><D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:z">{instructions}</D:propertyupdate>'
        return self.ask("PROPPATCH", path, body.encode(), _dashed(headers))

    def lock(self, path: str, scope: str = "exclusive", owner: str = "<D:owner>me</D:owner>", **headers: str) -> Answer:
        """Take a lock."""
        body = (
            f'<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:{scope}/></D:lockscope>'
            f"<D:locktype><D:write/></D:locktype>{owner}</D:lockinfo>"
        )
        return self.ask("LOCK", path, body.encode(), _dashed(headers))

    def unlock(self, path: str, token: str) -> Answer:
        """End a lock."""
        return self.ask("UNLOCK", path, b"", {"lock-token": f"<{token}>"})

    def etag(self, path: str) -> str:
        """Return the entity tag of a file."""
        return self.ask("HEAD", path).headers["etag"]


@dataclass(frozen=True)
class DavHouse:
    """An appliance whose WebDAV door is served."""

    house: HouseOfDoors
    address: str

    def client(self, secret: str, base: str) -> Dav:
        """Return a client with a secret."""
        return Dav(self.address, base, f"Bearer {secret}")

    def owner(self, base: str = "/dav/") -> Dav:
        """Return a client of the owner."""
        return self.client(self.house.owner, base)

    def start(self, role: str = "coder", **wanted: object) -> tuple[Started, Dav]:
        """Start a run and return it with a client of its lease in its branch."""
        run = self.house.start_run(role, **wanted)  # type: ignore[arg-type]
        return run, self.client(run.secret, f"/dav/{run.branch}/")


def basic(user: str, password: str) -> str:
    """Return Basic credentials."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


@contextmanager
def worker(house: HouseOfDoors) -> Iterator[str]:
    """Run the block with a worker that serves the door over the state of `house`, and give its address."""
    pool = Pool("dav", 8)
    door = WebdavDoor(house.control, pool=pool)
    try:
        with serving(Family(Members(http=door, webdav=door))) as url:
            yield url.removeprefix("http://")
    finally:
        pool.close()


@contextmanager
def dav_house(folder: Path, policy: str | None = None) -> Iterator[DavHouse]:
    """Run the block with an appliance whose WebDAV door is served."""
    with open_house(folder, policy=policy) as house, worker(house) as address:
        yield DavHouse(house, address)


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-").strip("-"): value for name, value in headers.items()}


def _element(name: str) -> str:
    if name.startswith("{"):
        namespace, _, local = name[1:].partition("}")
        return f'<X:{local} xmlns:X="{namespace}"/>'
    return f"<{name}/>"
