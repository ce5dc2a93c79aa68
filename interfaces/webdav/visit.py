"""One request to one place of a branch, with everything its method needs. A value; what it holds may block."""

from __future__ import annotations

from dataclasses import dataclass

from interfaces.port import Caller
from interfaces.web.asgi import Request
from interfaces.web.names import Names, encode_path
from interfaces.webdav.lockbook import Lockbook
from interfaces.webdav.places import Place


@dataclass(frozen=True, slots=True)
class Address:
    """Where a branch is on this server. `prefix` is where the door is, without a slash at the end."""

    prefix: str
    branch: str

    @property
    def base(self) -> str:
        """Return the address of the branch's root, without a slash at the end."""
        return f"{self.prefix}/{encode_path(self.branch.encode().split(b'/'))}"

    def href(self, names: Names, *, collection: bool = False) -> str:
        """Return the absolute path of a place, with a slash at the end for a collection."""
        path = f"{self.base}/{encode_path(names)}"
        return path if not collection or path.endswith("/") else f"{path}/"


@dataclass(frozen=True, slots=True)
class Visit:
    """A request, whom it speaks for, and the place it is about; `asked` is that place as the client named it, links not followed."""

    request: Request
    caller: Caller
    address: Address
    asked: Names
    place: Place
    book: Lockbook
    body: bytes = b""
