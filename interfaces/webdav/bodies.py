"""What the bodies of PROPFIND, PROPPATCH and LOCK ask for. Pure.

1. What is not known is skipped, as the standard wants it; what is left has to make sense.
2. A body that is not there asks PROPFIND for everything and LOCK for a refresh; both are the caller's to tell apart.
3. Values are kept as the text of their elements, with the language they were written in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from interfaces.faults import Fault, Kind
from interfaces.webdav.markup import DAV, LANGUAGE, fragment, parse, text_of

MAX_OWNER = 2048


@dataclass(frozen=True, slots=True)
class Wanted:
    """What PROPFIND asks for: the properties in `names`, with `everything` those each resource has too; `titles`: what they are called."""

    names: tuple[str, ...] = ()
    everything: bool = False
    titles: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """One instruction of PROPPATCH: set a property to an element (`markup` whole, `text` directly in it), or (`markup` None) remove it."""

    name: str
    markup: str | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class LockWish:
    """The lock that is asked for; `owner` is the client's XML about itself."""

    shared: bool
    owner: str = ""


def parse_propfind(body: bytes) -> Wanted:
    """Return what is asked for. Raises `Kind.INVALID`, `Kind.TOO_LARGE`."""
    if not body.strip():
        return Wanted(everything=True)
    root = parse(body, f"{DAV}propfind")
    for child in root:
        if child.tag == f"{DAV}propname":
            return Wanted(titles=True)
        if child.tag == f"{DAV}prop":
            return Wanted(names=_names(child))
        if child.tag == f"{DAV}allprop":
            include = root.find(f"{DAV}include")
            return Wanted(names=() if include is None else _names(include), everything=True)
    raise Fault(Kind.INVALID, "PROPFIND asks for nothing", hint="send prop, allprop or propname")


def parse_proppatch(body: bytes) -> tuple[Setting, ...]:
    """Return the instructions in their order. Raises `Kind.INVALID`, `Kind.TOO_LARGE`."""
    root = parse(body, f"{DAV}propertyupdate")
    settings = tuple(setting for change in root for setting in _settings(change, root.get(LANGUAGE, "")))
    if not settings:
        raise Fault(Kind.INVALID, "PROPPATCH changes nothing", hint="send set or remove with at least one property")
    return settings


def parse_lockinfo(body: bytes) -> LockWish:
    """Return the lock that is asked for. Raises `Kind.INVALID`, `Kind.TOO_LARGE`."""
    root = parse(body, f"{DAV}lockinfo")
    scope, kind, owner = (root.find(f"{DAV}{name}") for name in ("lockscope", "locktype", "owner"))
    shared = scope is not None and scope.find(f"{DAV}shared") is not None
    exclusive = scope is not None and scope.find(f"{DAV}exclusive") is not None
    if shared == exclusive or kind is None or kind.find(f"{DAV}write") is None:
        raise Fault(Kind.INVALID, "the lock is neither an exclusive nor a shared write lock", hint="send lockscope and locktype")
    markup = "" if owner is None else fragment(owner)
    if len(markup) > MAX_OWNER:
        raise Fault(Kind.TOO_LARGE, f"the owner of a lock is described in at most {MAX_OWNER} characters")
    return LockWish(shared, markup)


def _names(element: Element) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(child.tag) for child in element))


def _settings(change: Element, language: str) -> Iterator[Setting]:
    if change.tag not in {f"{DAV}set", f"{DAV}remove"}:
        return
    for prop in change.iterfind(f"{DAV}prop"):
        inherited = prop.get(LANGUAGE) or change.get(LANGUAGE) or language
        for element in prop:
            removed = change.tag == f"{DAV}remove"
            yield Setting(str(element.tag), None if removed else fragment(element, inherited), text_of(element))
