"""COPY and MOVE."""

from __future__ import annotations

from tests.interfaces.webdav.dav import Dav, DavHouse


def tree(dav: Dav) -> None:
    for path in ("d", "d/e"):
        dav.mkcol(path)
    dav.put("d/1", b"one")
    dav.put("d/e/2", b"two")


def test_a_file_is_copied_and_the_copy_is_its_own(dav: Dav) -> None:
    assert dav.transfer("COPY", "README.md", "b").status == 201
    assert dav.transfer("COPY", "src/a.py", "b").status == 204
    dav.put("b", b"changed")
    assert dav.get("src/a.py").body == b"a = 1\n"


def test_a_file_is_moved_with_its_identity(dav: Dav) -> None:
    tag = dav.etag("README.md")
    assert dav.transfer("MOVE", "README.md", "src/r.md").status == 201
    assert dav.get("README.md").status == 404
    assert dav.etag("src/r.md") == tag


def test_what_stands_there_is_replaced_only_when_that_was_said(dav: Dav) -> None:
    for method in ("COPY", "MOVE"):
        answer = dav.transfer(method, "src/a.py", "src/b.py", overwrite="F")
        assert answer.status == 412
        assert dav.get("src/b.py").body == b"b = 1\n"
    assert dav.transfer("MOVE", "src/a.py", "src/b.py", overwrite="T").status == 204
    assert dav.get("src/b.py").body == b"a = 1\n"


def test_a_collection_is_copied_whole_or_alone(dav: Dav) -> None:
    tree(dav)
    assert dav.transfer("COPY", "d/", "whole/").status == 201
    assert dav.get("whole/e/2").body == b"two"
    assert dav.transfer("COPY", "d/", "alone/", depth="0").status == 201
    assert dav.get("alone/1").status == 404
    assert dav.transfer("COPY", "d/", "x/", depth="1").status == 400
    assert dav.transfer("MOVE", "d/", "x/", depth="0").status == 400


def test_a_collection_takes_the_place_of_what_was_there(dav: Dav) -> None:
    tree(dav)
    for method in ("COPY", "MOVE"):
        dav.mkcol("there")
        dav.put("there/former")
        assert dav.transfer(method, "d", "there").status == 204
        assert dav.get("there/former").status == 404
        assert dav.get("there/e/2").body == b"two"
    assert dav.get("d").status == 404


def test_a_file_takes_the_place_of_a_collection_and_back(dav: Dav) -> None:
    tree(dav)
    assert dav.transfer("COPY", "README.md", "d").status == 204
    assert dav.get("d").body == b"hello\n"
    assert dav.transfer("COPY", "src", "d").status == 204
    assert dav.get("d/a.py").status == 200


def test_nothing_goes_into_itself_or_onto_itself(dav: Dav) -> None:
    tree(dav)
    for method in ("COPY", "MOVE"):
        for target in ("d", "d/inside", "d/e/deeper"):
            assert dav.transfer(method, "d", target).status == 403
        assert dav.transfer(method, "d/e", "d").status == 403
    assert dav.get("d/e/2").body == b"two"


def test_a_destination_has_to_be_there_and_here(dav: Dav) -> None:
    assert dav.transfer("COPY", "README.md", "no/such").status == 409
    assert dav.ask("COPY", "README.md").status == 400
    assert dav.ask("COPY", "README.md", b"", {"destination": "http://elsewhere/dav/main/x"}).status == 502
    assert dav.transfer("COPY", "nothing", "x").status == 404
    assert dav.ask("MOVE", "README.md", b"", {"destination": dav.href("x")}).status == 201


def test_a_condition_counts_for_the_source(dav: Dav) -> None:
    assert dav.transfer("MOVE", "README.md", "x", if_match='"stale"').status == 412
    assert dav.transfer("MOVE", "README.md", "x", if_match=dav.etag("README.md")).status == 201


def test_a_locked_member_keeps_a_collection_where_it_is(dav: Dav) -> None:
    tree(dav)
    token = dav.lock("d/e/2").token
    assert dav.transfer("MOVE", "d", "x").status == 423
    assert dav.transfer("MOVE", "d", "x", **{"if": f"<{dav.href('d/e/2')}> (<{token}>)"}).status == 201
    assert dav.put("x/e/2").status == 204


def test_one_copies_from_main_into_a_branch_and_moves_nothing_between(door: DavHouse) -> None:
    run, dav = door.start()
    dav.put("README.md", b"mine")
    main = door.client(run.secret, "/dav/main/")
    assert main.ask("COPY", "README.md", b"", {"destination": dav.href("README.md")}).status == 204
    assert dav.get("README.md").body == b"hello\n"
    assert main.ask("COPY", "src", b"", {"destination": dav.href("copied")}).status == 201
    assert dav.get("copied/a.py").body == b"a = 1\n"
    assert main.ask("MOVE", "README.md", b"", {"destination": dav.href("x")}).status == 403


def test_what_cannot_be_copied_is_named_and_the_rest_is_there(door: DavHouse) -> None:
    run, dav = door.start(budgets={"bytes_written": 5000})
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    many = workspace.mkdir(1, b"many", 0o755).node
    dav.put("many/1", b"x" * 1500)
    dav.put("many/2", b"x" * 1500)
    assert many
    answer = dav.transfer("COPY", "many", "again")
    assert answer.status == 207
    assert b" 507 " in answer.body
    assert dav.get("again/1").status == 200


def test_links_in_a_collection_are_copied_as_links(door: DavHouse) -> None:
    run, dav = door.start()
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    source = workspace.lookup(1, b"src").node
    workspace.symlink(source, b"link", b"a.py")
    assert dav.transfer("COPY", "src", "copied").status == 201
    copied = workspace.lookup(1, b"copied").node
    assert workspace.readlink(workspace.lookup(copied, b"link").node) == b"a.py"


def test_a_destination_that_cannot_be_cleared_is_left(door: DavHouse) -> None:
    _, dav = door.start(actions=["list", "read", "write"])
    for method in ("COPY", "MOVE"):
        answer = dav.transfer(method, "README.md", "src")
        assert (answer.status, answer.code) == (403, "denied")
    assert dav.get("src/a.py").body == b"a = 1\n"


def test_properties_go_along_between_branches(door: DavHouse) -> None:
    _, one = door.start()
    _, other = door.start()
    one.mkcol("d")
    one.put("d/f")
    for path in ("d", "d/f"):
        one.patch(path, "<D:set><D:prop><Z:a>kept</Z:a></D:prop></D:set>")
    owner = door.owner(one.base)
    assert owner.ask("COPY", "d", b"", {"destination": other.href("d")}).status == 201
    assert owner.ask("COPY", "d/f", b"", {"destination": other.href("f")}).status == 201
    for path in ("d/", "d/f", "f"):
        assert other.find(path, "{urn:z}a").properties(other.href(path))["{urn:z}a"].text == "kept"
