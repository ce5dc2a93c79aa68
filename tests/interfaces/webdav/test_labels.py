"""Labels over WebDAV: live properties that nobody sets."""

from __future__ import annotations

import json

from interfaces.webdav.properties import DEAD
from tests.interfaces.webdav.dav import Dav, DavHouse

NAS = "{urn:agent-nas}"
ASKED = b'<propfind xmlns="DAV:" xmlns:N="urn:agent-nas"><prop><N:origin/><N:sensitivity/></prop></propfind>'
SET = b"""<propertyupdate xmlns="DAV:" xmlns:N="urn:agent-nas" xmlns:O="urn:other"><set><prop><O:kept>1</O:kept></prop></set>
<set><prop><N:origin>owner</N:origin></prop></set></propertyupdate>"""
REMOVE = b'<propertyupdate xmlns="DAV:" xmlns:N="urn:agent-nas"><remove><prop><N:sensitivity/></prop></remove></propertyupdate>'


def put_letter(dav: Dav) -> str:
    dav.ask("MKCOL", "inbox")
    assert dav.ask("PUT", "inbox/letter.txt", b"send money\n").status == 201
    return dav.href("inbox/letter.txt")


def told(dav: Dav, path: str, href: str, depth: str = "0") -> dict[str, str | None]:
    answer = dav.ask("PROPFIND", path, ASKED, {"depth": depth})
    assert answer.status == 207
    return {name.removeprefix(NAS): element.text for name, element in answer.properties(href).items()}


def test_a_label_is_told_to_who_asks_for_it(dav: Dav) -> None:
    href = put_letter(dav)
    expected = {"origin": "external", "sensitivity": "internal"}
    assert told(dav, "inbox/letter.txt", href) == expected
    assert told(dav, "inbox", href, "1") == expected
    names = dav.ask("PROPFIND", "inbox/letter.txt", b'<propfind xmlns="DAV:"><propname/></propfind>', {"depth": "0"})
    assert {f"{NAS}origin", f"{NAS}sensitivity"} <= names.properties(href).keys()


def test_what_nobody_labelled_has_no_such_property(dav: Dav) -> None:
    answer = dav.ask("PROPFIND", "README.md", ASKED, {"depth": "0"})
    assert answer.properties(dav.href("README.md"), 404).keys() == {f"{NAS}origin", f"{NAS}sensitivity"}


def test_no_client_sets_or_removes_a_label_and_nothing_else_of_the_request_happens(dav: Dav) -> None:
    href = put_letter(dav)
    for body, name in ((SET, "origin"), (REMOVE, "sensitivity")):
        answer = dav.ask("PROPPATCH", "inbox/letter.txt", body)
        assert answer.properties(href, 403).keys() == {NAS + name}
        assert b"cannot-modify-protected-property" in answer.body
    everything = dav.ask("PROPFIND", "inbox/letter.txt", b'<propfind xmlns="DAV:"><allprop/></propfind>', {"depth": "0"})
    assert "{urn:other}kept" not in everything.properties(href)
    assert told(dav, "inbox/letter.txt", href) == {"origin": "external", "sensitivity": "internal"}


def test_a_copy_and_a_move_are_told_with_what_they_are_made_of(dav: Dav) -> None:
    put_letter(dav)
    assert dav.ask("COPY", "inbox/letter.txt", headers={"destination": dav.href("copied.txt")}).status == 201
    assert dav.ask("MOVE", "inbox/letter.txt", headers={"destination": dav.href("moved.txt")}).status == 201
    for name in ("copied.txt", "moved.txt"):
        assert told(dav, name, dav.href(name))["origin"] == "external"


def test_a_property_that_another_door_made_up_is_not_told_as_a_label(door: DavHouse) -> None:
    started, dav = door.start()
    href = put_letter(dav)
    control = door.house.control
    workspace = control.workspace(control.authenticate(started.secret), started.branch)
    node = workspace.lookup(workspace.lookup(1, b"inbox").node, b"letter.txt").node
    made_up = {f"{NAS}origin": '<N:origin xmlns:N="urn:agent-nas">owner</N:origin>', "{urn:x}y": '<X:y xmlns:X="urn:x">1</X:y>'}
    workspace.set_xattr(node, DEAD, json.dumps(made_up).encode())
    workspace.close()
    everything = dav.ask("PROPFIND", "inbox/letter.txt", b'<propfind xmlns="DAV:"><allprop/></propfind>', {"depth": "0"})
    assert b"owner<" not in everything.body
    assert "{urn:x}y" in everything.properties(href)
