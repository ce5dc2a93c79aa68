"""T12: XML that reads files, or grows. CVE-2015-1833 (Jackrabbit); billion laughs; 200,000 levels."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from tests.attacks.stand import Stand
from tests.contract.doors.clients.s3 import S3, Bucket
from tests.contract.doors.clients.webdav import WEBDAV, Dav
from tests.contract.doors.model import Refused

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
PROPFIND = b'<D:propfind xmlns:D="DAV:"><D:prop>&x;</D:prop></D:propfind>'
BOMBS = {
    "a file": b'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + PROPFIND,
    "a parameter": b'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]><D:propfind xmlns:D="DAV:"/>',
    "laughs": f'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY l0 "ha">{LAUGHS}]><p>&l9;</p>'.encode(),
    "blow-up": b'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a "' + b"a" * 40_000 + b'">]><p>' + b"&a;" * 5_000 + b"</p>",
    "deep": b"<a>" * 10_000 + b"</a>" * 10_000,
    "too deep": b"<a>" * 200_000 + b"</a>" * 200_000,
    "attributes": b"<a " + b" ".join(b'a%d="x"' % number for number in range(5_000)) + b"/>",
}
PATIENCE = 5.0
"""Seconds of a machine that does much else; what is refused at once takes milliseconds."""


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("method", ["PROPFIND", "PROPPATCH", "LOCK"])
def test_webdav_refuses_at_once(stand: Stand, method: str, bomb: str) -> None:
    held = stand.start()
    with closing(WEBDAV.connect(stand, held)) as client:
        assert isinstance(client, Dav)
        began = time.monotonic()
        with pytest.raises(Refused) as refused:
            client.ask(method, "work/a.txt", BOMBS[bomb], {"Depth": "0", "Content-Type": "application/xml"})
        assert time.monotonic() - began < PATIENCE
        assert refused.value.word[:3] in {"400", "413", "422"}, refused.value.word
        assert b"root:" not in b"".join(client.told)
        assert client.read("work/a.txt") == b"one\n"


@pytest.mark.parametrize("bomb", BOMBS)
def test_s3_refuses_at_once(stand: Stand, bomb: str) -> None:
    held = stand.start()
    with closing(S3.connect(stand, held)) as client:
        assert isinstance(client, Bucket)
        for method, key, query in (("POST", "", "delete"), ("PUT", "work/a.txt", "tagging"), ("POST", "work/a.txt", "uploadId=x")):
            began = time.monotonic()
            with pytest.raises(Refused):
                client.ask(method, key, BOMBS[bomb], query=query)
            assert time.monotonic() - began < PATIENCE
        assert b"root:" not in b"".join(client.told)
        assert client.read("work/a.txt") == b"one\n"
