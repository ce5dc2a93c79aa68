"""What desktops send, request by request, as their users' machines do it."""

from __future__ import annotations

import pytest

from tests.interfaces.webdav.dav import D, Dav, DavHouse

FINDER = {"user-agent": "WebDAVFS/3.0.0 (03008000) Darwin/23.0.0 (arm64)"}
WINDOWS = {"user-agent": "Microsoft-WebDAV-MiniRedir/10.0.22621", "translate": "f"}
GNOME = {"user-agent": "gvfs/1.50.3", "apply-to-redirect-ref": "T"}

WIN32 = (
    b'<?xml version="1.0" encoding="utf-8" ?><D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:schemas-microsoft-com:"><D:set><D:prop>'
    b"<Z:Win32CreationTime>Tue, 14 Nov 2023 22:13:20 GMT</Z:Win32CreationTime>"
    b"<Z:Win32LastAccessTime>Tue, 14 Nov 2023 22:13:20 GMT</Z:Win32LastAccessTime>"
    b"<Z:Win32LastModifiedTime>Tue, 14 Nov 2023 22:13:20 GMT</Z:Win32LastModifiedTime>"
    b"<Z:Win32FileAttributes>00000020</Z:Win32FileAttributes></D:prop></D:set></D:propertyupdate>"
)
WINDOWS_LOCK = (
    b'<?xml version="1.0" encoding="utf-8" ?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>'
    b"<D:locktype><D:write/></D:locktype><D:owner><D:href>NAS\\ana</D:href></D:owner></D:lockinfo>"
)
FINDER_LOCK = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<D:lockinfo xmlns:D="DAV:">\n<D:lockscope><D:exclusive/></D:lockscope>\n'
    b"<D:locktype><D:write/></D:locktype>\n<D:owner>\n<D:href>http://www.apple.com/webdav_fs/</D:href>\n</D:owner>\n</D:lockinfo>\n"
)


@pytest.fixture
def finder(door: DavHouse) -> Dav:
    dav = door.start()[1]
    dav.extra = FINDER
    return dav


@pytest.fixture
def windows(door: DavHouse) -> Dav:
    dav = door.start()[1]
    dav.extra = WINDOWS
    return dav


def test_finder_mounts_to_write_because_there_are_locks(finder: Dav) -> None:
    assert finder.ask("OPTIONS", "").headers["dav"].replace(" ", "").split(",")[:2] == ["1", "2"]
    quota = finder.find("", "D:quota-available-bytes", "D:quota-used-bytes", "D:quota", "D:quotaused")
    assert f"{D}quota-available-bytes" in quota.properties(finder.href(""))


def test_finder_saves_a_file(finder: Dav) -> None:
    assert finder.find("letter.txt", "D:resourcetype").status == 404
    assert finder.put("letter.txt", b"").status == 201
    token = finder.ask("LOCK", "letter.txt", FINDER_LOCK, {"depth": "0", "timeout": "Second-600"}).token
    held = {"if": f"(<{token}>)", "x-expected-entity-length": "11"}
    assert finder.ask("PUT", "letter.txt", iter([b"hello ", b"world"]), held).status == 204
    assert finder.ask("PROPFIND", "letter.txt", b"", {"depth": "0"}).status == 207
    assert finder.unlock("letter.txt", token).status == 204
    assert finder.get("letter.txt").body == b"hello world"


def test_finder_writes_its_companions(finder: Dav) -> None:
    for name in ("._letter.txt", ".DS_Store"):
        assert finder.put(name, b"\0\5\x16\7").status == 201
        assert finder.delete(name).status == 204


def test_windows_saves_a_file(windows: Dav) -> None:
    assert windows.ask("PROPFIND", "report.docx", b"", {"depth": "0"}).status == 404
    assert windows.put("report.docx", b"").status == 201
    granted = windows.ask("LOCK", "report.docx", WINDOWS_LOCK, {"timeout": "Second-3600"})
    assert granted.status == 200
    held = {"if": f"(<{granted.token}>)"}
    assert windows.ask("PROPPATCH", "report.docx", WIN32, held).status == 207
    assert windows.ask("HEAD", "report.docx").status == 200
    assert windows.ask("PUT", "report.docx", b"PK", held).status == 204
    answer = windows.ask("PROPPATCH", "report.docx", WIN32, held)
    assert len(answer.properties(windows.href("report.docx"))) == 4
    assert windows.ask("UNLOCK", "report.docx", b"", {"lock-token": f"<{granted.token}>"}).status == 204
    assert windows.ask("HEAD", "report.docx").headers["last-modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"


def test_windows_makes_and_renames_a_folder(windows: Dav) -> None:
    assert windows.mkcol("New%20folder").status == 201
    answer = windows.transfer("MOVE", "New%20folder", "Reports", overwrite="F")
    assert answer.status == 201
    assert windows.ask("PROPFIND", "Reports", b"", {"depth": "1"}).status == 207


def test_windows_asks_the_root_of_the_server_first(windows: Dav) -> None:
    assert windows.ask("OPTIONS", "/").headers["ms-author-via"] == "DAV"
    assert set(windows.ask("PROPFIND", "/", b"", {"depth": "1"}).responses()) == {"/", "/dav/"}
    assert set(windows.ask("PROPFIND", "/", b"", {"depth": "0"}).responses()) == {"/"}
    assert windows.ask("PROPFIND", "/dav", b"", {"depth": "0"}).status == 207
    assert windows.ask("PROPFIND", "/other", b"", {"depth": "0"}).status == 404


def test_office_saves_through_a_second_name(windows: Dav) -> None:
    windows.put("report.docx", b"before")
    token = windows.lock("report.docx").token
    windows.put("~WRD0001.tmp", b"after")
    held = {"if": f"<{windows.href('report.docx')}> (<{token}>)", "overwrite": "T"}
    assert windows.transfer("MOVE", "~WRD0001.tmp", "report.docx", **held).status == 204
    assert windows.get("report.docx").body == b"after"
    assert windows.unlock("report.docx", token).status == 204


def test_gnome_copies_edits_and_deletes(door: DavHouse) -> None:
    dav = door.start()[1]
    dav.extra = GNOME
    wanted = (
        "D:creationdate",
        "D:displayname",
        "D:getcontentlength",
        "D:getcontenttype",
        "D:getetag",
        "D:getlastmodified",
        "D:resourcetype",
    )
    found = dav.find("", *wanted, depth="1")
    assert found.properties(dav.href("README.md"))[f"{D}getcontenttype"].text == "text/markdown"
    tag = found.properties(dav.href("README.md"))[f"{D}getetag"].text or ""
    assert dav.put("README.md", b"edited", if_match=tag).status == 204
    assert dav.put("README.md", b"again", if_match=tag).status == 412
    assert dav.transfer("COPY", "README.md", "README%20(copy).md", overwrite="F").status == 201
    assert dav.transfer("MOVE", "README%20(copy).md", "notes.md", overwrite="F").status == 201
    assert dav.delete("notes.md").status == 204
