"""Two workers side by side are one server: what was begun at one is continued at the other, and both say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TypeVar

import pytest
from defusedxml.ElementTree import fromstring

from interfaces.faults import Kind
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.http import HTTP, Files
from tests.contract.doors.clients.mcp import MCP, Tools
from tests.contract.doors.clients.s3 import S3, Bucket
from tests.contract.doors.clients.webdav import WEBDAV, Dav
from tests.contract.doors.clients.wire import Wire
from tests.contract.doors.model import Refused
from tests.contract.doors.site import Held, Site, open_site
from tests.e2e.side_by_side import connect_to

Reaching = Files | Dav | Bucket | Tools
FAMILY: tuple[tuple[Door, type[Reaching]], ...] = ((HTTP, Files), (WEBDAV, Dav), (S3, Bucket), (MCP, Tools))
LOCK = (
    b'<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype>'
    b"<D:owner>somebody</D:owner></D:lockinfo>"
)
Reached = TypeVar("Reached", bound=Wire)


class Pairs:
    """Clients in pairs, each of a pair connected to a worker of its own."""

    def __init__(self, site: Site, stack: ExitStack) -> None:
        self.site = site
        self._stack = stack

    def of(self, door: Door, held: Held, kind: type[Reached]) -> tuple[Reached, Reached]:
        """Return two clients of a door for one lease."""
        workers = self.site.status()["gateways"]
        assert len(workers) == 2
        return self._at(door, held, kind, workers, 0), self._at(door, held, kind, workers, 1)

    def _at(self, door: Door, held: Held, kind: type[Reached], workers: list[int], number: int) -> Reached:
        client: object = self._stack.enter_context(closing(door.connect(self.site, held)))
        assert isinstance(client, kind)
        connect_to(client, workers[number], workers)
        return client


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("workers"), workers=2) as opened:
        yield opened


@pytest.fixture
def pairs(site: Site) -> Iterator[Pairs]:
    with ExitStack() as stack:
        yield Pairs(site, stack)


def unlike(told: list[bytes]) -> list[bytes]:
    """Return answers without what is each answer's own: the id of its request and its time."""
    own = re.compile(rb"^(x-request-id|x-amz-request-id|date): (.*)$", re.MULTILINE)
    return [_erase(answer, [value for _, value in own.findall(answer)]) for answer in told]


def _erase(answer: bytes, values: list[bytes]) -> bytes:
    for value in values:
        answer = answer.replace(value, b"")
    return answer


@pytest.mark.parametrize(("door", "kind"), FAMILY, ids=[door.name for door, _ in FAMILY])
def test_both_say_the_same(pairs: Pairs, door: Door, kind: type[Reaching]) -> None:
    one, other = pairs.of(door, pairs.site.start(("work/**", "keys/**")), kind)
    for client in (one, other):
        for path in ("work/read/file", "hidden/read/file", "absent/read/file", "keys/read/id_rsa"):
            for ask in (client.read, client.stat):
                try:
                    ask(path)
                except Refused:
                    continue
        client.list("work/read")
        client.search("work/search", "needle")
    assert len(one.told) >= 10
    assert unlike(one.told) == unlike(other.told)


@pytest.mark.parametrize(("door", "kind"), FAMILY, ids=[door.name for door, _ in FAMILY])
def test_a_lease_that_was_taken_back_is_refused_by_both(pairs: Pairs, door: Door, kind: type[Reaching]) -> None:
    held = pairs.site.start()
    one, other = pairs.of(door, held, kind)
    for client in (one, other):
        assert client.read("work/read/file")
    pairs.site.revoke(held)
    for client in (one, other):
        with pytest.raises(Refused) as refused:
            client.read("work/read/file")
        assert Kind.REVOKED in door.words[refused.value.word]


def test_a_lock_taken_at_one_is_held_at_the_other(pairs: Pairs) -> None:
    one, other = pairs.of(WEBDAV, pairs.site.start(), Dav)
    taken = one.ask("LOCK", "work/read/file", LOCK, {"Timeout": "Second-600", "Content-Type": "application/xml"})
    token = taken.headers["lock-token"]
    with pytest.raises(Refused, match="423"):
        other.write("work/read/file", b"without the token\n")
    other.ask("PUT", "work/read/file", b"with the token\n", {"If": f"({token})"})
    assert one.read("work/read/file") == b"with the token\n"
    other.ask("UNLOCK", "work/read/file", headers={"Lock-Token": token})
    one.write("work/read/file", b"after the lock\n")
    assert other.read("work/read/file") == b"after the lock\n"


def test_an_upload_in_parts_goes_to_both(pairs: Pairs) -> None:
    one, other = pairs.of(S3, pairs.site.start(), Bucket)
    parts = [b"a" * (5 << 20), b"b" * 100]
    upload = _find(one.ask("POST", "work/joined", query="uploads=").body, "UploadId")
    tags = [
        client.ask("PUT", "work/joined", part, query=f"partNumber={number}&uploadId={upload}").headers["etag"]
        for number, client, part in ((1, one, parts[0]), (2, other, parts[1]))
    ]
    listed = fromstring(one.ask("GET", "work/joined", query=f"uploadId={upload}").body)
    assert [element.text for element in listed.iter() if element.tag.endswith("PartNumber")] == ["1", "2"]
    done = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(tags, 1))
    other.ask("POST", "work/joined", f"<CompleteMultipartUpload>{done}</CompleteMultipartUpload>".encode(), query=f"uploadId={upload}")
    assert one.read("work/joined") == b"".join(parts)


def _find(body: bytes, name: str) -> str:
    return next(element.text or "" for element in fromstring(body).iter() if element.tag.endswith(name))


def test_a_file_read_in_pieces_over_mcp_is_continued_at_the_other(pairs: Pairs) -> None:
    one, other = pairs.of(MCP, pairs.site.start(), Tools)
    text = "".join(f"line {number}\n" for number in range(1000))
    one.call("write", path="work/long", content=text)
    first = other.call("read", path="work/long", max_tokens=500)
    rest = one.call("read", path="work/long", cursor=first["cursor"], max_tokens=100_000)
    assert first["truncated"]
    assert first["text"] + rest["text"] == text


@pytest.mark.parametrize(("door", "kind"), [(HTTP, Files), (WEBDAV, Dav), (S3, Bucket)], ids=["HTTP", "WebDAV", "S3"])
def test_a_condition_from_one_holds_at_the_other(pairs: Pairs, door: Door, kind: type[Files | Dav | Bucket]) -> None:
    one, other = pairs.of(door, pairs.site.start(), kind)
    seen = one.ask("GET", "work/read/file").headers["etag"]
    other.ask("PUT", "work/read/file", b"the other one was first\n", {"If-Match": seen})
    with pytest.raises(Refused) as refused:
        one.ask("PUT", "work/read/file", b"too late\n", {"If-Match": seen})
    assert door.words[refused.value.word] == {Kind.PRECONDITION}
    assert one.read("work/read/file") == b"the other one was first\n"
