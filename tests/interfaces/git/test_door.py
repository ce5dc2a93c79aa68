"""Who gets in, what is accounted, what is refused at the door, and what a push that dies leaves."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import socket
import struct
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interfaces.git.children import Bounds
from interfaces.git.pktline import Mark, encode
from interfaces.git.pushing import PushLimits
from interfaces.web.limits import Limits
from tests.e2e.conftest import wait_until
from tests.house_of_doors import Started
from tests.interfaces.git.conftest import BIG, Site, attempt, commit, environment, git, open_site, refused


def ask(site: Site, method: str, path: str, body: bytes = b"", secret: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send one request and return status, headers (lower case) and body."""
    connection = HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if secret:
        sent["authorization"] = f"Bearer {secret}"
    connection.request(method, path, body, sent)
    answer = connection.getresponse()
    try:
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_a_stranger_is_asked_who_they_are(site: Site) -> None:
    status, headers, body = ask(site, "GET", "/git/main.git/info/refs?service=git-upload-pack")
    assert status == 401
    assert headers["www-authenticate"] == 'Basic realm="agent-nas"'
    assert body.startswith(b"the request carries no secret")
    assert "Authentication failed" in refused(site.folder, "ls-remote", site.address("wrong", user="nobody"))


def test_a_lease_a_derived_password_and_a_bearer_all_let_in(site: Site, run: Started) -> None:
    password = site.house.house.trust.basic_password(run.lease)
    for secret in (run.secret, password):
        assert "HEAD" in git(site.folder, "ls-remote", site.address(secret, run.branch, run.lease))
    header = f"http.extraHeader=Authorization: Bearer {run.secret}"
    assert "HEAD" in git(site.folder, "-c", header, "ls-remote", f"{site.url}/git/{run.branch}.git")


def test_the_dumb_protocol_is_refused_in_words(site: Site, run: Started) -> None:
    for path in ("/git/main.git/info/refs", "/git/main.git/HEAD", "/git/main.git/objects/info/packs"):
        status, _, body = ask(site, "GET", path, secret=run.secret)
        assert status in (403, 404)
        assert b"smart protocol only" in body


def test_a_lease_that_ended_ends_the_door(site: Site, run: Started) -> None:
    clone = site.clone(run.secret, run.branch, user=run.lease)
    site.house.call(site.house.owner, "lease.revoke", {"lease": run.lease, "reason": "enough"})
    assert "the lease was taken back" in refused(clone, "fetch")


def test_what_leaves_is_in_the_manifest_and_the_budget(site: Site) -> None:
    run = site.house.start_run(budgets={"bytes_read": 100_000, "reads": 10})
    site.write(run.branch, {"a": b"1"})
    clone = site.clone(run.secret, run.branch, user=run.lease)
    reads = [record for record in site.house.house.trust.records(run=run.run) if record.kind == "reads"]
    assert reads[-1].body["commit"] == git(clone, "rev-parse", "HEAD")
    assert [(read["path"], read["times"]) for read in reads[-1].body["reads"]] == [("/", 1)]
    assert site.house.house.trust.left(run.lease)  # type: ignore[arg-type]
    site.write(run.branch, {"big": os.urandom(300_000)})
    assert attempt(clone, "fetch").returncode != 0
    left = {kind.value: amount for kind, amount in site.house.house.trust.left(run.lease).items()}  # type: ignore[arg-type]
    assert left["bytes_read"] >= 0


def test_a_push_beyond_the_budget_changes_nothing(site: Site) -> None:
    run = site.house.start_run(budgets={"bytes_written": 10_000, "commits": 2})
    clone = site.clone(run.secret, run.branch, user=run.lease)
    before = site.house.house.appliance.engine.branch(run.branch).head
    commit(clone, {"a": bytes(20_000)})
    assert "budget" in refused(clone, "push")
    assert site.house.house.appliance.engine.branch(run.branch).head == before
    git(clone, "reset", "--quiet", "--hard", "origin/HEAD")
    commit(clone, {"a": bytes(5_000)})
    git(clone, "push", "--quiet")
    left = {kind.value: amount for kind, amount in site.house.house.trust.left(run.lease).items()}  # type: ignore[arg-type]
    assert left == {"bytes_written": 5_000, "commits": 1}


def test_a_push_is_recorded_before_the_branch_moves(site: Site, run: Started) -> None:
    clone = site.clone(run.secret, run.branch, user=run.lease)
    before = site.house.house.appliance.engine.branch(run.branch).head
    pushed = commit(clone, {"a": b"1"})
    git(clone, "push", "--quiet")
    intent, outcome = [record for record in site.house.house.trust.records(run=run.run) if record.kind == "push"]
    assert (intent.phase.value, outcome.phase.value) == ("intent", "outcome")
    assert intent.body["expected"] == before
    assert (intent.body["pushed"], intent.body["commits"], intent.body["paths"]) == (pushed, [pushed], 1)
    assert (intent.lease, intent.principal) == (run.lease, "coder")
    assert outcome.body == {"result": "done", "commit": pushed}


def test_twins_are_told_and_taken(site: Site, run: Started) -> None:
    clone = site.clone(run.secret, run.branch, user=run.lease)
    commit(clone, {"Readme": b"1", "README": b"2"})
    assert "remote: warning: README and Readme are one name on other systems" in attempt(clone, "push").stderr


def test_a_pack_that_git_does_not_trust_is_refused_with_its_reason(site: Site, run: Started) -> None:
    clone = site.clone(run.secret, run.branch, user=run.lease)
    blob = git(clone, "hash-object", "-w", "--stdin", given=b"x")
    tree = git(clone, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", given=b"100644 .git\0" + bytes.fromhex(blob))
    hostile = git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "hostile")
    said = refused(clone, "push", "origin", f"{hostile}:refs/heads/{run.branch}")
    assert "hasDotgit" in said
    assert "what was sent cannot be unpacked" in said
    assert quarantines(site) == []


def quarantines(site: Site) -> list[Path]:
    return list((site.house.house.appliance.settings.store / "tmp").glob("push-*"))


def shown(site: Site) -> list[Path]:
    return list((site.house.house.appliance.settings.run / "git").glob("*/shown/*"))


def test_a_request_leaves_nothing_behind(site: Site, run: Started) -> None:
    clone = site.clone(run.secret, run.branch, user=run.lease)
    commit(clone, {"a": b"1"})
    git(clone, "push", "--quiet")
    deadline = time.monotonic() + 10
    while shown(site) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert shown(site) == []
    assert quarantines(site) == []


def test_a_compressed_request_is_bounded(site: Site, run: Started) -> None:
    bomb = gzip.compress(bytes(80 << 20))
    status, _, body = ask(
        site, "POST", f"/git/{run.branch}.git/git-upload-pack", bomb, run.secret, content_encoding="gzip", git_protocol="version=2"
    )
    assert status in (400, 413), body
    status, _, _ = ask(site, "POST", f"/git/{run.branch}.git/git-upload-pack", b"x", run.secret, content_encoding="br")
    assert status == 415


@pytest.mark.parametrize("body", [b"", b"garbage", b"0003", b"fff0", encode(b"want nonsense\n"), encode(b"command=fetch") + b"00"])
def test_what_is_no_request_is_refused(site: Site, run: Started, body: bytes) -> None:
    status, _, _ = ask(site, "POST", f"/git/{run.branch}.git/git-upload-pack", body, run.secret, git_protocol="version=2")
    assert status in (200, 400)
    status, _, _ = ask(site, "POST", f"/git/{run.branch}.git/git-receive-pack", body, run.secret)
    assert status == 400


def test_a_client_that_tries_the_way_gets_an_empty_answer(site: Site, run: Started) -> None:
    assert ask(site, "POST", f"/git/{run.branch}.git/git-receive-pack", b"0000", run.secret)[::2] == (200, b"")


def test_expect_is_answered(site: Site, run: Started) -> None:
    clone = site.clone(run.secret, run.branch, "-c", "http.postBuffer=65536", user=run.lease)
    git(clone, "config", "http.extraHeader", "Expect: 100-continue")
    pushed = commit(clone, {"a": os.urandom(200_000)})
    git(clone, "push", "--quiet")
    assert site.house.house.appliance.engine.branch(run.branch).head == pushed


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path, push_limits=PushLimits(pack_bytes=1 << 20, child=Bounds(memory=64 << 20))) as made:
        yield made


def test_a_pack_above_the_limit_is_refused_and_the_client_hears_it(small: Site) -> None:
    run = small.house.start_run()
    clone = small.clone(run.secret, run.branch, "-c", "http.postBuffer=65536", user=run.lease)
    commit(clone, {"a": os.urandom(3 << 20)})
    said = refused(clone, "push")
    assert "pack exceeds maximum allowed size" in said
    assert "what was sent cannot be unpacked" in said


def pack_of(*objects: bytes) -> bytes:
    data = b"PACK" + struct.pack(">II", 2, len(objects)) + b"".join(objects)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def entry(kind: int, size: int, packed: bytes) -> bytes:
    head = bytearray([(kind << 4) | (size & 15)])
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head) + packed


def push_pack(site: Site, run: Started, pack: bytes) -> bytes:
    """Push a pack that no git would make and return the report."""
    head = site.house.house.appliance.engine.branch(run.branch).head
    command = encode(f"{head} {'1' * 40} refs/heads/{run.branch}\0 report-status".encode()) + encode(Mark.FLUSH)
    status, _, body = ask(site, "POST", f"/git/{run.branch}.git/git-receive-pack", command + pack, run.secret)
    assert status == 200
    return body


def test_a_pack_bomb_is_refused_in_bounded_memory(small: Site) -> None:
    run = small.house.start_run()
    squeezer = zlib.compressobj(9)
    packed = b"".join(squeezer.compress(bytes(1 << 20)) for _ in range(200)) + squeezer.flush()
    assert len(packed) < 1 << 20
    report = push_pack(small, run, pack_of(entry(2, 200 << 20, packed)))
    assert b"out of memory" in report.lower()
    assert b"ng refs/heads/" in report


@pytest.mark.parametrize("pack", [b"", b"PACK", b"PACKxxxx", pack_of(), pack_of()[:-3], os.urandom(300)])
def test_a_pack_that_is_none_is_refused(site: Site, run: Started, pack: bytes) -> None:
    assert b"ng refs/heads/" in push_pack(site, run, pack)
    assert quarantines(site) == []


def test_a_lease_revoked_while_a_push_arrives_ends_it(site: Site, run: Started) -> None:
    clone = site.clone(run.secret, run.branch, "-c", "http.postBuffer=65536", "-c", "core.compression=0", user=run.lease)
    commit(clone, {"a": os.urandom(8 << 20)})
    before = site.house.house.appliance.engine.branch(run.branch).head
    head = git(clone, "rev-parse", "HEAD")
    pack = subprocess.run(
        ["git", "pack-objects", "--revs", "--stdout", "--quiet", "--thin"],
        cwd=clone,
        env=environment(clone),
        input=f"{head}\n^{before}\n".encode(),
        capture_output=True,
        check=True,
    ).stdout
    command = encode(f"{before} {head} refs/heads/{run.branch}\0 report-status".encode()) + encode(Mark.FLUSH)
    half = len(pack) // 2

    def body() -> Iterator[bytes]:
        yield command + pack[:half]
        site.house.call(site.house.owner, "lease.revoke", {"lease": run.lease, "reason": "enough"})
        yield pack[half:]

    connection = HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    headers = {"authorization": f"Bearer {run.secret}", "transfer-encoding": "chunked"}
    connection.request("POST", f"/git/{run.branch}.git/git-receive-pack", body(), headers, encode_chunked=True)
    answer = connection.getresponse()
    assert (answer.status, b"was revoked" in answer.read()) == (401, True)
    connection.close()
    assert site.house.house.appliance.engine.branch(run.branch).head == before
    wait_until(lambda: quarantines(site) == [])


def test_a_client_that_leaves_in_the_middle_leaves_nothing(site: Site, run: Started) -> None:
    before = site.house.house.appliance.engine.branch(run.branch).head
    command = encode(f"{before} {'1' * 40} refs/heads/{run.branch}\0 report-status".encode()) + encode(Mark.FLUSH)
    place = urlsplit(site.url)
    with socket.create_connection((place.hostname or "", place.port or 0)) as connection:
        token = base64.b64encode(f"{run.lease}:{run.secret}".encode()).decode()
        connection.sendall(
            f"POST /git/{run.branch}.git/git-receive-pack HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Basic {token}\r\n"
            f"content-length: 100000\r\n\r\n".encode()
            + command
            + b"PACK"
        )
        deadline = time.monotonic() + 20
        while not quarantines(site) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert quarantines(site)
    while quarantines(site) and time.monotonic() < deadline:
        time.sleep(0.02)
    wait_until(lambda: quarantines(site) == [])
    assert site.house.house.appliance.engine.branch(run.branch).head == before


def test_a_fetch_whose_client_leaves_ends_its_git(site: Site, run: Started) -> None:
    site.write(run.branch, {f"noise{number}": os.urandom(7 << 20) for number in range(5)})
    head = git(site.folder, "ls-remote", site.address(run.secret, run.branch, run.lease), "HEAD").split()[0]
    body = encode(f"want {head} side-band-64k".encode()) + encode(Mark.FLUSH) + encode(b"done\n")
    place = urlsplit(site.url)
    head_lines = f"POST /git/{run.branch}.git/git-upload-pack HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Bearer {run.secret}\r\n"
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as connection:
        connection.sendall(f"{head_lines}content-length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + 20
        while not children("upload-pack") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert children("upload-pack")
    while children("upload-pack") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children("upload-pack") == []


def children(word: str) -> list[int]:
    """Return the git processes of this process whose command line has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            line = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and word.encode() in line:
            found.append(int(path.name))
    return found


def test_two_pushes_at_once_lose_nothing(site: Site, run: Started) -> None:
    clones = [site.clone(run.secret, run.branch, user=run.lease, name=f"clone{number}") for number in range(2)]
    heads = [commit(clone, {f"file{number}": b"1"}) for number, clone in enumerate(clones)]
    results: list[int] = [1, 1]

    def push(number: int) -> None:
        results[number] = attempt(clones[number], "push").returncode

    threads = [threading.Thread(target=push, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results)[0] == 0
    assert sorted(results)[1] != 0
    assert site.house.house.appliance.engine.branch(run.branch).head == heads[results.index(0)]


def test_limits_of_the_family_hold(tmp_path: Path) -> None:
    with open_site(tmp_path, limits=Limits(idle_seconds=0.5)) as site:
        run = site.house.start_run()
        place = urlsplit(site.url)
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as connection:
            token = base64.b64encode(f"{run.lease}:{run.secret}".encode()).decode()
            connection.sendall(
                f"POST /git/{run.branch}.git/git-upload-pack HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Basic {token}\r\n"
                "content-length: 1000\r\n\r\n0011".encode()
            )
            assert connection.recv(1000).startswith(b"HTTP/1.1 408")


def test_large_files_are_taken_when_they_are_what_they_say(site: Site, run: Started) -> None:
    data = b"large" * 5000
    name = hashlib.sha256(data).hexdigest()
    base = f"/git/{run.branch}.git/info/lfs"
    assert ask(site, "PUT", f"{base}/objects/{name}/{len(data)}", data[:-1], run.secret)[0] == 400
    assert ask(site, "PUT", f"{base}/objects/{'0' * 64}/{len(data)}", data, run.secret)[0] == 400
    assert ask(site, "PUT", f"{base}/objects/{name}/{len(data)}", data, run.secret)[0] == 200
    batch = b'{"operation": "%s", "objects": [{"oid": "%s", "size": %d}]}'
    upload = ask(site, "POST", f"{base}/objects/batch", batch % (b"upload", name.encode(), len(data)), run.secret)[2]
    assert b"actions" not in upload
    download = ask(site, "POST", f"{base}/objects/batch", batch % (b"download", name.encode(), len(data)), run.secret)[2]
    assert b"no such large file" in download
    assert ask(site, "GET", f"{base}/objects/{name}/{len(data)}", secret=run.secret)[0] == 404
    clone = site.clone(run.secret, run.branch, user=run.lease)
    commit(clone, {"big": b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize %d\n" % (name.encode(), len(data))})
    git(clone, "push", "--quiet")
    status, headers, body = ask(site, "GET", f"{base}/objects/{name}/{len(data)}", secret=run.secret, range="bytes=5-9")
    assert (status, headers["content-range"], body) == (206, f"bytes 5-9/{len(data)}", b"large")
    other = site.house.start_run()
    assert ask(site, "GET", f"/git/{other.branch}.git/info/lfs/objects/{name}/{len(data)}", secret=other.secret)[0] == 404


def test_naming_the_hash_of_a_hidden_large_file_gets_nobody_its_content(site: Site, run: Started) -> None:
    other = site.house.start_run()
    site.write(other.branch, {"big": BIG})
    site.house.call(site.house.owner, "commit.make", {"branch": other.branch})
    clone = site.clone(run.secret, run.branch, user=run.lease)
    name = hashlib.sha256(BIG).hexdigest().encode()
    commit(clone, {"stolen": b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize %d\n" % (name, len(BIG))})
    assert "was not uploaded" in refused(clone, "push")
