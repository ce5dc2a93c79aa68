"""PROPPATCH."""

from __future__ import annotations

from tests.interfaces.webdav.dav import D, Dav, DavHouse

SET = "<D:set><D:prop>{}</D:prop></D:set>"
REMOVE = "<D:remove><D:prop>{}</D:prop></D:remove>"


def value(dav: Dav, path: str, name: str = "{urn:z}a") -> str | None:
    found = dav.find(path, name).properties(dav.href(path)).get(name)
    return None if found is None else found.text


def test_a_property_is_kept_and_removed(dav: Dav) -> None:
    assert dav.patch("README.md", SET.format("<Z:a>1 &lt; 2</Z:a>")).status == 207
    assert value(dav, "README.md") == "1 < 2"
    dav.patch("README.md", REMOVE.format("<Z:a/>"))
    assert value(dav, "README.md") is None


def test_a_property_survives_another_content_a_move_and_a_copy(dav: Dav) -> None:
    dav.put("a")
    dav.patch("a", SET.format("<Z:a>kept</Z:a>"))
    dav.put("a", b"other")
    assert value(dav, "a") == "kept"
    dav.transfer("MOVE", "a", "b")
    dav.transfer("COPY", "b", "c")
    assert (value(dav, "b"), value(dav, "c")) == ("kept", "kept")


def test_a_collection_has_properties_too(dav: Dav) -> None:
    dav.patch("src/", SET.format("<Z:a>1</Z:a>"))
    assert value(dav, "src/") == "1"
    dav.transfer("COPY", "src/", "copied/")
    assert value(dav, "copied/") == "1"


def test_all_or_none(dav: Dav) -> None:
    answer = dav.patch("README.md", SET.format("<Z:a>1</Z:a><D:getetag>x</D:getetag>"))
    href = dav.href("README.md")
    assert set(answer.properties(href, 403)) == {f"{D}getetag"}
    assert set(answer.properties(href, 424)) == {"{urn:z}a"}
    assert b"cannot-modify-protected-property" in answer.body
    assert value(dav, "README.md") is None


def test_the_time_of_change_is_set_by_the_standard_and_by_windows(dav: Dav) -> None:
    date = "Tue, 14 Nov 2023 22:13:20 GMT"
    dav.put("a")
    dav.patch("a", SET.format(f"<D:getlastmodified>{date}</D:getlastmodified>"))
    assert dav.ask("HEAD", "a").headers["last-modified"] == date
    windows = "Wed, 15 Nov 2023 22:13:20 GMT"
    name = "Win32LastModifiedTime"
    dav.patch("a", SET.format(f'<w:{name} xmlns:w="urn:schemas-microsoft-com:">{windows}</w:{name}>'))
    assert value(dav, "a", f"{D}getlastmodified") == windows
    assert value(dav, "a", "{urn:schemas-microsoft-com:}Win32LastModifiedTime") == windows


def test_other_times_of_windows_are_kept(dav: Dav) -> None:
    date = "Tue, 14 Nov 2023 22:13:20 GMT"
    for name in ("Win32CreationTime", "Win32LastAccessTime", "Win32FileAttributes"):
        answer = dav.patch("README.md", SET.format(f'<w:{name} xmlns:w="urn:schemas-microsoft-com:">{date}</w:{name}>'))
        assert set(answer.properties(dav.href("README.md"))) == {f"{{urn:schemas-microsoft-com:}}{name}"}
        assert value(dav, "README.md", f"{{urn:schemas-microsoft-com:}}{name}") == date


def test_a_file_is_made_executable(dav: Dav) -> None:
    name = "{http://apache.org/dav/props/}executable"
    assert value(dav, "README.md", name) == "F"
    dav.patch("README.md", SET.format('<A:executable xmlns:A="http://apache.org/dav/props/">T</A:executable>'))
    assert value(dav, "README.md", name) == "T"


def test_too_much_is_refused_for_want_of_room(dav: Dav) -> None:
    assert dav.patch("README.md", SET.format(f"<Z:a>{'x' * 50_000}</Z:a>")).status == 507
    assert value(dav, "README.md") is None


def test_what_another_program_left_in_the_attribute_is_not_told(door: DavHouse) -> None:
    run, dav = door.start()
    workspace = door.house.control.workspace(door.house.control.authenticate(run.secret), run.branch)
    readme = workspace.lookup(1, b"README.md").node
    workspace.set_xattr(readme, b"user.dav.props", b'{"{urn:z}a": "</D:prop></D:propstat><D:propstat>"}')
    assert value(dav, "README.md") is None
    assert dav.find("README.md").status == 207


def test_who_may_not_write_sets_nothing(door: DavHouse) -> None:
    _, dav = door.start(actions=["list", "read"])
    answer = dav.patch("README.md", SET.format("<Z:a>1</Z:a>"))
    assert (answer.status, answer.code) == (403, "denied")


def test_what_is_not_there_has_nothing_to_set(dav: Dav) -> None:
    assert dav.patch("nothing", SET.format("<Z:a>1</Z:a>")).status == 404
