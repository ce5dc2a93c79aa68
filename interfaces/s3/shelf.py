"""The versions of one key: which there are, and where the bytes of each are. The bytes themselves are in the history of the branch.

1. A bucket keeps versions once versioning was enabled. Then each put and delete through S3 is a commit, and a version is an entry here with
   the commit its bytes are in. What was there before is the version ``null``.
2. The first entry is the newest. A file of the tree belongs to it when its sidecar names the same version; a file that another door changed
   belongs to none, and is kept as a version of its own before S3 replaces it.
3. Entries change under a hold, by compare-and-set, so two writers of one key are one after the other, in whatever processes they are.
   A hold ends by itself after `HOLD_SECONDS`: its holder died.
4. Deleting a version takes it out of here, not out of the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from interfaces.port import Document
from interfaces.s3.call import Door
from interfaces.s3.documents import Tags
from interfaces.s3.faults import S3Fault
from interfaces.s3.sidecars import Sidecar, decode_sidecar, sidecar_fields

NULL = "null"
HOLD_SECONDS = 60.0
_WAIT_SECONDS = 30.0
_NAP_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Version:
    """One version. `commit` is where its bytes are (empty: only in the tree, so far); `modified` is in nanoseconds.

    `sidecar` is None for a delete marker.
    """

    id: str
    modified: int
    sidecar: Sidecar | None = None
    commit: str = ""
    size: int = 0
    tags: Tags = ()

    @property
    def is_marker(self) -> bool:
        """Tell whether it says that the key was deleted."""
        return self.sidecar is None


@dataclass(slots=True)
class Shelf:
    """The versions of a key, newest first. Change `versions` only inside `Shelves.held`."""

    key: bytes
    versions: list[Version] = field(default_factory=list)

    def find(self, id: str) -> Version | None:
        """Return a version."""
        return next((version for version in self.versions if version.id == id), None)

    def put(self, version: Version) -> None:
        """Add a version as the newest; a ``null`` one replaces the former."""
        self.versions = [version, *(each for each in self.versions if version.id != NULL or each.id != NULL)]

    def change(self, version: Version) -> None:
        """Replace the version with the same id."""
        self.versions = [version if each.id == version.id else each for each in self.versions]

    def drop(self, id: str) -> None:
        """Take a version away."""
        self.versions = [version for version in self.versions if version.id != id]


class Shelves:
    """The shelves of one branch. Any thread may call."""

    def __init__(self, door: Door, branch: str) -> None:
        """Keep them among the notes of the door."""
        self._door = door
        self._notes = door.notes
        self._prefix = f"version/{branch}/"

    def find(self, key: bytes) -> Shelf:
        """Return the shelf of a key, an empty one when there is none."""
        return _decode(key, self._notes.find(self._id(key))[1])

    def keys(self, prefix: bytes = b"") -> Sequence[bytes]:
        """Return the keys that have a shelf and start with `prefix`, in order."""
        return sorted(id[len(self._prefix) :].encode() for id in self._notes.keys(self._id(prefix)))

    @contextmanager
    def held(self, key: bytes) -> Iterator[Shelf]:
        """Run a block that alone may change the shelf of a key; what it changed is stored after it. Raises ``SlowDown``."""
        token = self._door.entropy(8).hex()
        version, body = self._hold(key, token)
        shelf = _decode(key, body)
        try:
            yield shelf
        finally:
            self._release(key, shelf, version)

    def clear(self) -> None:
        """Forget every version of the branch."""
        for id in self._notes.keys(self._prefix):
            self._notes.remove(id, self._notes.find(id)[0])

    def _hold(self, key: bytes, token: str) -> tuple[int, Document]:
        id, waited = self._id(key), 0.0
        while waited < _WAIT_SECONDS:
            version, body = self._notes.find(id)
            now = self._door.clock()
            if body.get("until", 0) <= now:
                held = {**body, "holder": token, "until": now + HOLD_SECONDS}
                if self._notes.put(id, held, version):
                    return version + 1, held
            self._door.nap(_NAP_SECONDS)
            waited += _NAP_SECONDS
        raise S3Fault("SlowDown")

    def _release(self, key: bytes, shelf: Shelf, version: int) -> None:
        id = self._id(key)
        if shelf.versions:
            kept = self._notes.put(id, {"versions": [_encode_version(each) for each in shelf.versions]}, version)
        else:
            kept = self._notes.remove(id, version)
        if not kept:
            raise S3Fault("OperationAborted", "Another writer of the key went on before this one had finished. Try again.")

    def _id(self, key: bytes) -> str:
        return self._prefix + key.decode()


def version_of(shelf: Shelf, sidecar: Sidecar) -> str:
    """Return the version that a file of the tree is: the one its sidecar names, while there is such a version; else ``null``."""
    return sidecar.version if sidecar.version and shelf.find(sidecar.version) else NULL


def _encode_version(version: Version) -> Document:
    fields = {
        "id": version.id,
        "modified": version.modified,
        "sidecar": sidecar_fields(version.sidecar) if version.sidecar else None,
        "commit": version.commit,
        "size": version.size,
        "tags": [list(pair) for pair in version.tags],
    }
    return {name: value for name, value in fields.items() if value}


def _decode(key: bytes, body: Mapping[str, Any]) -> Shelf:
    return Shelf(key, [_decode_version(fields) for fields in body.get("versions", ())])


def _decode_version(fields: Mapping[str, Any]) -> Version:
    sidecar = fields.get("sidecar")
    return Version(
        fields["id"],
        fields.get("modified", 0),
        replace(decode_sidecar(sidecar), version=fields["id"]) if sidecar else None,
        fields.get("commit", ""),
        fields.get("size", 0),
        tuple((name, value) for name, value in fields.get("tags", ())),
    )
