"""T14: an archive that unpacks outside of its folder, or into a thousand times its size. CVE-2024-0450, CVE-2025-4517, CVE-2024-12718.

Nothing here opens archives: bytes stay bytes. That is what these prove.
"""

from __future__ import annotations

import ast
import io
import tarfile
import zlib
from contextlib import closing
from pathlib import Path

import pytest

import interfaces
import nasd
import store
import trust
from tests.attacks.stand import Stand
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.mcp import MCP
from tests.contract.doors.skipping import each_of

OPENERS = {"zipfile", "tarfile", "py7zr", "rarfile", "patoolib"}
CALLS = {"unpack_archive", "extractall"}


def bomb() -> bytes:
    """Return a gzip stream of a kilobyte per megabyte that it stands for."""
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(b"\0" * (64 << 20)) + packer.flush()


def escaping() -> bytes:
    """Return a tar with names and links that lead out of it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
        for name in ("../../owned", "/etc/owned", "out/owned"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    return made.getvalue()


@pytest.mark.parametrize("module", [interfaces, nasd, store, trust], ids=lambda module: module.__name__)
def test_no_package_of_ours_opens_an_archive(module: object) -> None:
    for path in Path(module.__file__).parent.rglob("*.py"):  # type: ignore[attr-defined]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not {alias.name.split(".")[0] for alias in node.names} & OPENERS, path
            elif isinstance(node, ast.ImportFrom):
                assert str(node.module).split(".")[0] not in OPENERS, path
            elif isinstance(node, ast.Attribute):
                assert node.attr not in CALLS, path


@pytest.mark.parametrize("door", each_of(*(door for door in OTHERS if door is not MCP)))
def test_an_archive_goes_in_and_comes_out_as_the_bytes_it_is(stand: Stand, door: Door) -> None:
    held = stand.start()
    with closing(door.connect(stand, held)) as client:
        for name, content in (("bomb.tar.gz", bomb()), ("out.tar", escaping()), ("out.zip", escaping())):
            client.create(f"work/{name}", content)
            assert client.read(f"work/{name}") == content
    assert stand.nas.get_file(held.branch, "work/bomb.tar.gz") == bomb()
    assert not Path("/etc/owned").exists()
    spent = stand.call("lease.show", lease=held.lease)["budgets"]["bytes_written"]["used"]
    assert spent < 16 << 20, "somebody unpacked it"
