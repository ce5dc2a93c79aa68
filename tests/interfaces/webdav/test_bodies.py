"""XML from strangers: read within limits, kept as it was written, and never a bomb."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.webdav.bodies import LockWish, Wanted, parse_lockinfo, parse_propfind, parse_proppatch
from interfaces.webdav.markup import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, empty, filled, fragment, is_fragment, parse, plain

PARSERS = [parse_propfind, parse_proppatch, parse_lockinfo]


def propfind(content: str) -> bytes:
    return f'<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:">{content}</D:propfind>'.encode()


def update(content: str, attributes: str = "") -> bytes:
    return f'<D:propertyupdate xmlns:D="DAV:" {attributes}>{content}</D:propertyupdate>'.encode()


def lockinfo(content: str) -> bytes:
    return f'<D:lockinfo xmlns:D="DAV:">{content}</D:lockinfo>'.encode()


def test_nothing_asks_for_everything() -> None:
    assert parse_propfind(b"") == parse_propfind(b" \n") == Wanted(everything=True)


def test_properties_are_asked_for_by_name_once() -> None:
    body = propfind('<D:prop><D:getetag/><x xmlns="urn:x"/><y/><D:getetag/></D:prop>')
    assert parse_propfind(body) == Wanted(names=("{DAV:}getetag", "{urn:x}x", "y"))


def test_everything_may_include_more() -> None:
    assert parse_propfind(propfind("<D:allprop/><D:include><D:quota-used-bytes/></D:include>")) == Wanted(
        names=("{DAV:}quota-used-bytes",), everything=True
    )


def test_what_is_not_known_is_skipped() -> None:
    assert parse_propfind(propfind('<z xmlns="urn:z"/><D:propname/>')) == Wanted(titles=True)


@pytest.mark.parametrize(
    "body",
    [
        b"<",
        b"<a/>",
        b"\xff\xfe\x00",
        propfind(""),
        propfind('<D:prop><x xmlns:bar=""/></D:prop>'),
        propfind("<D:prop>&undefined;</D:prop>"),
        b'<?xml version="1.0" encoding="klingon"?><D:propfind xmlns:D="DAV:"/>',
    ],
)
def test_what_asks_for_nothing_is_refused(body: bytes) -> None:
    with pytest.raises(Fault) as caught:
        parse_propfind(body)
    assert caught.value.kind is Kind.INVALID


BOMB = (
    b'<!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
    b'<D:propfind xmlns:D="DAV:"><D:prop>&c;</D:prop></D:propfind>'
)
OUTSIDE = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><D:propfind xmlns:D="DAV:"><D:prop>&e;</D:prop></D:propfind>'
DEEP = b"<a>" * 100_000
WIDE = propfind("<D:prop>" + "<D:a/>" * (MAX_ELEMENTS + 1) + "</D:prop>")
LARGE = propfind("<D:prop><!--" + "x" * MAX_BYTES + "--></D:prop>")


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("body", [BOMB, OUTSIDE, DEEP, WIDE, LARGE], ids=["bomb", "outside", "deep", "wide", "large"])
def test_what_would_grow_is_refused(parser, body: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Fault) as caught:
        parser(body)
    assert caught.value.kind in {Kind.INVALID, Kind.TOO_LARGE}


def test_the_deepest_body_that_is_read() -> None:
    inner = "<a>" * (MAX_DEPTH - 2) + "</a>" * (MAX_DEPTH - 2)
    assert parse_propfind(propfind(f"<D:prop>{inner}</D:prop>")).names == ("a",)
    with pytest.raises(Fault):
        parse_propfind(propfind(f"<D:prop><a>{inner}</a></D:prop>"))


def test_instructions_keep_their_order_and_their_values() -> None:
    body = update('<D:set><D:prop><a xmlns="u">1<b/></a></D:prop></D:set><D:remove><D:prop><a xmlns="u"/></D:prop></D:remove>')
    first, second = parse_proppatch(body)
    assert (first.name, first.text) == ("{u}a", "1")
    assert first.markup is not None
    assert ElementTree.fromstring(first.markup)[0].tag == "{u}b"
    assert (second.name, second.markup) == ("{u}a", None)


def test_a_value_keeps_the_language_it_was_written_in() -> None:
    body = update(
        '<D:set><D:prop xml:lang="fr"><a xmlns="u">oui</a></D:prop><D:prop><b xmlns="u">yes</b></D:prop></D:set>', 'xml:lang="en"'
    )
    first, second = parse_proppatch(body)
    assert first.markup is not None
    assert 'xml:lang="fr"' in first.markup
    assert second.markup is not None
    assert 'xml:lang="en"' in second.markup


def test_a_patch_that_changes_nothing_is_refused() -> None:
    with pytest.raises(Fault, match="changes nothing"):
        parse_proppatch(update("<D:set><D:prop/></D:set>"))


def test_a_lock_is_exclusive_or_shared() -> None:
    kind = "<D:locktype><D:write/></D:locktype>"
    assert parse_lockinfo(lockinfo(f"<D:lockscope><D:shared/></D:lockscope>{kind}")) == LockWish(shared=True)
    owner = "<D:owner><D:href>mailto:a@b</D:href></D:owner>"
    wish = parse_lockinfo(lockinfo(f"<D:lockscope><D:exclusive/></D:lockscope>{kind}{owner}"))
    assert not wish.shared
    assert ElementTree.fromstring(wish.owner)[0].text == "mailto:a@b"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<D:lockscope><D:exclusive/></D:lockscope>",
        "<D:lockscope><D:exclusive/><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype>",
        "<D:lockscope/><D:locktype><D:write/></D:locktype>",
        "<D:lockscope><D:shared/></D:lockscope><D:locktype><D:read/></D:locktype>",
    ],
)
def test_a_lock_of_another_kind_is_refused(content: str) -> None:
    with pytest.raises(Fault, match="neither"):
        parse_lockinfo(lockinfo(content))


def test_an_owner_is_short() -> None:
    with pytest.raises(Fault) as caught:
        kind = "<D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype>"
        parse_lockinfo(lockinfo(f"{kind}<D:owner>{'x' * 3000}</D:owner>"))
    assert caught.value.kind is Kind.TOO_LARGE


ELEMENTS = st.recursive(
    st.builds(lambda tag, text: (tag, text, ()), st.sampled_from(["a", "{u}b", "{DAV:}c", '{q"&<}d']), st.text("ab<&>\"' \n\té𝄞")),
    lambda inner: st.builds(
        lambda tag, text, children: (tag, text, tuple(children)), st.just("{u}e"), st.text("ab"), st.lists(inner, max_size=3)
    ),
    max_leaves=6,
)


def build(shape: tuple[str, str, tuple[object, ...]]) -> ElementTree.Element:
    element = ElementTree.Element(shape[0])
    element.text = shape[1]
    element.extend(build(child) for child in shape[2])  # type: ignore[arg-type]
    return element


@given(ELEMENTS)
def test_a_fragment_stands_for_itself(shape: tuple[str, str, tuple[object, ...]]) -> None:
    element = build(shape)
    text = fragment(element)
    assert is_fragment(element.tag, text)
    assert ElementTree.tostring(parse(text.encode(), element.tag)) == ElementTree.tostring(element)


@pytest.mark.parametrize("text", ["", "<b/>", "<a/><a/>", "<a>", "text", "<a/>text", '<?xml version="1.0"?><a/>', "<!DOCTYPE a><a/>"])
def test_what_is_no_fragment_of_its_name_is_not_taken_for_one(text: str) -> None:
    assert not is_fragment("a", text)


@given(st.sampled_from(["a", "{u}b", "{DAV:}c", '{q"&<}d']), st.text())
def test_what_is_written_can_be_read(name: str, text: str) -> None:
    wrapped = f'<D:x xmlns:D="DAV:">{empty(name)}{filled(name, plain(text))}</D:x>'
    assert [child.tag for child in ElementTree.fromstring(wrapped)] == [name, name]


@given(st.binary(max_size=300) | st.text("<>/D:propfind=\"' xmlns&;![]-?lockinfoallset", max_size=300).map(str.encode))
def test_no_body_breaks_a_parser(body: bytes) -> None:
    for parser in PARSERS:
        try:
            parser(body)
        except Fault as fault:
            assert fault.kind in {Kind.INVALID, Kind.TOO_LARGE}
