"""Keys and the paths they live at. Pure.

1. A key is UTF-8, at most 1,024 bytes, without NUL. Its segments (what lies between slashes) are names, almost always as they are.
2. What a tree cannot hold is kept under a name that begins with ``s3~`` and says what it stands for; nothing else is ever renamed:
   ``s3~empty`` the empty segment; ``s3~dot`` and ``s3~dotdot`` the segments ``.`` and ``..``; ``s3~name~X`` a segment ``X`` that reads like
   one of these forms; ``s3~part~A`` / ``s3~end~B`` a segment ``AB`` too long for one name; ``s3~file~X`` the object ``X`` beside the
   directory ``X``.
3. The mapping is one to one: `decode_name` undoes `encode_segment`, and two keys never share a path.
4. A name that is not UTF-8 has no key.
"""

from __future__ import annotations

from interfaces.s3.faults import S3Fault

MAX_KEY = 1024
"""Bytes of the longest key."""

MAX_NAME = 255
"""Bytes of the longest name in a tree."""

EMPTY = b"s3~empty"
"""The name of the empty segment: as a file, the content of the key that ends with a slash."""

_PREFIX = b"s3~"
_FILE = b"s3~file~"
_NAME = b"s3~name~"
_PART = b"s3~part~"
_END = b"s3~end~"
_CHUNK = 200
_WORDS = {b"": EMPTY, b".": b"s3~dot", b"..": b"s3~dotdot"}
_SEGMENTS = {name: segment for segment, name in _WORDS.items()}

Names = tuple[bytes, ...]


def check_key(key: bytes) -> bytes:
    """Return `key` when it can be one. Raises ``KeyTooLongError``, ``InvalidArgument``."""
    if len(key) > MAX_KEY:
        raise S3Fault("KeyTooLongError", elements={"Size": str(len(key)), "MaxSizeAllowed": str(MAX_KEY)})
    if not key or b"\0" in key or not _is_text(key):
        raise S3Fault("InvalidArgument", "A key is UTF-8 text of 1 to 1,024 bytes without NUL.")
    return key


def encode_key(key: bytes) -> Names:
    """Return the names from the root to the object, the last one being the object's own."""
    if b"//" not in key and b"s3~" not in key and b"." not in key and len(key) <= MAX_NAME and key[0] != 0x2F and key[-1] != 0x2F:
        return tuple(key.split(b"/"))
    return tuple(name for segment in key.split(b"/") for name in encode_segment(segment))


def encode_segment(segment: bytes) -> Names:
    """Return the names that stand for one segment: one, or several where it is too long for one."""
    if segment in _WORDS:
        return (_WORDS[segment],)
    name = _NAME + segment if segment.startswith(_PREFIX) and decode_name(segment) != segment else segment
    return (name,) if len(name) <= MAX_NAME else _cut(segment)


def decode_name(name: bytes) -> bytes | None:
    """Return the segment a name stands for; None for a name that is only a part of one, or has no key."""
    if not name.startswith(_PREFIX):
        return name if _is_text(name) else None
    if name in _SEGMENTS:
        return _SEGMENTS[name]
    if name.startswith(_FILE):
        return None if name.startswith(_FILE, len(_FILE)) else decode_name(name[len(_FILE) :])
    if is_part(name):
        return None
    if name.startswith(_NAME) and decode_name(name[len(_NAME) :]) != name[len(_NAME) :]:
        return name[len(_NAME) :]
    return name if _is_text(name) else None


def beside_directory(name: bytes) -> bytes:
    """Return the name of an object whose own name is taken by a directory. Raises ``KeyTooLongError``."""
    if len(name) + len(_FILE) > MAX_NAME:
        raise S3Fault("KeyTooLongError", "Keys lie below this one, and its last segment is too long to be stored beside them.")
    return _FILE + name


def is_beside_directory(name: bytes) -> bool:
    """Tell whether a name is that of an object beside a directory."""
    return name.startswith(_FILE)


def without_mark(name: bytes) -> bytes:
    """Return the name an object would have if no directory had it; any other name as it is."""
    return name.removeprefix(_FILE)


def is_part(name: bytes) -> bool:
    """Tell whether a directory holds the rest of a segment that is too long for one name."""
    return name.startswith(_PART) and _CHUNK - 4 < len(name) - len(_PART) <= _CHUNK and _is_text(name)


def decode_part(name: bytes) -> bytes | None:
    """Return the piece of a long segment that a name below a `is_part` directory holds; None for a name that is no piece."""
    for prefix in (_PART, _END):
        if name.startswith(prefix) and _is_text(name):
            return name[len(prefix) :]
    return None


def _cut(segment: bytes) -> Names:
    """Cut a segment into pieces of at most `_CHUNK` bytes that end where a character ends."""
    names: list[bytes] = []
    while len(segment) > _CHUNK:
        end = _CHUNK
        while segment[end] & 0xC0 == 0x80:
            end -= 1
        names.append(_PART + segment[:end])
        segment = segment[end:]
    return (*names, _END + segment)


def _is_text(name: bytes) -> bool:
    if name.isascii():
        return True
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
