"""The aws-chunked encoding: what clients send is decoded, every lie about it is refused, memory stays small."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from botocore.httpchecksum import AwsChunkedWrapper, Crc32Checksum
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.canonical import chunk_to_sign, trailer_to_sign
from interfaces.s3.chunks import MAX_LINE, MAX_TRAILERS, ChunkedContent
from interfaces.s3.faults import S3Fault
from tests.interfaces.s3.bodies import SCOPE, TIMESTAMP, Trickle, chain, encode_signed, read_all

CHUNKS = st.lists(st.binary(min_size=1, max_size=300), max_size=6)
STEPS = st.integers(1, 400)


def unsigned(body: bytes, step: int = 1 << 20, *, trailed: bool = True) -> ChunkedContent:
    return ChunkedContent(Trickle(body, step), None, trailed=trailed)


def refusal(content: ChunkedContent) -> S3Fault:
    with pytest.raises(S3Fault) as caught:
        read_all(content)
    return caught.value


def test_the_published_example_of_signed_chunks_has_these_signatures() -> None:
    seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    body = encode_signed([b"a" * 65536, b"a" * 1024], chain(seed))
    for signature in (
        b"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        b"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        b"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ):
        assert signature in body
    assert read_all(ChunkedContent(Trickle(body, 1000), chain(seed), trailed=False)) == b"a" * 66560


def test_the_published_example_of_signed_trailers_has_these_signatures() -> None:
    seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
    body = encode_signed([b"a" * 65536, b"a" * 1024], chain(seed), [(b"x-amz-checksum-crc32c", b"sOO8/Q==")])
    for signature in (
        b"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        b"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        b"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
        b"d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435",
    ):
        assert signature in body
    content = ChunkedContent(Trickle(body, 7), chain(seed), trailed=True)
    assert read_all(content) == b"a" * 66560
    assert content.trailers == {"x-amz-checksum-crc32c": "sOO8/Q=="}


@given(st.binary(max_size=2000), st.integers(1, 700), STEPS, st.integers(1, 900))
def test_what_botocore_encodes_is_decoded(data: bytes, chunk: int, step: int, size: int) -> None:
    wrapped = AwsChunkedWrapper(io.BytesIO(data), Crc32Checksum, "x-amz-checksum-crc32", chunk_size=chunk)
    content = unsigned(wrapped.read(), step)
    assert read_all(content, size) == data
    check = Crc32Checksum()
    check.update(data)
    assert content.trailers == {"x-amz-checksum-crc32": check.b64digest()}


@given(CHUNKS, STEPS, st.integers(1, 900), st.booleans())
def test_signed_chunks_are_read_in_any_steps(chunks: list[bytes], step: int, size: int, trailed: bool) -> None:
    using = chain()
    body = encode_signed(chunks, using, [(b"x-amz-checksum-crc32", b"AAAAAA==")] if trailed else None)
    content = ChunkedContent(Trickle(body, step), using, trailed=trailed)
    assert read_all(content, size) == b"".join(chunks)


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=4), st.integers(0, 5000), st.integers(1, 255), st.booleans())
def test_one_changed_byte_anywhere_gives_other_content_to_nobody(chunks: list[bytes], where: int, by: int, trailed: bool) -> None:
    using = chain()
    body = bytearray(encode_signed(chunks, using, [(b"x-amz-checksum-crc32", b"AAAAAA==")] if trailed else None))
    where %= len(body)
    body[where] = (body[where] + by) % 256
    content = ChunkedContent(Trickle(bytes(body)), using, trailed=trailed)
    try:
        data = read_all(content)
    except S3Fault:
        return
    # What is left are spellings without a meaning: the case of a size or a name, ends of lines.
    assert data == b"".join(chunks)
    assert not trailed or content.trailers == {"x-amz-checksum-crc32": "AAAAAA=="}


def test_chunks_cannot_be_left_out_repeated_or_moved() -> None:
    using = chain()
    body = encode_signed([b"one", b"two", b"six"], using)
    starts = [body.index(b"3;"), body.index(b"3;", 2), body.rindex(b"3;"), body.rindex(b"0;")]
    first, second, third = (body[start:end] for start, end in pairwise(starts))
    end = body[starts[-1] :]
    for lie in ([first, third], [first, first, second, third], [second, first, third], [first, second]):
        assert refusal(ChunkedContent(Trickle(b"".join([*lie, end])), using, trailed=False)).code == "SignatureDoesNotMatch"


def test_another_key_signs_nothing() -> None:
    body = encode_signed([b"data"], chain(secret="other"))
    assert refusal(ChunkedContent(Trickle(body), chain(), trailed=False)).code == "SignatureDoesNotMatch"


@pytest.mark.parametrize("cut", range(1, 100, 7))
def test_a_body_that_breaks_off_is_incomplete(cut: int) -> None:
    using = chain()
    body = encode_signed([b"some data"], using)
    fault = refusal(ChunkedContent(Trickle(body[:cut]), using, trailed=False))
    assert fault.code in {"IncompleteBody", "SignatureDoesNotMatch"}


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\n",
        b"-1\r\n",
        b"\r\n",
        b"1_0\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"ffffffffffffffff\r\n",
        b"5\r\nhello!!\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nno trailer\r\n\r\n",
        b"5\r\nhello\r\n0\r\n" + b"a:b\r\n" * (MAX_TRAILERS + 1),
        b"5" * MAX_LINE * 2,
        b"5\r\nhello\r\n0\r\na:" + b"b" * MAX_LINE * 2,
    ],
)
def test_a_malformed_body_is_refused(body: bytes) -> None:
    fault = refusal(unsigned(body))
    assert (fault.code, fault.status) == ("InvalidRequest", 400)


def test_trailers_that_were_not_announced_are_refused() -> None:
    assert refusal(unsigned(b"5\r\nhello\r\n0\r\na:b\r\n\r\n", trailed=False)).code == "InvalidRequest"


def test_the_empty_line_at_the_end_may_be_missing() -> None:
    content = unsigned(b"5\r\nhello\r\n0\r\nA: b ")
    assert read_all(content) == b"hello"
    assert content.trailers == {"a": "b"}


def test_a_chunk_that_claims_a_terabyte_takes_no_memory_for_it() -> None:
    source = Trickle(b"ffffffffff\r\n" + b"x" * 1000)
    content = ChunkedContent(source, None, trailed=False)
    with pytest.raises(S3Fault):
        content.read(1 << 50)
    assert source.most <= 1 << 20


@given(st.binary(max_size=300), STEPS)
def test_any_bytes_are_decoded_or_refused(body: bytes, step: int) -> None:
    for using in (None, chain()):
        try:
            read_all(ChunkedContent(Trickle(body, step), using, trailed=True))
        except S3Fault as fault:
            assert fault.status in {400, 403}


def test_what_is_signed_of_trailers_follows_their_order() -> None:
    one = trailer_to_sign(TIMESTAMP, SCOPE, "0", [(b"a", b"1"), (b"b", b"2")])
    assert one != trailer_to_sign(TIMESTAMP, SCOPE, "0", [(b"b", b"2"), (b"a", b"1")])
    assert one.startswith(b"AWS4-HMAC-SHA256-TRAILER\n")
    assert chunk_to_sign(TIMESTAMP, SCOPE, "0", "1").startswith(b"AWS4-HMAC-SHA256-PAYLOAD\n")
