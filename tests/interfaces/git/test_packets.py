"""Everything that reads what a stranger sends: packets, requests, addresses, bodies. Nothing but a fault may come of any bytes."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.git.lfs import read_batch, read_file, render_attributes
from interfaces.git.pktline import LONGEST, MOST, Mark, Packet, encode, read_head, split_packets
from interfaces.git.pushing import read_push
from interfaces.git.replies import refuse, report, tell, wrap
from interfaces.git.requests import Naming, find_named, is_version_2, read_command, read_protocol
from interfaces.git.routes import Asked, Service, read_address, read_repository, read_shell_command
from interfaces.git.streams import Inflating, Stream

packets: st.SearchStrategy[list[Packet]] = st.lists(st.sampled_from(list(Mark)) | st.binary(max_size=300), max_size=8)
ONE = "1" * 40
TWO = "2" * 40


def stream_of(*pieces: bytes) -> Stream:
    waiting = [piece for piece in pieces if piece]

    async def next_piece() -> bytes:
        return waiting.pop(0) if waiting else b""

    return Stream(next_piece)


@given(packets)
def test_what_is_written_is_read_again(written: list[Packet]) -> None:
    assert list(split_packets(b"".join(map(encode, written)))) == written


@given(packets, st.lists(st.integers(0, 400), max_size=6))
def test_a_stream_gives_the_same_packets_however_they_arrive(written: list[Packet], cuts: list[int]) -> None:
    data = b"".join(map(encode, written))
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]

    async def read() -> list[Packet]:
        stream = stream_of(*pieces)
        found = []
        while not await stream.at_end():
            found.append(await stream.read_packet())
        return found

    assert asyncio.run(read()) == written


@given(st.binary(max_size=400) | st.binary(max_size=60).map(lambda data: b"00" + data))
def test_any_bytes_are_packets_or_a_fault(data: bytes) -> None:
    try:
        found = list(split_packets(data))
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert b"".join(map(encode, found)).lower() == data.lower()


@pytest.mark.parametrize("head", [b"0003", b"0004x", b"fff1", b"ffff", b"00g0", b"+005", b"0x05", b" 005", b"-001", b"", b"000"])
def test_a_head_that_is_none_is_refused(head: bytes) -> None:
    with pytest.raises(Fault):
        read_head(head)


def test_an_empty_packet_and_the_longest_are_packets() -> None:
    assert read_head(b"0004") == 0
    assert read_head(b"%04x" % LONGEST) == MOST


lines = st.binary(max_size=120) | st.builds(
    lambda word, rest: word + rest, st.sampled_from([b"want ", b"have ", b"shallow "]), st.binary(max_size=60)
)


@given(lines)
def test_a_line_that_names_an_object_names_a_whole_one_or_is_refused(line: bytes) -> None:
    try:
        named = find_named(line)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
        return
    spoken = [naming for naming in Naming if line.startswith(naming.value)]
    assert (named is None) == (not spoken)
    if named is not None:
        assert line.startswith(f"{named.naming.value.decode()}{named.object}".encode())


@given(st.binary(max_size=200))
def test_any_command_is_read_or_refused(line: bytes) -> None:
    try:
        command, _ = read_command(line)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert command is None or command.reference.startswith("refs/")


def test_a_command_is_read_with_what_it_asks_for() -> None:
    command, asked = read_command(f"{ONE} {TWO} refs/heads/a\0 report-status atomic\n".encode())
    assert command is not None
    assert (command.old, command.new, command.reference) == (ONE, TWO, "refs/heads/a")
    assert asked == {"report-status", "atomic"}


@given(packets)
def test_any_push_is_read_or_refused(written: list[Packet]) -> None:
    async def read() -> None:
        try:
            await read_push(stream_of(b"".join(map(encode, written)), encode(Mark.FLUSH)))
        except Fault as fault:
            assert fault.kind in (Kind.INVALID, Kind.TOO_LARGE)

    asyncio.run(read())


def test_a_push_without_end_of_commands_is_refused() -> None:
    flood = encode(f"{ONE} {TWO} refs/heads/a".encode()) * 10_001
    with pytest.raises(Fault) as refused:
        asyncio.run(read_push(stream_of(flood)))
    assert refused.value.kind is Kind.TOO_LARGE


@given(st.text(max_size=80))
def test_a_protocol_reaches_git_only_when_it_is_plain(text: str) -> None:
    assert read_protocol(text) in ("", text)
    assert "\n" not in read_protocol(text)


@pytest.mark.parametrize(("text", "plain", "second"), [("version=2", True, True), ("version=1", True, False), ("version=3", False, False)])
def test_protocols(text: str, plain: bool, second: bool) -> None:
    assert bool(read_protocol(text)) is plain
    assert is_version_2(read_protocol(text)) is second


@given(st.binary(max_size=80).map(lambda rest: b"/git/" + rest))
def test_any_address_is_read_or_refused(raw: bytes) -> None:
    try:
        address = read_address(raw)
    except Fault as fault:
        assert fault.kind in (Kind.NOT_FOUND, Kind.INVALID)
    else:
        assert address.branch


@pytest.mark.parametrize(
    ("raw", "branch", "asked"),
    [
        (b"/git/main.git/info/refs", "main", Asked.REFERENCES),
        (b"/git/main/info/refs", "main", Asked.REFERENCES),
        (b"/git/coder/r1.git/git-upload-pack", "coder/r1", Asked.FETCH),
        (b"/git/r1.git/git-receive-pack", "r1", Asked.PUSH),
        (b"/git/coder/r1.git/info/lfs/objects/batch", "coder/r1", Asked.LARGE),
        (b"/git/main.git/info/attributes", "main", Asked.ATTRIBUTES),
    ],
)
def test_addresses(raw: bytes, branch: str, asked: Asked) -> None:
    address = read_address(raw)
    assert (address.branch, address.asked) == (branch, asked)


@pytest.mark.parametrize(
    "raw", [b"/git/", b"/git/main.git", b"/git/a/b/c.git/info/refs", b"/git/main.git/HEAD", b"/git/main.git/objects/ab/c"]
)
def test_what_is_no_address_does_not_exist(raw: bytes) -> None:
    with pytest.raises(Fault) as refused:
        read_address(raw)
    assert refused.value.kind is Kind.NOT_FOUND


@pytest.mark.parametrize("text", ["main", "main.git", "/main.git", "/git/main.git", "git/main"])
def test_repositories_over_ssh(text: str) -> None:
    assert read_repository(text) == "main"


@pytest.mark.parametrize("text", ["git-upload-pack '/git/main.git'", "git upload-pack /git/main.git", "git-upload-pack main"])
def test_what_git_asks_over_ssh_is_read(text: str) -> None:
    assert read_shell_command(text) == (Service.FETCH, "main")


@given(st.text(max_size=60) | st.text(max_size=40).map(lambda rest: f"git-upload-pack {rest}"))
def test_anything_else_over_ssh_is_refused(text: str) -> None:
    try:
        service, _ = read_shell_command(text)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert text.lstrip().startswith(("git", service.value, '"', "'", "\\"))


@pytest.mark.parametrize(
    "text", ["", "sh", "git", "git-upload-pack", "git-upload-archive main", "git-upload-pack 'main", "nas stop", "git gc main"]
)
def test_no_other_command_runs(text: str) -> None:
    with pytest.raises(Fault):
        read_shell_command(text)


def inflate(*pieces: bytes) -> list[bytes]:
    waiting = list(pieces)

    async def next_piece() -> bytes:
        return waiting.pop(0) if waiting else b""

    async def read() -> list[bytes]:
        inflating, found = Inflating(next_piece), []
        while piece := await inflating.next():
            found.append(piece)
        return found

    return asyncio.run(read())


@given(st.binary(max_size=2000), st.integers(1, 50))
def test_a_compressed_body_is_inflated_however_it_arrives(data: bytes, step: int) -> None:
    packed = gzip.compress(data)
    assert b"".join(inflate(*(packed[start : start + step] for start in range(0, len(packed), step)))) == data


def test_a_body_that_grows_without_end_comes_in_small_pieces_and_is_refused_at_the_limit() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    assert len(bomb) < 100_000
    assert max(map(len, inflate(bomb))) <= 1 << 18
    waiting = [bomb]

    async def next_piece() -> bytes:
        return waiting.pop() if waiting else b""

    with pytest.raises(Fault) as refused:
        asyncio.run(Stream(Inflating(next_piece).next).read_all(1 << 20))
    assert refused.value.kind is Kind.TOO_LARGE


@pytest.mark.parametrize("data", [b"not gzip", gzip.compress(b"x" * 100)[:-20], zlib.compress(b"x"), b""])
def test_a_body_that_is_not_what_it_says_is_refused(data: bytes) -> None:
    with pytest.raises(Fault) as refused:
        inflate(data)
    assert refused.value.kind is Kind.INVALID


@given(st.text(max_size=200), st.dictionaries(st.just("refs/heads/a"), st.text(max_size=300)))
def test_whatever_is_said_stays_in_its_line_and_its_packets(why: str, fates: dict[str, str]) -> None:
    for said in (refuse(why), report("ok", fates), tell([why]), wrap(b"\x01", why.encode("utf-8", "replace") * 700)):
        found = list(split_packets(said))
        assert all(isinstance(packet, bytes) or packet is Mark.FLUSH for packet in found)
    assert len(list(split_packets(report("ok", fates)))) == len(fates) + 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=70),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["oid", "size", "operation", "objects"]), below),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["operation", "objects", "hash_algo", "ref"]), json_values | st.sampled_from(["upload", "download"]))
)
def test_any_batch_is_read_or_refused(document: dict[str, object]) -> None:
    try:
        batch = read_batch(document)
    except Fault as fault:
        assert fault.kind in (Kind.INVALID, Kind.TOO_LARGE, Kind.UNSUPPORTED)
    else:
        assert all(len(file.sha256) == 64 and file.size >= 0 for file in batch.files)


@pytest.mark.parametrize(
    ("sha256", "size"), [("a" * 63, 1), ("A" * 64, 1), ("a" * 64, -1), ("a" * 64, True), ("a" * 64, 1 << 50), (None, 1)]
)
def test_a_large_file_is_named_by_its_hash_and_its_size(sha256: object, size: object) -> None:
    with pytest.raises(Fault):
        read_file(sha256, size)


def test_a_path_becomes_a_pattern_that_matches_it_alone() -> None:
    assert render_attributes([b"a b/*.bin", b'q"\xff']) == (
        b'"/a b/\\\\*.bin" filter=lfs diff=lfs merge=lfs -text\n"/q\\"\\377" filter=lfs diff=lfs merge=lfs -text\n'
    )
