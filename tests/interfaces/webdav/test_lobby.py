"""What is above the branches, and the Activity folders."""

from __future__ import annotations

from tests.interfaces.webdav.dav import D, Dav, DavHouse, basic


def shown(dav: Dav, path: str) -> set[str]:
    return {href for href in dav.find(path, depth="1").responses() if href.rstrip("/") != path.rstrip("/")}


def test_a_lease_sees_main_and_its_own_run(door: DavHouse) -> None:
    run, dav = door.start()
    door.start()
    role, _, name = run.branch.partition("/")
    assert shown(dav, "/dav/") == {"/dav/main/", f"/dav/{role}/"}
    assert shown(dav, f"/dav/{role}/") == {f"/dav/{role}/{name}/"}


def test_a_person_sees_runs_and_what_they_did(door: DavHouse) -> None:
    run, _ = door.start("writer")
    owner = door.owner()
    assert {"/dav/main/", "/dav/writer/", "/dav/humans/"} <= shown(owner, "/dav/")
    assert shown(owner, "/dav/humans/") == {"/dav/humans/owner/"}
    assert shown(owner, "/dav/humans/owner/") == {"/dav/humans/owner/Agent%20Activity/"}
    folders = shown(owner, "/dav/humans/owner/Agent%20Activity/")
    mine = next(folder for folder in folders if run.run in folder)
    names = {href.rpartition("/")[2] for href in shown(owner, mine)}
    assert names == {"Summary.txt", "Did.txt", "Read.txt", "Changed.txt", "Asked.txt", "Refused.txt"}
    page = owner.get(f"{mine}Summary.txt")
    assert page.status == 200
    assert run.run.encode() in page.body
    assert page.headers["content-type"] == "text/plain"
    assert owner.get(f"{mine}Summary.txt", range="bytes=0-5").body == page.body[:6]
    assert owner.get(f"{mine}Summary.txt", if_none_match=page.headers["etag"]).status == 304
    listed = owner.find(mine, "D:getetag", "D:getcontentlength", depth="1").properties(f"{mine}Summary.txt")
    assert listed[f"{D}getetag"].text == page.headers["etag"]
    assert listed[f"{D}getcontentlength"].text == str(len(page.body))


def test_nobody_sees_what_worked_for_somebody_else(door: DavHouse) -> None:
    run, dav = door.start()
    assert dav.find("/dav/humans/").status == 404
    ana = door.client(door.house.issue_token("ana"), "/dav/")
    assert shown(ana, "/dav/humans/") == {"/dav/humans/ana/"}
    assert shown(ana, "/dav/humans/ana/Agent%20Activity/") == set()
    assert ana.find("/dav/humans/owner/Agent%20Activity/").status == 404
    assert ana.get(f"/dav/{run.branch}/README.md").status == 404


def test_nothing_is_changed_there(door: DavHouse) -> None:
    owner = door.owner()
    for path in ("/dav/x", "/dav/", "/dav/humans/owner/x", "/dav/humans/owner/Agent%20Activity/x", "/dav/nothing"):
        for answer in (owner.put(path), owner.mkcol(path), owner.delete(path), owner.lock(path), owner.patch(path, "")):
            assert (answer.status, answer.code) == (403, "read-only")


def test_what_is_not_shown_is_not_there(door: DavHouse) -> None:
    owner = door.owner()
    for path in ("nothing/", "humans/owner/x", "humans/owner/Agent%20Activity/x/Summary.txt", "coder/r0/", "coder/r0/x", "%ff/r0/x"):
        assert owner.get(f"/dav/{path}").status == 404
        assert owner.find(f"/dav/{path}").status == 404


def test_a_browser_finds_its_way(door: DavHouse) -> None:
    assert b'href="./main/"' in door.owner().get("/dav/").body
    assert b'href="./humans/"' in door.owner().get("/dav").body


def test_basic_credentials_open_the_door(door: DavHouse) -> None:
    run, dav = door.start()
    dav.credentials = basic(run.lease, run.secret)
    assert dav.get("README.md").status == 200
    dav.credentials = basic("owner", door.house.owner)
    assert dav.get("/dav/main/README.md").status == 200
    dav.credentials = basic(run.lease, run.secret + "x")
    assert dav.get("README.md").status == 401
