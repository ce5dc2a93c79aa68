"""T13: who holds which state at WebDAV. CVE-2026-45691 (a cookie as a bearer), CVE-2026-45283 (locks), CVE-2026-84473 (guessing)."""

from __future__ import annotations

import base64
import re
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.attacks.stand import Stand, open_stand
from tests.contract.doors.clients.webdav import WEBDAV, Dav
from tests.contract.doors.clients.wire import Wire
from tests.contract.doors.model import Refused

LOCK = b'<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>'


def test_a_whole_tree_is_not_asked_for_at_once(stand: Stand) -> None:
    with closing(WEBDAV.connect(stand, stand.start())) as client:
        assert isinstance(client, Dav)
        for headers in ({"Depth": "infinity"}, {}):
            with pytest.raises(Refused, match="403"):
                client.ask("PROPFIND", "", headers=headers)


def test_a_lock_is_its_owners(stand: Stand) -> None:
    held = stand.start()
    owner = stand.nas.json("app-password", "create", "--for", "webdav")
    with closing(WEBDAV.connect(stand, held)) as mine:
        assert isinstance(mine, Dav)
        token = re.search(rb"urn:uuid:[0-9a-f-]+", mine.ask("LOCK", "work/a.txt", LOCK, {"Depth": "0"}).body)
        assert token is not None
        with pytest.raises(Refused, match="423"):
            mine.write("work/a.txt", b"without the token")
        secret = owner["secret"] if "secret" in owner else owner["password"]
        theirs = base64.b64encode(f"owner:{secret}".encode()).decode()
        base = urlsplit(stand.credentials(held, "webdav")["url"]).path
        with closing(Wire(stand.doors["webdav"])) as wire:
            headers = {"Authorization": f"Basic {theirs}", "Lock-Token": f"<{token[0].decode()}>"}
            assert wire.send("UNLOCK", f"{base}work/a.txt", headers, None).status in {401, 403, 409, 412}
        with pytest.raises(Refused, match="423"):
            mine.write("work/a.txt", b"still locked")


def test_nothing_but_a_password_lets_in(stand: Stand) -> None:
    held = stand.start()
    base = urlsplit(stand.credentials(held, "webdav")["url"]).path
    token = stand.nas.token()
    with closing(Wire(stand.doors["webdav"])) as wire:
        for headers in (
            {},
            {"Cookie": f"session={held.secret}"},
            {"X-Auth-Token": held.secret},
            {"Authorization": f"Negotiate {held.secret}"},
            {"Authorization": "Basic " + base64.b64encode(f"{held.secret}:".encode()).decode()},
            {"Authorization": "Basic " + base64.b64encode(b"owner:owner").decode()},
            {"X-Forwarded-User": "owner", "Remote-User": "owner", "Client-Cert": ":AAAA:", "X-Remote-User": token},
        ):
            assert wire.send("GET", f"{base}work/a.txt", headers, None).status == 401, headers
        assert wire.send("GET", f"{base}work/a.txt?access_token={held.secret}", {}, None).status == 401


def test_guessing_waits_and_is_recorded_and_locks_nobody_else_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    with open_stand(tmp_path_factory.mktemp("guessing")) as stand:
        held = stand.start()
        given = stand.credentials(held, "webdav")
        base = urlsplit(given["url"]).path
        statuses = []
        with closing(Wire(given["url"])) as wire:
            for number in range(60):
                wrong = base64.b64encode(f"{given['settings']['user']}:wrong-{number}".encode()).decode()
                statuses.append(wire.send("GET", f"{base}work/a.txt", {"Authorization": f"Basic {wrong}"}, None).status)
        assert statuses[0] == 401 and statuses[-1] == 429, statuses
        assert stand.nas.json("status")["pid"], "the owner was locked out"
        locked = stand.records("auth.locked")
        assert 1 <= len(locked) < 10, "a burst is recorded once, not once a guess"
