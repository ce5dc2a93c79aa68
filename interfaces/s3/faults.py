"""The failure of a request in Amazon's words. Pure.

1. `S3Fault` is what the protocol itself refuses; every other fault is named by its kind (`codes.KINDS`).
2. The code alone is enough: status and message come from the table, and can be said better where more is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from interfaces.faults import Fault, Kind
from interfaces.s3.codes import CODES, KIND_OF_STATUS, KINDS

_NOTHING: Mapping[str, str] = MappingProxyType({})


class S3Fault(Fault):
    """A refusal with a code of Amazon's. `elements` go into its XML, `headers` beside it."""

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        status: int = 0,
        elements: Mapping[str, str] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Refuse with `code`; without a message or a status, with those of the table. Raises `KeyError` for an unknown code."""
        known = CODES[code]
        super().__init__(KIND_OF_STATUS.get(status or known.status, Kind.INVALID), message or known.message)
        self.code = code
        self.status = status or known.status
        self.elements = elements
        self.headers = headers


def code_of(fault: Fault) -> str:
    """Return the code of any fault."""
    return fault.code if isinstance(fault, S3Fault) else KINDS[fault.kind]
