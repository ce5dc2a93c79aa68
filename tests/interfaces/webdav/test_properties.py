"""What properties say, and what may be changed of them."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.webdav.bodies import Setting, Wanted
from interfaces.webdav.headers import Depth
from interfaces.webdav.listing import compile_form, tell
from interfaces.webdav.lobby import Shown
from interfaces.webdav.markup import DAV
from interfaces.webdav.patching import weigh
from interfaces.webdav.properties import (
    DEAD,
    EXECUTABLE,
    LIVE,
    MAX_DEAD,
    MICROSOFT,
    PROTECTED,
    Subject,
    Surroundings,
    content_type,
    decode_dead,
    encode_dead,
    parse_date,
)

FILE = Shown(stat.S_IFREG | 0o644, 1_700_000_000 * 1_000_000_000, 12, b"\x12\x34")
FOLDER = Shown(stat.S_IFDIR | 0o755, 0)
DATE = "Tue, 14 Nov 2023 22:13:20 GMT"


def told(
    wanted: Wanted, attributes: Shown = FILE, dead: Mapping[str, str] | None = None, depth: Depth = Depth.ZERO
) -> dict[str, dict[str, str]]:
    """Return the properties by status and name."""
    form = compile_form(wanted, depth, minimal=False)
    text = tell(form, Subject("/dav/main/a.txt", b"a.txt", (b"a.txt",), attributes, dead or {}), Surroundings(base="/dav/main"))
    root = ElementTree.fromstring(f'<x xmlns:D="DAV:">{text}</x>')
    return {
        propstat.findtext(f"{DAV}status", "").split()[1]: {element.tag: element.text or "" for element in propstat.find(f"{DAV}prop") or ()}
        for propstat in root.iter(f"{DAV}propstat")
    }


def test_a_file_tells_its_size_times_type_and_tag() -> None:
    names = ("getcontentlength", "getlastmodified", "getetag", "getcontenttype", "creationdate", "displayname", "resourcetype")
    found = told(Wanted(names=tuple(f"{DAV}{name}" for name in names)))["200"]
    assert found == {
        f"{DAV}getcontentlength": "12",
        f"{DAV}getlastmodified": DATE,
        f"{DAV}getetag": '"1234"',
        f"{DAV}getcontenttype": "text/plain",
        f"{DAV}creationdate": "2023-11-14T22:13:20Z",
        f"{DAV}displayname": "a.txt",
        f"{DAV}resourcetype": "",
    }


def test_what_a_collection_has_not_is_told_as_missing() -> None:
    found = told(Wanted(names=(f"{DAV}getetag", f"{DAV}getcontentlength", f"{DAV}resourcetype", "{u}x")), FOLDER)
    assert set(found["404"]) == {f"{DAV}getetag", f"{DAV}getcontentlength", "{u}x"}
    assert set(found["200"]) == {f"{DAV}resourcetype"}


def test_everything_is_lean_in_a_listing() -> None:
    near, far = told(Wanted(everything=True)), told(Wanted(everything=True), depth=Depth.ONE)
    assert f"{DAV}supportedlock" in near["200"]
    assert f"{DAV}supportedlock" not in far["200"]
    assert "404" not in near


def test_dead_properties_are_told_as_they_were_left() -> None:
    dead = {"{u}x": '<N:x xmlns:N="u">1</N:x>'}
    assert told(Wanted(everything=True), dead=dead)["200"]["{u}x"] == "1"
    assert told(Wanted(names=("{u}x",)), dead=dead)["200"] == {"{u}x": "1"}
    assert "{u}x" in told(Wanted(titles=True), dead=dead)["200"]


def test_room_is_told_only_of_collections_and_only_when_asked() -> None:
    quota = (f"{DAV}quota-available-bytes", f"{DAV}quota-used-bytes")
    assert set(told(Wanted(names=quota), FOLDER)["404"]) == set(quota)
    assert not set(quota) & set(told(Wanted(everything=True), FOLDER)["200"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"a.txt", "text/plain"),
        (b"A.PNG", "image/png"),
        (b"a", "application/octet-stream"),
        (b"a.tar.gz", "application/octet-stream"),
        (b".\xff", "application/octet-stream"),
    ],
)
def test_a_type_comes_from_the_ending(name: bytes, expected: str) -> None:
    assert content_type(name) == expected


@given(st.dictionaries(st.sampled_from(["{u}a", "b"]), st.just("x"), max_size=2))
def test_dead_properties_are_kept(names: dict[str, str]) -> None:
    dead = {name: f"<{name}/>" if name == "b" else '<N:a xmlns:N="u"/>' for name in names}
    value = encode_dead(dead)
    assert decode_dead({} if value is None else {DEAD: value}) == dead


@pytest.mark.parametrize("value", [b"", b"[]", b"nonsense", b"\xff", b'{"a": 1}', b'{"a": "<b/>"}', b'{"a": "</D:prop><x/>"}'])
def test_what_others_left_in_the_attribute_never_gets_into_an_answer(value: bytes) -> None:
    assert decode_dead({DEAD: value}) == {}


def test_dead_properties_have_a_bound() -> None:
    with pytest.raises(Fault) as caught:
        encode_dead({"a": f"<a>{'x' * MAX_DEAD}</a>"})
    assert caught.value.kind is Kind.NO_SPACE


def test_instructions_are_followed_in_their_order() -> None:
    weighed = weigh(
        [Setting("a", "<a>1</a>"), Setting("b", "<b/>"), Setting("a", "<a>2</a>"), Setting("b", None), Setting("c", None)], {}, 0o100644
    )
    assert weighed.dead == {"a": "<a>2</a>"}
    assert weighed.refused == {}


@pytest.mark.parametrize("name", sorted(PROTECTED))
def test_what_the_server_says_is_not_set(name: str) -> None:
    assert weigh([Setting(name, "<x/>")], {}, 0o100644).refused == {name: 403}


@pytest.mark.parametrize("name", [f"{DAV}getlastmodified", f"{MICROSOFT}Win32LastModifiedTime"])
def test_the_time_of_change_can_be_set(name: str) -> None:
    assert weigh([Setting(name, "<x/>", DATE)], {}, 0o100644).mtime_ns == 1_700_000_000_000_000_000
    assert weigh([Setting(name, "<x/>", "yesterday")], {}, 0o100644).refused == {name: 409}
    assert weigh([Setting(name, None)], {}, 0o100644).refused == {name: 403}


def test_a_file_becomes_executable_and_a_collection_does_not() -> None:
    assert weigh([Setting(EXECUTABLE, "<x/>", "T")], {}, 0o100640).mode == 0o751
    assert weigh([Setting(EXECUTABLE, "<x/>", "F")], {}, 0o100755).mode == 0o644
    assert weigh([Setting(EXECUTABLE, "<x/>", "T")], {}, 0o040755).refused == {EXECUTABLE: 403}
    assert weigh([Setting(EXECUTABLE, "<x/>", "maybe")], {}, 0o100755).refused == {EXECUTABLE: 403}


def test_every_live_property_can_be_told_of_everything() -> None:
    for attributes in (FILE, FOLDER):
        found = told(Wanted(names=tuple(LIVE)), attributes)
        assert set(found.get("200", {})) | set(found.get("404", {})) == set(LIVE)


@given(st.text(max_size=60))
def test_no_date_breaks_its_reader(text: str) -> None:
    try:
        parse_date(text)
    except ValueError:
        return
