"""XML from strangers is bounded before it is believed; what is written can be read again."""

from __future__ import annotations

import tracemalloc
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.faults import S3Fault
from interfaces.s3.markup import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, document, escape, group, parse, require_text, tag, text_of

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=40)
BOMB = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lollollollol">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><Delete>&c;</Delete>"""


def refusal(body: bytes, root: str = "Delete") -> str:
    with pytest.raises(S3Fault) as caught:
        parse(body, root)
    return caught.value.code


@given(TEXT)
def test_what_is_written_is_read_again(text: str) -> None:
    body = document("Root", group("Group", tag("Item", text), tag("Count", 3), tag("Flag", True)))
    item = parse(body, "Root").find("Group")
    assert item is not None
    assert (require_text(item, "Item"), text_of(item, "Count"), text_of(item, "Flag")) == (text, "3", "true")


def test_the_namespace_is_amazons_and_ignored_when_reading() -> None:
    body = document("ListBucketResult", tag("Name", "main"))
    assert fromstring(body).tag == "{http://s3.amazonaws.com/doc/2006-03-01/}ListBucketResult"
    assert parse(b"<Delete><Object/></Delete>", "Delete").tag == parse(b'<x:Delete xmlns:x="urn:a"/>', "Delete").tag == "Delete"


def test_control_characters_become_references_and_lone_surrogates_a_sign() -> None:
    assert escape("a\x01\r\n\tb<>&\"'\x7f") == "a&#x1;&#xd;\n\tb&lt;&gt;&amp;&quot;'&#x7f;"
    assert escape("\ud800") == "\ufffd"
    assert escape("plain") == "plain"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"text",
        b"<Delete>",
        b"<Delete></Object></Delete>",
        b"<Other/>",
        b"<Delete/><Delete/>",
        b"<Delete>&unknown;</Delete>",
        b'<?xml version="1.0" encoding="nonsense"?><Delete/>',
        b'<?xml version="1.0" encoding="utf-7"?><Delete/>',
        b"<Delete>\xff\xfe</Delete>",
        BOMB,
        b'<!DOCTYPE Delete SYSTEM "http://127.0.0.1/x.dtd"><Delete/>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><Delete>&x;</Delete>',
        b'<!DOCTYPE a [<!ENTITY % x "y">]><Delete/>',
        b"<a>" * (MAX_DEPTH + 1),
        b"<Delete>" + b"<a/>" * MAX_ELEMENTS + b"</Delete>",
    ],
)
def test_what_is_no_plain_document_is_malformed(body: bytes) -> None:
    assert refusal(body) == "MalformedXML"


def test_a_document_over_the_cap_is_not_parsed() -> None:
    assert refusal(b"<Delete>" + b" " * MAX_BYTES + b"</Delete>") == "MaxMessageLengthExceeded"


def test_a_bomb_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        for body in (BOMB, b"<a>" * 100_000, b"<Delete " + b" ".join(b'a%d=""' % number for number in range(50_000)) + b"/>"):
            with pytest.raises(S3Fault):
                parse(body, "Other")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_an_element_that_comes_twice_is_malformed() -> None:
    root = parse(b"<Delete><Quiet>true</Quiet><Quiet>false</Quiet></Delete>", "Delete")
    with pytest.raises(S3Fault):
        text_of(root, "Quiet")
    with pytest.raises(S3Fault):
        require_text(root, "Object")


def test_comments_and_cdata_are_what_xml_says_they_are() -> None:
    root = parse(b"<Delete><Key>a<!-- b -->c<![CDATA[<d>&]]></Key></Delete>", "Delete")
    assert require_text(root, "Key") == "ac<d>&"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_document_or_malformed(body: bytes) -> None:
    for text in (body, b"<Delete>" + body + b"</Delete>"):
        try:
            parse(text, "Delete")
        except S3Fault as fault:
            assert fault.code == "MalformedXML"
