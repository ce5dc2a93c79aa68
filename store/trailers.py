"""The note of a commit as a git commit message: the text, then provenance as trailers.

1. The trailers are the last paragraph, always there, in one order, and the only place that is believed: trailers that
   somebody wrote into the text stay text.
2. A value is one line without control characters or blanks at its ends; anything else is refused, not cleaned.
3. What comes back equals what went in, except that an empty text becomes a title git can show.
4. Trailers of imported commits are claims; only the record proves who acted.
"""

from __future__ import annotations

from store.errors import InvalidName
from store.model import Note, Provenance

UNTITLED = "(untitled)"
"""The text of a commit that was given none."""

_PRINCIPAL = "Nas-Principal"
_FIELDS = {
    _PRINCIPAL: "principal",
    "Nas-On-Behalf-Of": "on_behalf_of",
    "Nas-Run": "run",
    "Nas-Lease": "lease",
    "Nas-Proposal": "proposal",
}
_ORDER = list(_FIELDS)


def encode_message(note: Note) -> bytes:
    """Return the commit message of a note. Raises `InvalidName` for a value that cannot be a trailer or a text with a NUL."""
    if "\0" in note.message:
        raise InvalidName("message", "a commit message cannot hold a NUL")
    text = note.message if note.message.strip() else UNTITLED
    lines = [f"{key}: {value}" for key, value in _values(note.provenance).items() if value or key == _PRINCIPAL]
    return (text + "\n\n" + "\n".join(lines) + "\n").encode("utf-8", "replace")


def _values(provenance: Provenance) -> dict[str, str]:
    values = {key: str(getattr(provenance, field)) for key, field in _FIELDS.items()}
    for key, value in values.items():
        if value != value.strip() or (value and not value.isprintable()):
            raise InvalidName(value, f"{key} must be one printable line")
    return values


def decode_message(message: bytes, when: int) -> Note:
    """Return the note that a commit message stands for; without our trailers it is all text and nobody's."""
    decoded = message.decode("utf-8", "replace")
    text, _, block = decoded.rpartition("\n\n")
    provenance = _read_block(block)
    if provenance is None:
        return Note(decoded, Provenance(""), when)
    return Note(text, provenance, when)


def _read_block(block: str) -> Provenance | None:
    """Return what a last paragraph says, when it is exactly as `encode_message` writes it."""
    pairs = [line.partition(": ") for line in block.removesuffix("\n").split("\n")]
    keys = [key for key, _, _ in pairs]
    if keys[0] != _PRINCIPAL or any(key not in _FIELDS for key in keys) or keys != sorted(set(keys), key=_ORDER.index):
        return None
    return Provenance(**{_FIELDS[key]: value for key, _, value in pairs})
