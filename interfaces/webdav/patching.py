"""PROPPATCH: setting and removing properties, all of them or none.

1. The instructions are weighed in their order before anything is changed; one that cannot be followed fails the others (424).
2. A time of last change is set for real, in the words of the standard and of Windows; so is the executable bit, in Apache's.
3. Everything else that is not protected is a dead property, kept as it was written.
4. Two clients that change properties of one resource in the same moment: the later one's whole set of dead properties stays.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from interfaces.port import AttributeChange
from interfaces.web.asgi import Reply
from interfaces.webdav.bodies import Setting, parse_proppatch
from interfaces.webdav.locks import Reach
from interfaces.webdav.markup import empty
from interfaces.webdav.multistatus import answer, propstat
from interfaces.webdav.properties import DEAD, EXECUTABLE, MODIFIED, PROTECTED, decode_dead, encode_dead, parse_date
from interfaces.webdav.terms import Terms
from interfaces.webdav.visit import Visit

_PROTECTED = "<D:error><D:cannot-modify-protected-property/></D:error>"


@dataclass(slots=True)
class Weighed:
    """What the instructions come to: dead properties, attributes to set, and the status of each property that cannot be as asked."""

    dead: dict[str, str]
    mode: int | None = None
    mtime_ns: int | None = None
    refused: dict[str, int] = field(default_factory=dict)


def weigh(settings: Sequence[Setting], dead: dict[str, str], mode: int) -> Weighed:
    """Return what the instructions come to for a resource with these dead properties and this mode. Pure."""
    weighed = Weighed(dict(dead))
    for setting in settings:
        status = _weigh_one(setting, weighed, mode)
        if status != 200:
            weighed.refused[setting.name] = status
    return weighed


def patch(visit: Visit) -> Reply:
    """Carry out a PROPPATCH. Blocks. Raises `Fault`."""
    settings = parse_proppatch(visit.body)
    attributes = visit.place.existing()
    workspace, node = visit.place.workspace, attributes.node
    Terms(visit).require(attributes, Reach(visit.place.names))
    dead = decode_dead(workspace.xattrs(node))
    weighed = weigh(settings, dead, attributes.st_mode)
    value = encode_dead(weighed.dead)
    if not weighed.refused:
        if weighed.dead != dead:
            workspace.set_xattr(node, DEAD, value)
        if (weighed.mode, weighed.mtime_ns) != (None, None):
            workspace.set_attributes(node, AttributeChange(mode=weighed.mode, mtime_ns=weighed.mtime_ns))
        workspace.sync()
    href = visit.address.href(visit.asked, collection=visit.place.is_collection)
    return answer([_response(href, settings, weighed)])


def _weigh_one(setting: Setting, weighed: Weighed, mode: int) -> int:
    """Add one instruction; return the status its property gets when all go well."""
    if setting.name in PROTECTED:
        return 403
    if setting.name in MODIFIED:
        return _set_modified(setting, weighed)
    if setting.name == EXECUTABLE:
        return _set_executable(setting, weighed, mode)
    if setting.markup is None:
        weighed.dead.pop(setting.name, None)
    else:
        weighed.dead[setting.name] = setting.markup
    return 200


def _set_modified(setting: Setting, weighed: Weighed) -> int:
    if setting.markup is None:
        return 403
    try:
        weighed.mtime_ns = parse_date(setting.text) * 1_000_000_000
    except ValueError:
        return 409
    return 200


def _set_executable(setting: Setting, weighed: Weighed, mode: int) -> int:
    if setting.text not in {"T", "F"} or stat.S_ISDIR(mode):
        return 403
    bits = stat.S_IMODE(mode) & ~0o111
    weighed.mode = bits | (0o111 if setting.text == "T" else 0)
    return 200


def _response(href: str, settings: Sequence[Setting], weighed: Weighed) -> str:
    otherwise = 424 if weighed.refused else 200
    groups: dict[int, list[str]] = {}
    for name in dict.fromkeys(setting.name for setting in settings):
        groups.setdefault(weighed.refused.get(name, otherwise), []).append(empty(name))
    told = (propstat(status, names, _PROTECTED if status == 403 else "") for status, names in groups.items())
    return f"<D:response><D:href>{href}</D:href>{''.join(told)}</D:response>\n"
