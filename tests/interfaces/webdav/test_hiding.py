"""What a lease cannot see is answered exactly as what never existed; what ended is over at once."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.interfaces.webdav.dav import Answer, Dav, DavHouse

VOLATILE = {"date", "x-request-id"}


def same(first: Answer, second: Answer, one: str, other: str) -> None:
    """Assert that two answers differ in nothing but the name that was asked for."""
    assert first.status == second.status
    assert first.body.replace(one.encode(), b"?") == second.body.replace(other.encode(), b"?")
    assert {n: v for n, v in first.headers.items() if n not in VOLATILE} == {n: v for n, v in second.headers.items() if n not in VOLATILE}


@pytest.fixture
def narrow(door: DavHouse) -> Dav:
    """Return a client that sees `src`, and nothing of `secret`, of which somebody else has locked a file."""
    dav = door.start(paths=("src/**",))[1]
    assert door.owner(dav.base).lock("secret/plan.txt").status == 200
    assert door.owner(dav.base).lock("README.md").status == 200
    return dav


REQUESTS = {
    "GET": lambda dav, path: dav.get(path),
    "HEAD": lambda dav, path: dav.ask("HEAD", path),
    "PROPFIND": lambda dav, path: dav.find(path),
    "PUT": lambda dav, path: dav.put(path),
    "PUT if": lambda dav, path: dav.put(path, b"x", if_match="*"),
    "MKCOL": lambda dav, path: dav.mkcol(path),
    "DELETE": lambda dav, path: dav.delete(path),
    "PROPPATCH": lambda dav, path: dav.patch(path, "<D:set><D:prop><Z:a>1</Z:a></D:prop></D:set>"),
    "LOCK": lambda dav, path: dav.lock(path),
    "UNLOCK": lambda dav, path: dav.unlock(path, "urn:uuid:1"),
    "COPY from": lambda dav, path: dav.transfer("COPY", path, "src/x"),
    "MOVE from": lambda dav, path: dav.transfer("MOVE", path, "src/x"),
    "COPY to": lambda dav, path: dav.transfer("COPY", "src/a.py", path),
    "MOVE to": lambda dav, path: dav.transfer("MOVE", "src/a.py", path),
    "COPY to, F": lambda dav, path: dav.transfer("COPY", "src/a.py", path, overwrite="F"),
    "If": lambda dav, path: dav.put("src/a.py", b"x", **{"if": f'<{dav.href(path)}> (["x"])'}),
    "If not": lambda dav, path: dav.put("src/a.py", b"x", **{"if": f'<{dav.href(path)}> (Not ["x"])'}),
}


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize(("hidden", "absent"), [("secret/plan.txt", "sacred/plan.txt"), ("secret", "sacred"), ("README.md", "REALLY.md")])
def test_hidden_is_absent(narrow: Dav, request_name: str, hidden: str, absent: str) -> None:
    ask = REQUESTS[request_name]
    same(ask(narrow, hidden), ask(narrow, absent), hidden, absent)


def test_hidden_names_are_in_no_listing(narrow: Dav) -> None:
    for names in ((), ("D:getetag",)):
        assert set(narrow.find("", *names, depth="1").responses()) == {narrow.href(""), narrow.href("src/")}
    assert b"secret" not in narrow.get("").body


def test_a_link_to_what_is_hidden_is_not_there(door: DavHouse) -> None:
    run, narrow = door.start(paths=("src/**",))
    owner = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    owner.symlink(owner.lookup(1, b"src").node, b"peek", b"../secret/plan.txt")
    assert narrow.get("src/peek").status == 404
    assert narrow.href("src/peek") not in narrow.find("src/", depth="1").responses()


def test_a_collection_with_something_hidden_does_not_go(door: DavHouse) -> None:
    _, narrow = door.start(paths=("docs/seen/**", "docs"))
    assert narrow.mkcol("docs/seen").status in {201, 403}
    answer = narrow.delete("docs")
    assert answer.status in {207, 403, 409}
    assert b"one.md" not in answer.body


def test_a_lease_that_was_taken_back_is_over_at_once(door: DavHouse) -> None:
    run, dav = door.start()
    assert dav.get("README.md").status == 200
    door.house.call(door.house.owner, "lease.revoke", {"lease": run.lease, "reason": "test"})
    answer = dav.get("README.md")
    assert (answer.status, answer.code) == (401, "revoked")
    assert dav.put("README.md").status == 401


def test_an_upload_under_way_ends_with_its_lease(door: DavHouse) -> None:
    run, dav = door.start()

    def body():  # type: ignore[no-untyped-def]
        for number in range(40):
            if number == 20:
                door.house.call(door.house.owner, "lease.revoke", {"lease": run.lease, "reason": "test"})
            yield b"x" * (1 << 20)

    with suppress(BrokenPipeError, ConnectionResetError):
        assert dav.ask("PUT", "large", body()).status == 401
    owner = door.owner(f"/dav/{run.branch}/")
    assert owner.get("large").status == 404
