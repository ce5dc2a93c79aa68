"""XML as S3 speaks it: written by joining strings, read behind caps. Pure.

1. A document is bounded in bytes, depth and elements before anybody walks it; document types, entities and processing
   instructions are refused, so nothing expands and nothing is fetched.
2. Names are compared without their namespace: half of all clients send none.
3. What XML cannot spell (control characters) is written as a character reference, as Amazon does; clients that must
   read such keys ask for ``encoding-type=url``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from interfaces.s3.faults import S3Fault

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
MAX_BYTES = 2 << 20
MAX_DEPTH = 16
MAX_ELEMENTS = 100_000

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f&<>\"\ud800-\udfff\ufffe\uffff]")
_UNSPELLABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ENTITIES: Mapping[str, str] = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_STEP = 64 << 10


def escape(text: str) -> str:
    """Return text as it stands between tags."""
    return _SPECIAL.sub(_reference, text) if _SPECIAL.search(text) else text


def printable(text: str) -> str:
    """Return text that any reader of XML takes, with a sign for each character that XML cannot spell: for people, not for programs."""
    return _UNSPELLABLE.sub("\ufffd", text)


def tag(name: str, value: object) -> str:
    """Return an element that holds a value; booleans are written in lower case."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"<{name}>{escape(text)}</{name}>"


def group(name: str, *parts: str) -> str:
    """Return an element that holds elements."""
    return f"<{name}>{''.join(parts)}</{name}>"


def document(name: str, *parts: str) -> bytes:
    """Return a whole document in Amazon's namespace."""
    return f'{_DECLARATION}<{name} xmlns="{NAMESPACE}">{"".join(parts)}</{name}>'.encode()


def plain_document(name: str, *parts: str) -> bytes:
    """Return a whole document without a namespace, as errors are."""
    return f"{_DECLARATION}<{name}>{''.join(parts)}</{name}>".encode()


def parse(body: bytes, root: str) -> Element:
    """Return the root of a document, names without namespaces. Raises ``MalformedXML``, ``MaxMessageLengthExceeded``."""
    if len(body) > MAX_BYTES:
        raise S3Fault("MaxMessageLengthExceeded")
    parser = DefusedXMLParser(target=_Builder(), forbid_dtd=True, forbid_entities=True, forbid_external=True)
    try:
        for start in range(0, len(body), _STEP):
            parser.feed(body[start : start + _STEP])
        found: Element | None = parser.close()
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise S3Fault("MalformedXML") from error
    if found is None or found.tag != root:
        raise S3Fault("MalformedXML")
    return found


def text_of(element: Element, name: str) -> str | None:
    """Return the text of the child called `name`, None without such a child. Raises ``MalformedXML`` when there are several."""
    found = element.findall(name)
    if len(found) > 1:
        raise S3Fault("MalformedXML")
    return (found[0].text or "") if found else None


def require_text(element: Element, name: str) -> str:
    """Return the text of the child called `name`. Raises ``MalformedXML`` without exactly one."""
    text = text_of(element, name)
    if text is None:
        raise S3Fault("MalformedXML")
    return text


class _Builder:
    """Builds elements while it counts them, so that a flood ends where it crosses the cap and not when it is over."""

    def __init__(self) -> None:
        self._open: list[Element] = []
        self._root: Element | None = None
        self._left = MAX_ELEMENTS

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._left -= 1
        if self._left < 0 or len(self._open) >= MAX_DEPTH:
            raise ValueError("the document is too deep or too wide")
        element = Element(name.rpartition("}")[2], dict(attributes))
        if self._open:
            self._open[-1].append(element)
        else:
            self._root = element
        self._open.append(element)

    def data(self, text: str) -> None:
        element = self._open[-1]
        if not len(element):
            element.text = (element.text or "") + text

    def end(self, _name: str) -> None:
        self._open.pop()

    def close(self) -> Element | None:
        return self._root


def _reference(match: re.Match[str]) -> str:
    character = match[0]
    # A lone surrogate has no encoding at all; it stands for what cannot be told.
    return _ENTITIES.get(character) or ("\ufffd" if "\ud800" <= character <= "\udfff" else f"&#x{ord(character):x};")
