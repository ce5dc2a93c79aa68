"""Git objects here are git's: same identities, same bytes, in both directions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.engines.git.commands import run_git
from store.engines.git.objects import (
    EMPTY_TREE,
    GITLINK,
    CommitData,
    Kind,
    compose_commit,
    encode_commit,
    encode_tree,
    make_object,
    object_id,
    parse_commit,
    parse_tree,
    read_commit,
)
from store.errors import Corrupt, InvalidName
from store.model import Note, Provenance
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry

NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: b"/" not in name and b"\0" not in name)
IDS = st.binary(min_size=20, max_size=20).filter(any)
ENTRIES = st.builds(TreeEntry, st.sampled_from([FILE, EXECUTABLE, SYMLINK, DIRECTORY, GITLINK]), IDS)
LISTINGS = st.dictionaries(NAMES, ENTRIES, max_size=12)
LINES = st.binary(max_size=40).filter(lambda line: b"\n" not in line)
COMMITS = st.builds(
    CommitData,
    tree=IDS,
    parents=st.lists(IDS, max_size=3).map(tuple),
    author=LINES,
    committer=LINES,
    message=st.binary(max_size=80),
    extra=st.lists(LINES.map(lambda line: b"x " + line + b"\n"), max_size=3).map(b"".join),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("objects") / "repo.git"
    run_git(None, "init", "--bare", "--quiet", str(path))
    return path


@pytest.mark.parametrize("data", [b"", b"hello\n", bytes(range(256)) * 5000])
def test_a_blob_has_the_identity_that_git_gives_it(data: bytes) -> None:
    assert run_git(None, "hash-object", "--stdin", given=data).decode().strip() == object_id(Kind.BLOB, data).hex()


def test_the_empty_tree_is_the_one_of_git() -> None:
    assert EMPTY_TREE.hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@given(LISTINGS)
def test_a_tree_is_parsed_back_to_what_was_encoded(listing: dict[bytes, TreeEntry]) -> None:
    assert parse_tree(encode_tree(listing)) == listing


def test_trees_are_ordered_as_git_orders_them(repository: Path) -> None:
    blob = bytes.fromhex(run_git(repository, "hash-object", "-w", "--stdin", given=b"x").decode().strip())
    listing = {
        b"a": TreeEntry(DIRECTORY, EMPTY_TREE),
        b"a.c": TreeEntry(FILE, blob),
        b"a-": TreeEntry(EXECUTABLE, blob),
        b"a0": TreeEntry(SYMLINK, blob),
        b"\xff\xfe": TreeEntry(FILE, blob),
        b"new\nline": TreeEntry(FILE, blob),
    }
    given_lines = b"".join(
        b"%06o %s %s\t%s\0" % (entry.mode, b"tree" if entry.mode == DIRECTORY else b"blob", entry.content.hex().encode(), name)
        for name, entry in reversed(listing.items())
    )
    made = run_git(repository, "mktree", "-z", "--missing", given=given_lines).decode().strip()
    assert made == object_id(Kind.TREE, encode_tree(listing)).hex()
    assert run_git(repository, "cat-file", "tree", made) == encode_tree(listing)


@pytest.mark.parametrize(
    "data",
    [b"100644", b"100644 name", b"100644 name\0short", b" name\0" + b"i" * 20, b"100644 \0" + b"i" * 20, b"1006xx n\0" + b"i" * 20],
)
def test_a_malformed_tree_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        parse_tree(data)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parsers_fail_in_another_way(data: bytes) -> None:
    for parse in (parse_tree, parse_commit):
        try:
            parse(data)
        except Corrupt:
            continue


@given(COMMITS)
def test_a_commit_is_written_back_byte_for_byte(commit: CommitData) -> None:
    assert parse_commit(encode_commit(commit)) == commit


def test_signatures_and_odd_encodings_of_imported_commits_are_kept() -> None:
    raw = (
        b"tree " + b"1" * 40 + b"\nparent " + b"2" * 40 + b"\nauthor \xe9 <e@x> 1 +0530\ncommitter C <c@x> 2 -0800\n"
        b"encoding ISO-8859-1\ngpgsig -----BEGIN\n line\n -----END\n\nsubject \xe9\n\nbody without an end"
    )
    assert encode_commit(parse_commit(raw)) == raw
    commit = read_commit(object_id(Kind.COMMIT, raw), raw)
    assert (commit.author, commit.note.when, commit.parents) == ("\N{REPLACEMENT CHARACTER} <e@x>", 2, ("2" * 40,))


@pytest.mark.parametrize("missing", [b"tree", b"author", b"committer"])
def test_a_commit_without_a_required_line_is_corrupt(missing: bytes) -> None:
    whole = encode_commit(CommitData(EMPTY_TREE, (), b"a <a> 1 +0000", b"c <c> 1 +0000", b"m"))
    lines = [line for line in whole.split(b"\n") if not line.startswith(missing)]
    with pytest.raises(Corrupt):
        parse_commit(b"\n".join(lines))


@pytest.mark.parametrize("principal", ["agent:fixer", "", "evil <x@y> 5 +0000", "<>", "Zoë"])
def test_git_accepts_a_commit_of_any_principal_and_it_reads_back(repository: Path, principal: str) -> None:
    note = Note("do it\n\nwith reasons\n", Provenance(principal, run="r1"), 1_700_000_000)
    tree = run_git(repository, "mktree").decode().strip()
    made = compose_commit(bytes.fromhex(tree), [], note)
    stored = run_git(repository, "hash-object", "-t", "commit", "-w", "--stdin", given=made.data).decode().strip()
    assert stored == made.oid.hex()
    assert read_commit(made.oid, made.data).note == note
    run_git(repository, "fsck", "--strict", stored)


@pytest.mark.parametrize("principal", ["a\nparent " + "0" * 40, "a\0b"])
def test_a_principal_with_control_characters_is_refused(principal: str) -> None:
    with pytest.raises(InvalidName):
        compose_commit(EMPTY_TREE, [], Note("m", Provenance(principal), 1))


def test_a_principal_cannot_add_headers_to_a_commit() -> None:
    made = compose_commit(EMPTY_TREE, [], Note("m", Provenance("a> 1 +0000 committer <b"), 1))
    parsed = parse_commit(made.data)
    assert (parsed.parents, parsed.extra) == ((), b"")
    assert parsed.author == b"a-1-+0000-committer-b <a-1-+0000-committer-b@agent-nas.invalid> 1 +0000"


def test_cat_file_reads_what_is_made_here(repository: Path) -> None:
    made = make_object(Kind.BLOB, b"some content")
    subprocess.run(["git", f"--git-dir={repository}", "hash-object", "-w", "--stdin"], input=made.data, check=True, capture_output=True)
    assert run_git(repository, "cat-file", made.kind.word.decode(), made.oid.hex()) == made.data
