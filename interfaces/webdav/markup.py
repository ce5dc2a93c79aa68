"""XML as WebDAV needs it: read within limits, written as text. Pure.

1. What is read has at most `MAX_BYTES`, `MAX_DEPTH` levels and `MAX_ELEMENTS` elements, and no document type, no entities and no
   references to anything outside: a small body never becomes a large tree.
2. A name is what the parser makes of it: ``{namespace}name``, or ``name`` without a namespace.
3. What is written needs no namespace of its surroundings but `DECLARED`: a fragment that was kept reads the same in every answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any, Protocol
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, tostring
from xml.sax.saxutils import escape, quoteattr

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from interfaces.faults import Fault, Kind

DAV = "{DAV:}"
DECLARED = 'xmlns:D="DAV:"'
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
MAX_BYTES = 256 << 10
MAX_DEPTH = 32
MAX_ELEMENTS = 8192

_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class _Parser(Protocol):
    def feed(self, data: bytes) -> None: ...

    def close(self) -> Element: ...


class _BoundedBuilder(TreeBuilder):
    """Builds a tree and counts while it does, so that what is too large is refused before it is there."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._elements = 0

    def start(self, tag: Any, attrs: Any, /) -> Element:
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH or self._elements > MAX_ELEMENTS:
            raise Fault(
                Kind.TOO_LARGE, f"the body has more than {MAX_DEPTH} levels or {MAX_ELEMENTS} elements", hint="ask for less at once"
            )
        return super().start(tag, attrs)

    def end(self, tag: Any, /) -> Element:
        self._depth -= 1
        return super().end(tag)


def parse(body: bytes, root: str) -> Element:
    """Return the document element, which has to be `root`. Raises `Kind.INVALID`, `Kind.TOO_LARGE`."""
    if len(body) > MAX_BYTES:
        raise Fault(Kind.TOO_LARGE, f"a body of XML has at most {MAX_BYTES} bytes")
    parser: _Parser = DefusedXMLParser(target=_BoundedBuilder(), forbid_dtd=True)
    try:
        parser.feed(body)
        element = parser.close()
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise Fault(Kind.INVALID, f"the body is not XML that is read here: {error}", hint="send well-formed XML without a DTD") from error
    if element.tag != root:
        raise Fault(Kind.INVALID, f"the body is {element.tag!r}, not {root!r}")
    return element


def fragment(element: Element, language: str = "") -> str:
    """Return an element as text that stands for itself; `language` is what ``xml:lang`` says around it."""
    if language and LANGUAGE not in element.attrib:
        element.set(LANGUAGE, language)
    tail, element.tail = element.tail, None
    try:
        return tostring(element, "unicode")
    finally:
        element.tail = tail


@functools.lru_cache(1024)
def is_fragment(name: str, text: str) -> bool:
    """Tell whether a text is one whole element of a name, as `fragment` makes it."""
    try:
        parse(text.encode("utf-8", "surrogatepass"), name)
    except Fault:
        return False
    return not text.startswith("<?")


def text_of(element: Element) -> str:
    """Return the text directly in an element, outer space removed."""
    return (element.text or "").strip()


def split_name(name: str) -> tuple[str, str]:
    """Return namespace and local name."""
    if name.startswith("{"):
        namespace, _, local = name[1:].rpartition("}")
        return namespace, local
    return "", name


def empty(name: str) -> str:
    """Return an empty element of a name."""
    title, declaration = _title(name)
    return f"<{title}{declaration}/>"


def filled(name: str, content: str) -> str:
    """Return an element with content that is markup already."""
    title, declaration = _title(name)
    return f"<{title}{declaration}>{content}</{title}>"


def plain(text: str) -> str:
    """Return text as content of an element; characters that XML cannot have become U+FFFD."""
    return escape(_UNWRITABLE.sub("\ufffd", text))


def document(root: str, parts: Iterable[str]) -> bytes:
    """Return a whole document with a ``DAV:`` element as root."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n<D:{root} {DECLARED}>{"".join(parts)}</D:{root}>\n'.encode()


def _title(name: str) -> tuple[str, str]:
    """Return how an element of a name is called in an answer, and the declaration that needs."""
    namespace, local = split_name(name)
    if namespace == "DAV:":
        return f"D:{local}", ""
    return (f"N:{local}", f" xmlns:N={quoteattr(namespace)}") if namespace else (local, "")
