"""PROPFIND."""

from __future__ import annotations

import stat

import pytest

from tests.interfaces.webdav.dav import D, Dav, DavHouse


def test_depth_zero_is_the_resource_and_depth_one_what_is_in_it_too(dav: Dav) -> None:
    assert list(dav.find("src/").responses()) == [dav.href("src/")]
    assert set(dav.find("src", depth="1").responses()) == {dav.href(path) for path in ("src/", "src/a.py", "src/b.py")}


def test_names_travel_encoded_and_come_back(dav: Dav) -> None:
    name = "%C3%A9%20%26%3C%27%25%23%3F%FF.txt"
    assert dav.put(name, b"x").status == 201
    found = dav.find("", "D:displayname", depth="1")
    assert dav.href(name) in {href.replace("'", "%27") for href in found.responses()}
    assert dav.get(name).body == b"x"


def test_a_tree_is_not_listed_at_once(dav: Dav) -> None:
    for headers in ({"depth": "infinity"}, {}):
        answer = dav.ask("PROPFIND", "", b"", headers)
        assert answer.status == 403
        assert b"propfind-finite-depth" in answer.body


def test_a_file_has_no_depth(dav: Dav) -> None:
    assert dav.ask("PROPFIND", "README.md").status == 207


def test_asked_for_names_only_names_are_told(dav: Dav) -> None:
    body = b'<propfind xmlns="DAV:"><propname/></propfind>'
    found = dav.ask("PROPFIND", "README.md", body, {"depth": "0"}).properties(dav.href("README.md"))
    assert f"{D}getetag" in found
    assert all(element.text is None for element in found.values())


def test_who_prefers_little_gets_no_list_of_what_is_missing(dav: Dav) -> None:
    for headers in ({"prefer": "return=minimal"}, {"brief": "t"}):
        answer = dav.find("src/", "D:getetag", "D:resourcetype", **headers)
        assert set(answer.properties(dav.href("src/"))) == {f"{D}resourcetype"}
        assert b" 404 " not in answer.body


def test_the_tag_in_a_listing_is_the_one_of_the_file(dav: Dav) -> None:
    listed = dav.find("src/", "D:getetag", depth="1").properties(dav.href("src/a.py"))
    assert listed[f"{D}getetag"].text == dav.etag("src/a.py")


def test_room_is_told_of_a_collection(dav: Dav) -> None:
    found = dav.find("", "D:quota-available-bytes", "D:quota-used-bytes").properties(dav.href(""))
    assert int(found[f"{D}quota-available-bytes"].text or "") > 0
    assert int(found[f"{D}quota-used-bytes"].text or "") >= 0


def test_room_is_what_the_budget_leaves(door: DavHouse) -> None:
    _, dav = door.start(budgets={"bytes_written": 1000})
    assert dav.put("a", b"x" * 400).status == 201
    found = dav.find("", "D:quota-available-bytes").properties(dav.href(""))
    assert int(found[f"{D}quota-available-bytes"].text or "") <= 600


def test_a_bad_body_is_refused(dav: Dav) -> None:
    assert dav.ask("PROPFIND", "", b"<propfind", {"depth": "0"}).status == 400
    assert dav.ask("PROPFIND", "", b"x" * (300 << 10), {"depth": "0"}).status == 413
    assert dav.ask("PROPFIND", "", b"", {"depth": "two"}).status == 400


def test_what_is_not_there_has_no_properties(dav: Dav) -> None:
    assert dav.find("nothing").status == 404


def test_links_are_what_they_point_to_and_others_are_not_there(door: DavHouse) -> None:
    run, dav = door.start()
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    source = workspace.lookup(1, b"src").node
    for name, target in {
        b"file": b"src/a.py",
        b"folder": b"src",
        b"up": b"../../etc/passwd",
        b"root": b"/etc/passwd",
        b"circle": b"circle",
        b"gone": b"nowhere",
    }.items():
        workspace.symlink(1, name, target)
    workspace.symlink(source, b"back", b"../README.md")
    shown = {href.removeprefix(dav.base) for href in dav.find("", depth="1").responses()}
    assert {"file", "folder/"} <= shown
    assert not {"up", "root", "circle", "gone", "folder", "up/", "root/"} & shown
    assert dav.get("file").body == b"a = 1\n"
    assert dav.get("folder/a.py").body == b"a = 1\n"
    assert dav.get("folder/back").body == b"hello\n"
    assert [dav.get(name).status for name in ("up", "root", "circle", "gone")] == [404] * 4
    assert dav.put("file", b"a = 2\n").status == 204
    assert dav.get("src/a.py").body == b"a = 2\n"
    assert dav.delete("file").status == 204
    assert dav.get("src/a.py").status == 200


def test_pipes_are_not_there(door: DavHouse) -> None:
    run, dav = door.start()
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    workspace.make_special(1, b"pipe", stat.S_IFIFO | 0o644)
    assert dav.href("pipe") not in dav.find("", depth="1").responses()
    assert b"pipe" not in dav.get("").body
    for answer in (dav.get("pipe"), dav.find("pipe"), dav.delete("pipe")):
        assert answer.status == 404


def test_a_link_the_lease_may_not_read_is_not_there(door: DavHouse) -> None:
    run, dav = door.start()
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    workspace.symlink(1, b"link", b"README.md")
    narrowed = door.house.call(run.secret, "lease.narrow", {"lease": run.lease, "actions": ["list"]})
    lister = door.client(narrowed["secret"], dav.base)
    assert dav.href("README.md") in lister.find("", depth="1").responses()
    assert dav.href("link") not in lister.find("", depth="1").responses()
    assert lister.get("link").status == 404
    assert lister.get("README.md").status == 403


@pytest.fixture(scope="module")
def crowded(door: DavHouse) -> Dav:
    """Return a client of a branch with a collection of 1,300 files called `many`."""
    run, dav = door.start()
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    many = workspace.mkdir(1, b"many", 0o755).node
    for number in range(1300):
        workspace.create(many, b"a file with a rather long name %04d.txt" % number, 0o644)[1].close()
    return dav


def test_a_listing_stays_below_what_windows_shows(crowded: Dav) -> None:
    answer = crowded.find("many/", depth="1")
    assert len(answer.responses()) == 1301
    assert len(answer.body) < 1_000_000


def test_a_long_listing_comes_in_pieces_and_is_whole(crowded: Dav) -> None:
    answer = crowded.find("many/", "D:resourcetype", depth="1")
    assert "content-length" not in answer.headers
    assert len(answer.responses()) == 1301
