from __future__ import annotations

import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.names import explain_branch_name, explain_unversionable, find_twins, fold, names_above, valid, versionable

DISGUISES = [
    b".git",
    b".GIT",
    b".Git",
    b".gIt",
    b"git~1",
    b"GIT~1",
    b"Git~1",
    b".git.",
    b".git ",
    b".git. . ",
    b".git...",
    b"git~1.",
    b"git~1 ",
    b".git::$INDEX_ALLOCATION",
    b".GIT::$index_allocation",
    b".git:stream",
    b"git~1:x",
    b".git\\hooks",
    b"x\\.git",
    b"x\\.GIT\\y",
    b"\\.git",
    b"git~1\\x",
    b".git.\\x",
    b"..\\x",
    b"x\\..",
    b"x\\..\\y",
    b"\\..",
    ".g\u200cit".encode(),
    ".gi\u200dt".encode(),
    "\u200e.git".encode(),
    ".git\u200f".encode(),
    ".g\u202ait".encode(),
    ".gi\u202et".encode(),
    "\u206a.git".encode(),
    ".git\u206f".encode(),
    "\ufeff.git".encode(),
    ".G\u200cI\u200dT".encode(),
    ".g\u200cit:x".encode(),
    ".git\u200c. ".encode(),
]
HARMLESS = [
    b".gitignore",
    b".gitattributes",
    b".github",
    b"git",
    b"git~2",
    b"xgit~1",
    b".gitx",
    b"x.git",
    b"repo.git",
    b"a\\b",
    b".gi",
    b"...",
    b". .",
    b"\xff.git",
    b".git\xff",
    "\u200c".encode(),
    b"-rf",
    b"con",
    b"a:b",
    b" ",
    b"\n",
    b"\x01",
    b"..x",
    b"x..",
    "é".encode(),
    b"~",
    b"git~1x",
    b".gitmodules",
]


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"/", b"a\0b", b"x" * 256])
def test_a_name_that_is_no_name_is_refused_everywhere(name: bytes) -> None:
    assert not valid(name)
    assert not versionable(name)


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguise_of_git_may_be_worked_with_but_never_committed(name: bytes) -> None:
    assert valid(name)
    assert not versionable(name)
    assert explain_unversionable(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name_may_be_committed(name: bytes) -> None:
    assert versionable(name)


@pytest.mark.parametrize(
    "name", [b".gitmodules", b".GITMODULES", b"gitmod~1", b"GI7EBA~1", ".gitmod\u200cules".encode(), b".gitmodules ", b".gitmodules:x"]
)
def test_a_symlink_taken_for_gitmodules_is_refused_and_a_file_is_not(name: bytes) -> None:
    assert not versionable(name, symlink=True)
    assert versionable(name)


@given(st.binary(max_size=300))
def test_only_the_rules_refuse_a_name(name: bytes) -> None:
    assert valid(name) == (0 < len(name) <= 255 and name not in (b".", b"..") and b"/" not in name and b"\0" not in name)
    assert valid(name) or not versionable(name)


@given(
    st.sampled_from([".git", "git~1"]),
    st.text(st.sampled_from("\u200c\u200d\u202e\ufeff"), max_size=3),
    st.integers(0, 5),
    st.text(st.sampled_from(". "), max_size=4),
    st.sampled_from(["", ":x", "\\x", "::$DATA"]),
    st.booleans(),
)
def test_disguises_combine(stem: str, noise: str, at: int, tail: str, stream: str, upper: bool) -> None:
    name = stem[:at] + noise + stem[at:] + tail + stream
    assert not versionable((name.upper() if upper else name).encode())


@pytest.mark.parametrize(
    "pair", [("A", "a"), ("é", "e\u0301"), ("É", "e\u0301"), ("ß", "SS"), ("\u1e9b\u0323", "\u1e9b\u0323".upper()), ("Σ", "ς")]
)
def test_twins_fold_to_one_name(pair: tuple[str, str]) -> None:
    one, other = (name.encode() for name in pair)
    assert find_twins([one, b"else", other]) == (tuple(sorted([one, other])),)


def test_names_that_are_not_utf8_are_nobodys_twin() -> None:
    assert find_twins([b"\xc9", b"\xe9"]) == ()
    assert find_twins([b"a", b"b"]) == ()


@given(st.text())
def test_folding_is_stable_and_ignores_case_and_composition(text: str) -> None:
    name = text.encode("utf-8", "replace")
    assert fold(fold(name)) == fold(name)
    assert fold(unicodedata.normalize("NFD", text).encode("utf-8", "replace")) == fold(name)


@pytest.mark.parametrize("name", ["main", "agent/run-1", "a/b/c", "v1.2", "x@y", "UPPER", "a.b/c_d", "deadbeef"])
def test_a_plain_branch_name_is_accepted(name: str) -> None:
    assert explain_branch_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "-x",
        "--upload-pack=x",
        "/a",
        "a/",
        "a//b",
        "a..b",
        "a.",
        ".a",
        "a/.b",
        "a.lock",
        "a.LOCK/b",
        "a@{b",
        "@",
        "HEAD",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "[a",
        "a\\b",
        "é",
        "a\x7f",
        "a\n",
        "f" * 40,
        "x" * 201,
    ],
)
def test_a_branch_name_that_git_or_a_shell_misreads_is_refused(name: str) -> None:
    assert explain_branch_name(name)


@given(st.text(st.sampled_from("ab/.@{-~^:?*[\\ lock\x7f"), max_size=8))
def test_every_accepted_branch_name_is_one_for_git(name: str) -> None:
    if explain_branch_name(name) is None:
        assert subprocess.run(["git", "check-ref-format", "--branch", name], check=False, capture_output=True, timeout=20).returncode == 0


def test_the_names_above_a_branch_cannot_be_branches() -> None:
    assert list(names_above("a/b/c")) == ["a/b", "a"]
    assert list(names_above("a")) == []
