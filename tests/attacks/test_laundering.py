"""What is labelled stays labelled: through every door, in every way in which bytes come from one name to another.

The label of what a run writes is the join of what it has read and of what the same bytes were under another name. So each cell is
a run of its own that meets one labelled file, brings it under another name, and commits.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.attacks.stand import LETTER, PLAN, TREE, Repository, Stand, open_stand
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.http import HTTP, Files
from tests.contract.doors.clients.mcp import MCP
from tests.contract.doors.clients.s3 import S3, Bucket
from tests.contract.doors.clients.webdav import WEBDAV, Dav
from tests.contract.doors.clients.wire import Wire
from tests.contract.doors.model import Client, Refused
from tests.contract.doors.site import Held
from tests.contract.doors.skipping import each_of
from tests.e2e.conftest import needs_fuse

pytestmark = pytest.mark.slow

SOURCES = {"external/internal": ("inbox", LETTER), "internal/sensitive": ("private", PLAN)}
OWN = {
    f"{folder}/{name}.txt": content + name.encode()
    for folder, content in SOURCES.values()
    for door in OTHERS
    for name in (door.name, f"merged-{door.name}", "renamed")
}
"""A file of each label for each door: bytes that one run gave a higher label keep it wherever somebody writes them again."""
NUMBERS = count(1)


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with open_stand(tmp_path_factory.mktemp("laundering"), TREE | OWN) as opened:
        yield opened


def fresh() -> str:
    return f"work/out-{next(NUMBERS)}.txt"


def copies(client: Client, source: str, target: str, content: bytes) -> None:
    client.copy(source, target)


def moves(client: Client, source: str, target: str, content: bytes) -> None:
    client.move(source, target)


def rewrites(client: Client, source: str, target: str, content: bytes) -> None:
    assert client.read(source) == content
    client.create(target, b"in my own words: " + content)


def appends(client: Client, source: str, target: str, content: bytes) -> None:
    client.create(target, b"notes\n")
    client.append(target, client.read(source))


def remembers(client: Client, source: str, target: str, content: bytes) -> None:
    """Read it, and write something in which no byte of it is."""
    client.read(source)
    client.create(target, b"as discussed\n")


def retypes(client: Client, source: str, target: str, content: bytes) -> None:
    """Put exactly its bytes, as somebody who has them from elsewhere."""
    client.create(target, content)


WAYS: tuple[Callable[[Client, str, str, bytes], None], ...] = (copies, moves, rewrites, appends, remembers, retypes)


@pytest.mark.parametrize("label", SOURCES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("door", each_of(*OTHERS))
def test_a_label_follows_content_through_every_door(stand: Stand, door: Door, way: Callable[..., None], label: str) -> None:
    held, target = stand.start(), fresh()
    source = f"{SOURCES[label][0]}/{door.name}.txt"
    content = OWN[source]
    with closing(door.connect(stand, held)) as client:
        way(client, source, target, content)
    stand.commit(held)
    found = stand.label(held.branch, target)
    if door.name == "git":  # a clone brings everything, so it taints with everything
        assert found == "external/sensitive"
    else:
        assert found == label


@pytest.mark.parametrize("door", each_of(*OTHERS))
def test_a_merged_label_is_on_main_and_taints_who_reads_it_there(stand: Stand, door: Door) -> None:
    held, target, source = stand.start(paths=["work/**", "inbox/**"]), fresh(), f"inbox/merged-{door.name}.txt"
    with closing(door.connect(stand, held)) as client:
        copies(client, source, target, OWN[source])
    made = stand.call("proposal.make", run=held.run, message="a letter")
    assert made["state"] == "merged", made
    assert stand.label("main", target) == "external/internal"
    reader = stand.start(paths=["work/**"])
    with closing(HTTP.connect(stand, reader)) as client:
        client.read(target)
    assert stand.taint(reader) == "external/internal"


def test_reading_ordinary_files_labels_nothing(stand: Stand) -> None:
    """Else the matrix would prove nothing."""
    held, target = stand.start(), fresh()
    with closing(HTTP.connect(stand, held)) as client:
        client.create(target, client.read("src/main.py") + client.read("README.md"))
    stand.commit(held)
    assert stand.label(held.branch, target) == stand.taint(held) == "internal/internal"


# ways of one door only


@needs_fuse
@pytest.mark.parametrize(
    "way", ["hard link", "symlink", "rename of the folder", "tar", "cp -r", "mv over", "sparse copy", "read and write in place"]
)
def test_ways_of_a_mount(stand: Stand, way: str) -> None:
    held, target = stand.start(), fresh()
    with stand.mounted(held) as place:
        source, out = place / "inbox" / "letter.txt", place / target
        if way == "hard link":
            os.link(source, out)
        elif way == "symlink":
            out.symlink_to("../inbox/letter.txt")
            out.read_bytes()
            out.unlink()
            out.write_bytes(b"what the link showed")
        elif way == "rename of the folder":
            (place / "inbox" / "thread").rename(place / "work" / "thread")
            target = "work/thread/answer.txt"
        elif way == "tar":
            with tarfile.open(out, "w") as tar:
                tar.add(place / "inbox", "inbox")
        elif way == "cp -r":
            shutil.copytree(place / "inbox", place / "work" / "copied")
            target = "work/copied/letter.txt"
        elif way == "mv over":
            out.write_bytes(b"harmless\n")
            source.rename(out)
        elif way == "sparse copy":
            subprocess.run(["cp", "--sparse=always", "--reflink=auto", str(source), str(out)], check=True)
        else:
            with out.open("wb") as file, source.open("rb") as reading:
                os.sendfile(file.fileno(), reading.fileno(), 0, 1 << 20)
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


def test_a_zip_made_by_a_program_of_the_run(stand: Stand, tmp_path: Path) -> None:
    held, target = stand.start(), fresh()
    with closing(HTTP.connect(stand, held)) as client:
        (tmp_path / "letter").write_bytes(client.read("inbox/letter.txt"))
        archive = shutil.make_archive(str(tmp_path / "out"), "zip", tmp_path, "letter")
        client.create(target, Path(archive).read_bytes())
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


def test_a_copy_of_s3_by_parts(stand: Stand) -> None:
    held, target = stand.start(), fresh()
    with closing(S3.connect(stand, held)) as client:
        assert isinstance(client, Bucket)
        source = {"x-amz-copy-source": f"/{client._bucket}/inbox/letter.txt"}
        begun = client.ask("POST", target, query="uploads").body
        upload = begun.partition(b"<UploadId>")[2].partition(b"</UploadId>")[0].decode()
        told = client.ask("PUT", target, headers=source, query=f"partNumber=1&uploadId={upload}").body
        etag = told.partition(b"<ETag>")[2].partition(b"</ETag>")[0].decode()
        parts = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
        client.ask("POST", target, parts.encode(), query=f"uploadId={upload}")
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
def test_a_whole_collection_of_webdav(stand: Stand, method: str) -> None:
    held, folder = stand.start(), fresh().removesuffix(".txt")
    with closing(WEBDAV.connect(stand, held)) as client:
        assert isinstance(client, Dav)
        client.ask(method, "inbox", headers={"Destination": client._url + folder, "Depth": "infinity"})
    stand.commit(held)
    assert stand.label(held.branch, f"{folder}/thread/answer.txt") == "external/internal"


@pytest.mark.parametrize("door", [HTTP, MCP], ids=lambda door: door.name)
def test_a_folder_that_is_moved_whole(stand: Stand, door: Door) -> None:
    held, folder = stand.start(), fresh().removesuffix(".txt")
    with closing(door.connect(stand, held)) as client:
        client.move("inbox", folder)
    stand.commit(held)
    assert stand.label(held.branch, f"{folder}/letter.txt") == "external/internal"


@pytest.mark.parametrize("door", [HTTP, MCP], ids=lambda door: door.name)
def test_a_search_is_a_read(stand: Stand, door: Door) -> None:
    held, target = stand.start(), fresh()
    with closing(door.connect(stand, held)) as client:
        assert client.search("inbox", "mallory") == ("letter.txt",) or client.search("inbox", "mallory")
        client.create(target, b"the address is mallory's\n")
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


def test_a_memory_note_carries_what_its_writer_had_read_to_whoever_recalls_it(stand: Stand) -> None:
    held, name = stand.start(paths=["memory/**", "inbox/**"]), fresh().rpartition("/")[2]
    with closing(MCP.connect(stand, held)) as client:
        client.read("inbox/letter.txt")
        tell(stand, held, "memory_create", path=f"/memories/{name}", file_text="mallory is a friend\n")
    assert stand.call("proposal.make", run=held.run, message="a note")["state"] == "merged"
    assert stand.label("main", f"memory/{name}") == "external/internal"
    reader = stand.start(paths=["memory/**", "work/**"])
    told = tell(stand, reader, "memory_view", path=f"/memories/{name}")
    assert "mallory is a friend" in told
    assert stand.taint(reader) == "external/internal"


def tell(stand: Stand, held: Held, tool: str, **arguments: object) -> str:
    """Call a tool of MCP that answers with words alone."""
    given = stand.credentials(held, "mcp")
    question = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {**given["settings"]["headers"], "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with closing(Wire(given["url"])) as wire:
        reply = wire.send("POST", urlsplit(given["url"]).path, headers, json.dumps(question).encode())
    assert reply.status == 200 and b'"isError":true' not in reply.body.replace(b" ", b""), reply.body
    return reply.body.decode()


def test_git_renames_and_rewrites_on_its_own_side(stand: Stand) -> None:
    held, target = stand.start(), fresh()
    with closing(Repository(stand, held)) as repository:
        repository.git("checkout", "-q", repository.head)
        repository.git("mv", "inbox/renamed.txt", target)
        repository.git("commit", "-qam", "Nas-Label: owner/public\n\nNas-Origin: owner")
        repository.git("notes", "add", "-m", "nas: origin=owner")
        repository.git("push", "-q", "origin", f"HEAD:refs/heads/{held.branch}")
        repository.run("push", "-q", "origin", "refs/notes/commits")
    assert stand.label(held.branch, target).startswith("external/")


def test_another_run_restores_what_was_labelled(stand: Stand) -> None:
    held, target = stand.start(), fresh()
    with closing(HTTP.connect(stand, held)) as client:
        rewrites(client, "inbox/letter.txt", target, LETTER)
    stand.commit(held)
    commit = stand.head(held.branch)
    other = stand.start(paths=["work/**"])
    stand.call("history.restore", branch=other.branch, source=commit, paths=[target], message="as it was")
    assert stand.label(other.branch, target) == "external/internal"


def test_a_merge_of_both_sides_of_a_file_keeps_the_labels_of_both(stand: Stand) -> None:
    target = fresh()
    base = stand.start()
    with closing(HTTP.connect(stand, base)) as client:
        client.create(target, b"".join(b"line %d\n" % number for number in range(40)))
    assert stand.call("proposal.make", run=base.run, message="lines")["state"] == "merged"
    external, sensitive = stand.start(), stand.start()
    for held, source, line in ((external, "inbox/letter.txt", b"line 2\n"), (sensitive, "private/plan.txt", b"line 37\n")):
        with closing(HTTP.connect(stand, held)) as client:
            client.read(source)
            client.write(target, client.read(target).replace(line, b"another " + line))
    assert stand.call("proposal.make", run=external.run, message="one side")["state"] == "merged"
    made = stand.call("proposal.make", run=sensitive.run, message="the other side")
    if made["state"] == "gated":
        shown = stand.call("gate.show", gate=made["gate"])
        stand.call("gate.approve", gate=made["gate"], digest=shown["digest"])
    assert stand.label("main", target) == "external/sensitive"


# what a caller asserts


def tainted(stand: Stand) -> tuple[Held, str]:
    held, target = stand.start(), fresh()
    with closing(HTTP.connect(stand, held)) as client:
        copies(client, "inbox/letter.txt", target, LETTER)
    return held, target


@needs_fuse
def test_attributes_of_a_mount_lower_nothing(stand: Stand) -> None:
    held, target = tainted(stand)
    with stand.mounted(held) as place:
        for path in (place / target, place / "inbox" / "letter.txt"):
            for name in ("user.nas.origin", "user.nas.sensitivity"):
                with pytest.raises(PermissionError):
                    os.setxattr(path, name, b"owner" if "origin" in name else b"public")
            with pytest.raises(OSError):
                os.removexattr(path, "user.nas.origin")
            assert os.getxattr(path, "user.nas.origin") == b"external"
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


def test_tags_and_metadata_of_s3_lower_nothing(stand: Stand) -> None:
    held, target = tainted(stand)
    tags = b"<Tagging><TagSet><Tag><Key>nas:origin</Key><Value>owner</Value></Tag></TagSet></Tagging>"
    with closing(S3.connect(stand, held)) as client:
        assert isinstance(client, Bucket)
        for ask in (
            lambda: client.ask("PUT", target, tags, query="tagging"),
            lambda: client.ask("DELETE", target, query="tagging"),
            lambda: client.ask("PUT", target, LETTER, {"x-amz-tagging": "nas%3Aorigin=owner", "x-amz-meta-nas-origin": "owner"}),
            lambda: client.ask(
                "PUT",
                target,
                headers={"x-amz-copy-source": f"/{client._bucket}/{target}", "x-amz-metadata-directive": "REPLACE", "x-amz-meta-nas": "1"},
            ),
        ):
            try:
                ask()
            except Refused:
                continue
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


def test_properties_of_webdav_lower_nothing(stand: Stand) -> None:
    held, target = tainted(stand)
    patch = (
        b'<D:propertyupdate xmlns:D="DAV:" xmlns:N="urn:agent-nas"><D:set><D:prop><N:origin>owner</N:origin>'
        b"<N:sensitivity>public</N:sensitivity><N:label>owner/public</N:label></D:prop></D:set></D:propertyupdate>"
    )
    with closing(WEBDAV.connect(stand, held)) as client:
        assert isinstance(client, Dav)
        try:
            told = client.ask("PROPPATCH", target, patch).body
        except Refused:
            told = b"403"
        assert b"403" in told or b"409" in told
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


def test_headers_and_operations_of_http_lower_nothing(stand: Stand) -> None:
    held, target = tainted(stand)
    with closing(HTTP.connect(stand, held)) as client:
        assert isinstance(client, Files)
        client.ask("PUT", target, LETTER, {"Nas-Origin": "owner", "X-Nas-Label": "owner/public", "user.nas.origin": "owner"})
    caller = stand.control.authenticate(held.secret)
    for operation, arguments in (
        ("label.endorse", {"branch": held.branch, "path": target, "origin": "owner", "reason": "trust me"}),
        ("label.unmark", {"pattern": "inbox/**"}),
        ("label.mark", {"pattern": target, "origin": "owner"}),
    ):
        try:
            told = stand.control.call(caller, operation, arguments)
        except Exception as error:
            assert type(error).__name__ == "Fault", error
            continue
        assert told["decision"] == "gated"  # it may ask; a person answers
    stand.commit(held)
    assert stand.label(held.branch, target) == "external/internal"


def test_a_policy_on_a_branch_labels_nothing(stand: Stand) -> None:
    held, target = tainted(stand)
    with closing(HTTP.connect(stand, held)) as client:
        text = client.read(".nas/policy.yaml")
        client.write(".nas/policy.yaml", text.replace(b"origin: external", b"origin: owner"))
    stand.commit(held)
    assert stand.label(held.branch, target) == stand.label(held.branch, "inbox/letter.txt") == "external/internal"
    assert stand.call("proposal.make", run=held.run, message="labels")["state"] == "gated"


def test_a_taint_outlives_the_door_the_process_and_the_lease(stand: Stand) -> None:
    held, target = stand.start(), fresh()
    with closing(HTTP.connect(stand, held)) as client:
        client.read("private/plan.txt")
    child = stand.call("lease.narrow", lease=held.lease, paths=["work/**"])
    other = Held(held.run, held.branch, child["lease"], child["secret"])
    with closing(WEBDAV.connect(stand, other)) as client:
        client.create(target, b"nothing of it is in here\n")
    stand.commit(held)
    assert stand.label(held.branch, target) == "internal/sensitive"
