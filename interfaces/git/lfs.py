"""Git LFS: which large files are here, and where their bytes go (the batch API with its basic transfer).

1. In a tree a large file is a pointer; its bytes travel beside git, under the hash that the pointer names, with the same credentials.
2. A download is offered for what a pointer on offer stands for. Naming a hash gets nobody what no pointer shows them.
3. An upload is kept for the push that brings its pointer; it is checked against its name before it counts. What is here for this caller
   already is not sent again.
4. Locks are advice between people and agents, kept across branches and restarts; who sees a path sees its lock.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.git.ports import LargeContent, LargeFile, View
from interfaces.port import Caller, Document, Notes
from interfaces.web.pool import Pool

MEDIA_TYPE = "application/vnd.git-lfs+json"
MOST_OBJECTS = 1000
MOST_LOCKS = 1000

_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST = 1 << 44
_PIECE = 1 << 19


@dataclass(frozen=True, slots=True)
class Batch:
    """A question about large files: whether they are to be sent or fetched."""

    upload: bool
    files: Sequence[LargeFile]


def read_file(sha256: object, size: object) -> LargeFile:
    """Return the large file that a client names. Raises `Kind.INVALID`."""
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise Fault(Kind.INVALID, f"{sha256!r} is not the SHA-256 of a file", hint="name 64 hexadecimal digits")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST:
        raise Fault(Kind.INVALID, f"{size!r} is not the size of a file", hint="name its bytes")
    return LargeFile(sha256, size)


def read_batch(document: Mapping[str, object]) -> Batch:
    """Return what a batch asks. Raises `Kind.INVALID`, `Kind.TOO_LARGE`."""
    operation, objects = document.get("operation"), document.get("objects")
    if operation not in ("download", "upload") or not isinstance(objects, list):
        raise Fault(Kind.INVALID, "the batch names no operation and objects", hint="send operation (download or upload) and objects")
    if len(objects) > MOST_OBJECTS:
        raise Fault(Kind.TOO_LARGE, f"a batch has at most {MOST_OBJECTS} objects", hint="ask for less at once")
    if document.get("hash_algo", "sha256") != "sha256":
        raise Fault(Kind.UNSUPPORTED, "large files are named by SHA-256", hint="leave hash_algo out")
    return Batch(operation == "upload", [read_file(each.get("oid"), each.get("size")) for each in objects if isinstance(each, dict)])


def answer_batch(view: View, batch: Batch, base: str, credential: str) -> Document:
    """Return where the files of a batch go or come from; `base` is the URL that the transfers are below. Blocks.

    `credential` is the ``Authorization`` that asked. It is told again for the transfers: a client that came over SSH has no other.
    """
    objects = [_answer_file(view, file, base, credential, upload=batch.upload) for file in batch.files]
    return {"transfer": "basic", "hash_algo": "sha256", "objects": objects}


def _answer_file(view: View, file: LargeFile, base: str, credential: str, *, upload: bool) -> Document:
    known = {"oid": file.sha256, "size": file.size, "authenticated": True}
    header = {"Authorization": credential}
    target = {"href": f"{base}/objects/{file.sha256}/{file.size}", "header": header}
    here = view.has_large(file) if upload else _is_shown(view, file)
    if upload:
        return known if here else known | {"actions": {"upload": target, "verify": {"href": f"{base}/verify", "header": header}}}
    return known | ({"actions": {"download": target}} if here else {"error": {"code": 404, "message": "no such large file"}})


def _is_shown(view: View, file: LargeFile) -> bool:
    try:
        view.open_large(file).close()
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        return False
    return True


async def send_large(view: View, content: LargeContent, start: int, end: int, pool: Pool) -> AsyncGenerator[bytes, None]:
    """Yield a part of a large file while the authority lasts and its budget covers it. Raises `Kind.CORRUPT` when it ends early."""
    while start < end:
        piece = await pool.run(content.read, start, min(_PIECE, end - start))
        if not piece:
            raise Fault(Kind.CORRUPT, "a large file is shorter than its pointer says", hint="run `nas doctor`")
        view.check()
        view.spend(len(piece))
        start += len(piece)
        yield piece


def render_attributes(paths: Sequence[bytes]) -> bytes:
    """Return git attributes that have Git LFS look after these paths, for ``.git/info/attributes``."""
    return b"".join(b"%b filter=lfs diff=lfs merge=lfs -text\n" % _quote(path) for path in paths)


def _quote(path: bytes) -> bytes:
    """Return a path as a pattern that matches it alone: anchored, in C quotes, with what patterns read otherwise escaped."""
    plain = re.sub(rb"([\\*?\[\]])", rb"\\\1", path)
    quoted = b"".join(b"\\%03o" % byte if byte < 32 or byte > 126 else (b"\\" if byte in b'"\\' else b"") + bytes([byte]) for byte in plain)
    return b'"/' + quoted + b'"'


class Lockbook:
    """The locks, kept as notes: one for a path. Every method blocks."""

    def __init__(self, notes: Notes) -> None:
        """Keep locks in `notes`."""
        self._notes = notes

    def take(self, path: str, caller: Caller, now: str) -> tuple[bool, Document]:
        """Lock a path, and return whether this call did and the lock that holds."""
        key = lock_id(path)
        lock = {"id": key, "path": path, "locked_at": now, "owner": {"name": caller.principal}, "holder": _holder(caller)}
        while not self._notes.put(f"lock/{key}", lock, 0):
            _, held = self._notes.find(f"lock/{key}")
            if held:
                return False, _public(held)
        return True, _public(lock)

    def release(self, key: str, view: View, caller: Caller, *, force: bool) -> Document:
        """Unlock, and return the lock that was. Raises `Kind.NOT_FOUND`, `Kind.DENIED` when another holds it."""
        version, lock = self._notes.find(f"lock/{key}")
        if not lock or not view.sees(lock["path"].encode("utf-8", "surrogateescape")):
            raise Fault(Kind.NOT_FOUND, f"{key}: no such lock", hint="`git lfs locks` shows them")
        if lock["holder"] != _holder(caller) and not (force and not caller.lease):
            raise Fault(
                Kind.DENIED, f"{lock['path']} is locked by {lock['owner']['name']}", hint="only its holder unlocks it, or a person by force"
            )
        if not self._notes.remove(f"lock/{key}", version):
            raise Fault(Kind.CONFLICT, f"{key}: the lock changed meanwhile", hint="look again with `git lfs locks`")
        return _public(lock)

    def seen(self, view: View, path: str | None = None, key: str | None = None) -> Iterator[Document]:
        """Yield the locks that the caller sees, with their holder, ordered by id."""
        for each in self._notes.keys("lock/"):
            _, lock = self._notes.find(each)
            if (
                lock
                and path in (None, lock["path"])
                and key in (None, lock["id"])
                and view.sees(lock["path"].encode("utf-8", "surrogateescape"))
            ):
                yield lock

    def page(self, view: View, *, path: str | None, key: str | None, cursor: str) -> Document:
        """Return a page of the locks that the caller sees."""
        locks = [lock for lock in self.seen(view, path, key) if lock["id"] > cursor]
        return {"locks": [_public(lock) for lock in locks[:MOST_LOCKS]]} | _next_page(locks)

    def verify(self, view: View, caller: Caller, cursor: str) -> Document:
        """Return a page of locks: those of the caller and those of others."""
        locks = [lock for lock in self.seen(view) if lock["id"] > cursor]
        shown = locks[:MOST_LOCKS]
        ours = [_public(lock) for lock in shown if lock["holder"] == _holder(caller)]
        theirs = [_public(lock) for lock in shown if lock["holder"] != _holder(caller)]
        return {"ours": ours, "theirs": theirs} | _next_page(locks)


def lock_id(path: str) -> str:
    """Return the id of the lock of a path."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _holder(caller: Caller) -> str:
    """Return who holds a lock: a run keeps its locks apart from those of the next run of the same role."""
    return caller.run or caller.principal


def _public(lock: Document) -> Document:
    return {name: value for name, value in lock.items() if name != "holder"}


def _next_page(locks: Sequence[Document]) -> Document:
    return {"next_cursor": locks[MOST_LOCKS - 1]["id"]} if len(locks) > MOST_LOCKS else {}
