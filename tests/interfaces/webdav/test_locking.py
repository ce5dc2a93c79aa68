"""LOCK, UNLOCK and what they stop."""

from __future__ import annotations

import threading

import pytest

from interfaces.webdav.lockbook import MAX_LOCKS, Lockbook
from interfaces.webdav.locks import Lock
from tests.interfaces.webdav.dav import D, Dav, DavHouse, worker


@pytest.fixture
def pair(door: DavHouse) -> tuple[Dav, Dav]:
    """Return two clients of one branch: the run's lease and the owner."""
    run, dav = door.start()
    return dav, door.owner(f"/dav/{run.branch}/")


def held(token: str) -> dict[str, str]:
    return {"if": f"(<{token}>)"}


def test_a_lock_stops_everybody_without_its_token(pair: tuple[Dav, Dav]) -> None:
    mine = pair[0]
    answer = mine.lock("README.md")
    assert answer.status == 200
    assert answer.token.startswith("urn:uuid:")
    for client in pair:
        refused = client.put("README.md")
        assert refused.status == 423
        assert b"lock-token-submitted" in refused.body
        assert mine.href("README.md").encode() in refused.body
        assert client.delete("README.md").status == 423
        assert client.patch("README.md", "<D:set><D:prop><Z:a>1</Z:a></D:prop></D:set>").status == 423
        assert client.transfer("MOVE", "README.md", "x").status == 423
        assert client.transfer("COPY", "src/a.py", "README.md").status == 423
    assert mine.put("README.md", b"x", **held(answer.token)).status == 204


def test_a_token_is_worth_nothing_to_another_principal(pair: tuple[Dav, Dav]) -> None:
    mine, theirs = pair
    token = mine.lock("README.md").token
    assert theirs.put("README.md", b"x", **held(token)).status == 423
    answer = theirs.unlock("README.md", token)
    assert (answer.status, answer.code) == (403, "denied")
    assert theirs.ask("LOCK", "README.md", b"", held(token)).status == 412
    assert mine.unlock("README.md", token).status == 204
    assert mine.put("README.md", b"x").status == 204


def test_a_lock_is_told_with_owner_depth_time_and_root(dav: Dav) -> None:
    answer = dav.lock("src", owner="<D:owner><D:href>mailto:ana</D:href></D:owner>", timeout="Second-100", depth="infinity")
    found = dav.find("src/a.py", "D:lockdiscovery").properties(dav.href("src/a.py"))[f"{D}lockdiscovery"][0]
    assert found.findtext(f"{D}owner/{D}href") == "mailto:ana"
    assert found.findtext(f"{D}depth") == "infinity"
    assert found.findtext(f"{D}timeout", "").startswith("Second-")
    assert 0 < int(found.findtext(f"{D}timeout", "").removeprefix("Second-")) <= 100
    assert found.findtext(f"{D}locktoken/{D}href") == answer.token
    assert found.findtext(f"{D}lockroot/{D}href", "").rstrip("/") == dav.href("src")
    assert answer.headers["lock-token"] == f"<{answer.token}>"


def test_a_deep_lock_covers_what_comes_to_be_below(dav: Dav) -> None:
    token = dav.lock("src/", depth="infinity").token
    assert dav.put("src/fresh").status == 423
    assert dav.put("src/fresh", b"x", **held(token)).status == 201
    assert dav.put("src/fresh", b"y").status == 423
    assert dav.lock("src/a.py").status == 423


def test_a_lock_on_a_collection_guards_its_names(dav: Dav) -> None:
    token = dav.lock("src/", depth="0").token
    assert dav.put("src/a.py").status == 204
    for answer in (dav.put("src/fresh"), dav.mkcol("src/sub"), dav.delete("src/b.py"), dav.lock("src/fresh")):
        assert answer.status == 423
    tagged = {"if": f"<http://{dav.address}{dav.href('src/')}> (<{token}>)"}
    assert dav.put("src/fresh", b"x", **tagged).status == 201


def test_locks_conflict_unless_both_are_shared(dav: Dav) -> None:
    first, second = dav.lock("README.md", "shared"), dav.lock("README.md", "shared")
    assert (first.status, second.status) == (200, 200)
    refused = dav.lock("README.md")
    assert refused.status == 423
    assert b"no-conflicting-lock" in refused.body
    assert dav.lock("", depth="infinity").status == 423
    assert dav.put("README.md", b"x", **held(second.token)).status == 204


def test_a_lock_on_a_free_name_makes_an_empty_file(dav: Dav) -> None:
    answer = dav.lock("fresh.txt")
    assert answer.status == 201
    assert dav.get("fresh.txt").body == b""
    assert dav.put("fresh.txt", b"x").status == 423
    assert dav.put("fresh.txt", b"x", **held(answer.token)).status == 204
    assert dav.lock("no/such/fresh.txt").status == 409


def test_a_refresh_says_anew_how_long(dav: Dav) -> None:
    token = dav.lock("README.md", timeout="Second-10").token
    answer = dav.ask("LOCK", "README.md", b"", {**held(token), "timeout": "Second-5000"})
    assert answer.status == 200
    assert "lock-token" not in answer.headers
    assert b"Second-5000" in answer.body
    assert dav.ask("LOCK", "README.md", b"", held("urn:uuid:0")).status == 412
    assert dav.ask("LOCK", "README.md", b"").status == 412


def test_a_deep_lock_is_refreshed_and_ended_from_below(dav: Dav) -> None:
    token = dav.lock("src/", depth="infinity").token
    assert dav.ask("LOCK", "src/a.py", b"", held(token)).status == 200
    assert dav.unlock("src/b.py", token).status == 204


def test_what_is_not_locked_cannot_be_unlocked(dav: Dav) -> None:
    token = dav.lock("README.md").token
    answer = dav.unlock("src/a.py", token)
    assert answer.status == 409
    assert b"lock-token-matches-request-uri" in answer.body
    assert dav.ask("UNLOCK", "README.md").status == 400
    assert dav.unlock("README.md", token).status == 204
    assert dav.unlock("README.md", token).status == 409


def test_locks_end_with_what_they_were_taken_on(dav: Dav) -> None:
    token = dav.lock("README.md").token
    assert dav.delete("README.md", **held(token)).status == 204
    assert dav.put("README.md").status == 201
    token = dav.lock("src/a.py").token
    assert dav.transfer("MOVE", "src/a.py", "moved.py", **held(token)).status == 201
    assert dav.put("moved.py").status == 204
    assert dav.put("src/a.py").status == 201


def test_a_copy_takes_no_lock_along(dav: Dav) -> None:
    dav.lock("README.md")
    assert dav.transfer("COPY", "README.md", "copied").status == 201
    assert dav.put("copied").status == 204


def test_who_may_only_read_keeps_nobody_out(door: DavHouse) -> None:
    _, reader = door.start(actions=["list", "read"])
    answer = reader.lock("README.md")
    assert (answer.status, answer.code) == (403, "denied")
    assert reader.lock("fresh").status == 403
    assert door.owner("/dav/main/").lock("README.md").code == "read-only"


def test_a_condition_fails_before_a_lock_stops(dav: Dav) -> None:
    token = dav.lock("README.md").token
    tag = dav.etag("README.md")
    for text, status in {
        f"(<{token}> [{tag}])": 204,
        f'(<{token}> ["other"])': 412,
        "(<DAV:no-lock>)": 412,
        "(Not <DAV:no-lock>)": 423,
        f"(<{token}x>) (Not <DAV:no-lock>)": 423,
        "(": 400,
    }.items():
        assert dav.put("README.md", b"hello\n", **{"if": text}).status == status, text
        tag = dav.etag("README.md")


def test_a_lock_whose_file_cannot_be_made_is_none(door: DavHouse) -> None:
    run, dav = door.start()
    assert dav.lock("x" * 300).status == 400
    assert Lockbook(door.house.control.notes("webdav"), run.branch, lambda: 0.0).read() == ()


def test_what_a_belief_says_of_other_places_is_looked_up(dav: Dav) -> None:
    token = dav.lock("src/a.py").token
    here = f"http://{dav.address}"
    for address, status in {
        dav.href("src/a.py"): 204,
        here + dav.href("src/a.py"): 204,
        dav.href("src/b.py"): 412,
        dav.href("nothing"): 412,
        "/dav/main/src/a.py": 412,
        "/elsewhere": 412,
        "http://[": 412,
    }.items():
        assert dav.put("README.md", b"x", **{"if": f"<{address}> (<{token}>)"}).status == status, address


def test_a_belief_counts_for_reading_too(dav: Dav) -> None:
    tag = dav.etag("README.md")
    for text, statuses in {f"([{tag}])": (200, 207), '(["other"])': (412, 412), "(": (400, 400)}.items():
        assert dav.get("README.md", **{"if": text}).status == statuses[0]
        assert dav.find("README.md", **{"if": text}).status == statuses[1]


def test_locks_are_kept_in_the_notes_of_the_door(door: DavHouse) -> None:
    run, dav = door.start()
    token = dav.lock("README.md").token
    notes = door.house.control.notes("webdav")
    assert [lock.token for lock in Lockbook(notes, run.branch, lambda: 0.0).read()] == [token]


def test_two_workers_never_both_grant(door: DavHouse) -> None:
    _, dav = door.start()
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(dav.lock("README.md").status)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [423] * 7


def test_a_lock_ends_by_itself(door: DavHouse) -> None:
    run, dav = door.start()
    assert dav.lock("README.md", timeout="Second-60").status == 200
    later = Lockbook(door.house.control.notes("webdav"), run.branch, lambda: 4_000_000_000.0)
    assert later.read() == ()
    later.change(lambda locks: locks)
    assert door.house.control.notes("webdav").find(f"locks/{run.branch}") == (0, {})
    assert dav.put("README.md").status == 204


def test_a_branch_has_so_many_locks_and_no_more(door: DavHouse) -> None:
    run, dav = door.start()
    book = Lockbook(door.house.control.notes("webdav"), run.branch, lambda: 0.0)
    book.change(lambda _: tuple(Lock(str(n), (b"%d" % n,), False, False, "", "coder", 60, 1 << 40) for n in range(MAX_LOCKS)))
    answer = dav.lock("README.md")
    assert (answer.status, answer.code) == (507, "no-space")


def test_a_lease_does_not_learn_of_locks_it_cannot_see(door: DavHouse) -> None:
    run, _ = door.start(paths=("src/**",))
    theirs = door.client(run.secret, f"/dav/{run.branch}/")
    owner = door.owner(f"/dav/{run.branch}/")
    assert owner.lock("secret/plan.txt").status == 200
    answer = theirs.lock("secret/plan.txt")
    assert answer.status == 409
    assert b"plan" not in theirs.find("", "D:lockdiscovery", depth="1").body


def test_a_lock_is_known_to_another_worker(door: DavHouse) -> None:
    _, dav = door.start()
    token = dav.lock("README.md").token
    with worker(door.house) as address:
        again = Dav(address, dav.base, dav.credentials)
        assert again.put("README.md").status == 423
        assert again.put("README.md", b"x", **held(token)).status == 204
