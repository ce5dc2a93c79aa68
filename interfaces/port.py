"""What the doors need, in their own words; ``nasd`` supplies it.

1. A `Workspace` is one authority's view of one branch. It decides, records, accounts and only then touches the store.
2. The port speaks in nodes and names (bytes): a rename keeps the node. Path protocols use `walk`.
3. Every method raises `Fault` and nothing else. What the lease cannot see is `Kind.NOT_FOUND` and missing from listings.
4. Every method may be called from several threads and blocks at most for the disk; `sync`, `commit` and reads of cold
   content belong off an event loop.
5. `Control` is everything that is not files. It returns plain documents (JSON values) that a door renders unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

Document = dict[str, Any]
"""A JSON object, ready to be rendered."""

ROOT = 1
"""The node of the root directory of every workspace."""


class Attributes(Protocol):
    """What `stat` tells of a node; `uid` and `gid` are None where nobody changed the owner."""

    @property
    def node(self) -> int:
        """Return the node, also the inode number."""

    @property
    def st_mode(self) -> int:
        """Return type and permission bits."""

    @property
    def size(self) -> int:
        """Return the size in bytes."""

    @property
    def links(self) -> int:
        """Return how many names the node has."""

    @property
    def mtime_ns(self) -> int:
        """Return the time of the last change of content, nanoseconds."""

    @property
    def ctime_ns(self) -> int:
        """Return the time of the last change, nanoseconds."""

    @property
    def atime_ns(self) -> int:
        """Return the time of the last recorded access, nanoseconds."""

    @property
    def uid(self) -> int | None:
        """Return the owner, when somebody set one."""

    @property
    def gid(self) -> int | None:
        """Return the group, when somebody set one."""

    @property
    def content(self) -> bytes:
        """Return what identifies the content of a file: other bytes, another value; metadata and commits leave it as it is.

        Doors make their strong entity tags of it. It is empty for what has no content of its own (directories, pipes).
        """


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """Attributes to set; None leaves one as it is."""

    mode: int | None = None
    size: int | None = None
    mtime_ns: int | None = None
    atime_ns: int | None = None
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """How a file is opened."""

    read: bool = True
    write: bool = False
    append: bool = False
    truncate: bool = False


class Touch(Protocol):
    """A name (None: only the node itself) that changed; a door drops what it cached of it."""

    @property
    def parent(self) -> int | None:
        """Return the directory of the name."""

    @property
    def name(self) -> bytes | None:
        """Return the name."""

    @property
    def node(self) -> int:
        """Return the node."""


class Space(Protocol):
    """Room in bytes and nodes."""

    @property
    def total(self) -> int:
        """Return the bytes there are, quota included."""

    @property
    def free(self) -> int:
        """Return the bytes left, quota included."""

    @property
    def files(self) -> int:
        """Return the number of files, 0 when unknown."""


class Handle(Protocol):
    """An open file. Each read and write is still checked against a lease that may have ended meanwhile."""

    node: int

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""

    def lend(self, offset: int, size: int) -> int | None:
        """Account for `size` bytes at `offset` as if they were read, and return a descriptor that the kernel can send them from.

        The handle owns it; it is good until the handle is used again or closed. None where there is none: read instead.
        """

    def write(self, offset: int, data: bytes) -> int:
        """Store `data` and return its length."""

    def sync(self) -> None:
        """Return once what was written is on stable storage."""

    def close(self) -> None:
        """Release the handle; repeats do nothing."""


class Content(Protocol):
    """What `publish` reads a file from: an open file, or anything that reads like one."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`; nothing at the end."""


Condition = Callable[[Attributes | None], None]
"""Looks at what a name stands for (None: nothing the caller can see) in the very moment of a change, and raises the fault that stops it."""

Attach = Callable[[bytes], Mapping[bytes, bytes | None]]
"""Given the `Attributes.content` of a file that is complete and has no name yet, returns the extended attributes it is to carry (None
removes one that the file it replaces had). What identifies the content can be part of what is attached."""


class Staged(Protocol):
    """Bytes on stable storage that no name stands for yet."""

    @property
    def id(self) -> str:
        """Return what `Workspace.staged` finds them by, in any process; short and plain."""

    @property
    def size(self) -> int:
        """Return how many bytes there are."""


class Workspace(Protocol):
    """One authority's view of one branch."""

    branch: str

    def lookup(self, parent: int, name: bytes) -> Attributes:
        """Return what a name stands for."""

    def attributes(self, node: int) -> Attributes:
        """Return the attributes of a node."""

    def list(self, node: int) -> Sequence[tuple[bytes, Attributes]]:
        """Return the visible names of a directory with their attributes, ordered by name."""

    def readlink(self, node: int) -> bytes:
        """Return the target of a symlink."""

    def open(self, node: int, access: Access) -> Handle:
        """Open a file."""

    def create(self, parent: int, name: bytes, mode: int) -> tuple[Attributes, Handle]:
        """Make an empty file and open it for reading and writing. Raises `Kind.EXISTS`."""

    def publish(
        self,
        parent: int,
        name: bytes,
        mode: int,
        content: Content,
        *,
        condition: Condition | None = None,
        attach: Attach | None = None,
    ) -> Attributes:
        """Put a whole file under a name, replacing a file there, and return once it is on stable storage.

        Every reader, also after a crash, sees the file before or the file after, with the extended attributes of `attach`. Needs
        write on that path and nothing else; `mode` counts only where there was no file. Nothing changes the name between `condition`
        and the change. Raises `Kind.IS_A_DIRECTORY`, and what `condition` and `attach` raise.
        """

    def copy(self, node: int, parent: int, name: bytes, *, condition: Condition | None = None, attach: Attach | None = None) -> Attributes:
        """Put a copy of a file, its extended attributes included, under a name, as `publish` does. Needs read here, write there."""

    def stage(self, content: Content) -> Staged:
        """Keep bytes that no name stands for, on stable storage, until `unstage` or a week has passed. Needs write somewhere.

        The id cannot be guessed, and is all it takes to find them on this branch again.
        """

    def staged(self, id: str) -> Handle:
        """Open staged bytes for reading. Raises `Kind.NOT_FOUND`."""

    def unstage(self, id: str) -> None:
        """Let staged bytes go; repeats do nothing."""

    def assemble(
        self,
        parent: int,
        name: bytes,
        mode: int,
        ids: Sequence[str],
        *,
        condition: Condition | None = None,
        attach: Attach | None = None,
    ) -> Attributes:
        """Put a file made of staged bytes, one after the other, as `publish` does; what was staged stays until `unstage`.

        Their bytes were accounted when they were staged. Raises as `publish`, and `Kind.NOT_FOUND` for an id that is not there.
        """

    def make_special(self, parent: int, name: bytes, st_mode: int) -> Attributes:
        """Make a pipe or a socket (by the type bits of `st_mode`), or an empty file."""

    def mkdir(self, parent: int, name: bytes, mode: int) -> Attributes:
        """Make a directory."""

    def symlink(self, parent: int, name: bytes, target: bytes) -> Attributes:
        """Make a symlink."""

    def link(self, node: int, parent: int, name: bytes) -> Attributes:
        """Give a file another name."""

    def unlink(self, parent: int, name: bytes, *, condition: Condition | None = None) -> None:
        """Remove a name of anything but a directory; nothing changes the name between `condition` and the removal."""

    def rmdir(self, parent: int, name: bytes) -> None:
        """Remove an empty directory."""

    def rename(self, parent: int, name: bytes, target: int, target_name: bytes, *, replace: bool = True, exchange: bool = False) -> None:
        """Move, replace or swap names, as POSIX and Linux do it."""

    def set_attributes(self, node: int, change: AttributeChange) -> Attributes:
        """Change attributes and return the result."""

    def xattrs(self, node: int) -> Mapping[bytes, bytes]:
        """Return the ``user.*`` attributes."""

    def set_xattr(self, node: int, name: bytes, value: bytes | None) -> None:
        """Set or (None) remove a ``user.*`` attribute."""

    def label(self, node: int) -> Mapping[str, str]:
        """Return ``origin`` and ``sensitivity`` of a node, in words. No client can change it.

        Empty for what nobody labelled, is gone, or is not for the caller to see.
        """

    def labels(self, node: int, entries: Sequence[tuple[bytes, Attributes]]) -> Mapping[bytes, Mapping[str, str]]:
        """Return the labels of entries that `list` gave of a directory, by name; those without are left out.

        Costs next to nothing where nothing below the directory is labelled.
        """

    def space(self) -> Space:
        """Return the room left under disk, quota and budget."""

    def sync(self) -> None:
        """Return once every write that returned is on stable storage."""

    def version(self) -> int:
        """Return a number that grows with every change of the tree, by any door; about a microsecond."""

    def touched(self, since: int) -> Sequence[Touch] | None:
        """Return what changed after `since`; None: everything may have."""

    def check(self) -> None:
        """Raise `Kind.EXPIRED` or `Kind.REVOKED` once the authority behind this workspace has ended."""

    def require_writable(self, parent: int, name: bytes) -> None:
        """Return when a write under a name would be allowed, and change nothing. Raises what the write would, but for room and budget."""

    def path(self, node: int) -> bytes:
        """Return one path of the node."""

    def commit(self, message: str) -> Document:
        """Commit what changed and return what ``nas commit --json`` prints."""

    def close(self) -> None:
        """Flush what was counted and release everything."""


def walk(workspace: Workspace, path: bytes) -> Attributes:
    """Return what a path (names joined by ``/``; empty: the root) stands for, without following symlinks."""
    attributes = workspace.attributes(ROOT)
    for name in path.split(b"/") if path else ():
        attributes = workspace.lookup(attributes.node, name)
    return attributes


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a request came in, as the door that took it knows.

    `door` is the name of the door, empty inside of the appliance; `client` is the address it came from, empty at the Unix socket;
    `certificate` is what a declared proxy vouches that its client has proven to have (DER, X.509), empty without one.
    """

    door: str = ""
    client: str = ""
    certificate: bytes = b""


INSIDE = Arrival()
"""Where a question of the appliance itself comes from."""


class Caller(Protocol):
    """Who an authenticated request speaks for."""

    @property
    def principal(self) -> str:
        """Return the principal's name."""

    @property
    def lease(self) -> str:
        """Return the lease id, empty for a principal's own token."""

    @property
    def run(self) -> str:
        """Return the run the lease is of, empty for a principal's own token."""

    @property
    def actions(self) -> frozenset[str] | None:
        """Return the actions the lease carries, None for a principal's own token. What is allowed is still decided request by request."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the patterns of the paths the lease is about; everything for a principal's own token."""


class Signer(Protocol):
    """The secret of an S3 key pair for one day, region and service (AWS Signature Version 4), which never leaves it."""

    @property
    def caller(self) -> Caller:
        """Return whom a request speaks for; ask only once its signature was right. Raises as `Control.authenticate`."""

    def sign(self, text: bytes) -> str:
        """Return the signature of a string to sign, 64 hex digits."""

    def refuse(self) -> None:
        """Count that a signature was wrong. Raises `Kind.THROTTLED` for who has to wait."""


class Notes(Protocol):
    """Small documents that one door keeps across requests, processes and restarts, such as locks: durable, changed by compare-and-set."""

    def find(self, key: str) -> tuple[int, Document]:
        """Return version and body of a document; (0, {}) when there is none."""

    def put(self, key: str, body: Document, expected: int) -> bool:
        """Store a body when the version is `expected` (0: there is none) and tell whether it was; on stable storage when it returns."""

    def remove(self, key: str, expected: int) -> bool:
        """Remove a document when its version is `expected`, and tell whether it was."""

    def keys(self, prefix: str) -> Sequence[str]:
        """Return the keys that start with `prefix`, ordered."""


class Control(Protocol):
    """Everything that is not files. Each method decides, records and acts for `caller`."""

    def authenticate(self, secret: str, arrival: Arrival = INSIDE) -> Caller:
        """Return whom a bearer secret speaks for: of a lease, of a principal, or what an issuer says of somebody (a JWT).

        Raises `Kind.UNAUTHENTICATED`, `Kind.EXPIRED`, `Kind.REVOKED`, `Kind.THROTTLED` for who failed too often, and
        `Kind.UNAVAILABLE` where only an issuer that does not answer could tell. A JWT may make it wait for the issuer.
        """

    def authenticate_basic(self, user: str, password: str, arrival: Arrival = INSIDE) -> Caller:
        """Return whom HTTP Basic credentials speak for.

        A lease id or a principal's name, with its secret or the password derived from it; or a person's name with an app password for this
        door. Raises as `authenticate`.
        """

    def authenticate_certificate(self, arrival: Arrival) -> Caller:
        """Return whom the certificate of an arrival speaks for. Raises as `authenticate`."""

    def issuers(self) -> Sequence[Document]:
        """Return the issuers that are believed: their name, address, audience, and what somebody logs in by. No secret is among it."""

    def signer(self, access_key: str, session_token: str, day: str, region: str, service: str, arrival: Arrival = INSIDE) -> Signer:
        """Return what checks signatures made with an S3 key pair (`session_token` empty without one; `day` as YYYYMMDD).

        Raises `Kind.UNAUTHENTICATED` for a key that is none; that its lease has ended is told only to who proves to have it.
        """

    def workspace(self, caller: Caller, branch: str, at: str = "") -> Workspace:
        """Open a branch, or (with `at`, a commit or snapshot that the caller can reach) its tree at that commit, read-only.

        `branch` is the name of a branch or the id of a run. Raises `Kind.NOT_FOUND` also for what the caller may not see. Cheap: doors
        open one for each request and close it.
        """

    def deferring(self) -> AbstractContextManager[None]:
        """Run a block in which puts and removals, in this thread, may return before they are on stable storage; see `settle`."""

    def settle(self) -> None:
        """Return once everything that was deferred before this call is on stable storage: then it may be acknowledged."""

    def notes(self, door: str) -> Notes:
        """Return the documents of a door."""

    def call(self, caller: Caller, operation: str, arguments: Mapping[str, Any]) -> Document:
        """Carry out one operation of the API by its OpenAPI `operationId`."""

    def operations(self) -> Mapping[str, Document]:
        """Return every operation `call` knows: its method, path, parameters, request and response schema, and summary."""

    def events(self, caller: Caller, after: int) -> Iterator[Document]:
        """Yield what happens after record `after` (-1: from now on), waiting for more; ends when the daemon drains.

        An event has ``sequence`` and ``kind``. While nothing happens an empty document comes at least once a second,
        so that a door can notice that its client left.
        """

    def ready(self) -> Document:
        """Return whether state is open and recovered, for ``/readyz``."""
