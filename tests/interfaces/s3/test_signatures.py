"""A signature made by Amazon's own library is believed, and nothing else is."""

from __future__ import annotations

import string
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlencode

import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault
from interfaces.s3.faults import S3Fault
from interfaces.s3.signatures import MAX_EXPIRY, MAX_SKEW, Signed, authenticate
from interfaces.web.asgi import Request
from tests.interfaces.s3.signing import ACCESS_KEY, HOST, SECRET, OneKeyPair, changed, received, sign_header, sign_query, time_of

BASE = f"http://{HOST}"

KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)
NAMES = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=12)
VALUES = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)
METHODS = st.sampled_from(["GET", "PUT", "HEAD", "DELETE", "POST"])


def believe(request: Request, now: float | None = None, control: OneKeyPair | None = None) -> Signed:
    return authenticate(control or OneKeyPair(), request, time_of(request) if now is None else now)  # type: ignore[arg-type]


def refusal(request: Request, now: float | None = None) -> S3Fault:
    with pytest.raises(S3Fault) as caught:
        believe(request, now)
    return caught.value


def a_get(headers: dict[str, str] | None = None, url: str = f"{BASE}/main/a/b.txt", method: str = "GET", data: bytes = b"") -> AWSRequest:
    return AWSRequest(method, url, headers or {}, data)


def without(request: Request, name: str) -> Request:
    return changed(request, headers=[field for field in request.scope["headers"] if field[0] != name.encode()])


def replaced(request: Request, name: str, value: str) -> Request:
    kept = without(request, name).scope["headers"]
    return changed(request, headers=[*kept, (name.encode(), value.encode("latin-1"))])


@given(METHODS, KEYS, st.dictionaries(NAMES, VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=4), st.binary(max_size=64))
def test_what_botocore_signs_in_the_header_is_believed(
    method: str, key: str, query: dict[str, str], metadata: dict[str, str], data: bytes
) -> None:
    url = f"{BASE}/main/{quote(key, safe='/~')}" + (f"?{urlencode(query, quote_via=quote, safe='-_.~')}" if query else "")
    request = sign_header(a_get({f"x-amz-meta-{name}": value for name, value in metadata.items()}, url, method, data))
    signed = believe(request)
    assert signed.caller.principal == "owner"
    assert not signed.presigned


@given(METHODS, KEYS, st.dictionaries(NAMES, VALUES, max_size=4), st.integers(1, MAX_EXPIRY))
def test_what_botocore_signs_in_the_query_is_believed(method: str, key: str, query: dict[str, str], expires: int) -> None:
    url = f"{BASE}/main/{quote(key, safe='/~')}" + (f"?{urlencode(query, quote_via=quote, safe='-_.~')}" if query else "")
    signed = believe(sign_query(a_get(url=url, method=method), expires))
    assert signed.presigned
    assert signed.payload.stated == "UNSIGNED-PAYLOAD"


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_byte_of_what_was_signed_is_not_believed(where: int, by: int) -> None:
    request = sign_header(a_get({"x-amz-meta-a": "value"}, f"{BASE}/main/key?list-type=2"))
    now = time_of(request)
    texts = {"method": b"GET", "raw_path": request.raw_path, "query_string": request.query}
    field = sorted(texts)[where % 3]
    text = bytearray(texts[field])
    text[where % len(text)] = (text[where % len(text)] + by) % 256
    value: object = bytes(text).decode("latin-1") if field == "method" else bytes(text)
    tampered = changed(request, **{field: value})
    try:
        found = believe(tampered, now)
    except Fault:
        return
    # Another spelling of the same path and query is the same request.
    assert found.caller.principal == "owner"
    assert tampered.method == "GET"
    assert tampered.parameters == request.parameters


@pytest.mark.parametrize("name", ["host", "x-amz-date", "x-amz-content-sha256", "x-amz-meta-a"])
def test_a_changed_signed_header_is_not_believed(name: str) -> None:
    request = sign_header(a_get({"x-amz-meta-a": "value"}))
    now = time_of(request)
    value = request.headers[name].replace("2", "3", 1) if name != "x-amz-meta-a" else "other"
    fault = refusal(replaced(request, name, value + ("0" if name == "host" else "")), now)
    assert fault.code in {"SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "AccessDenied"}
    assert fault.status in {400, 403}


def test_a_header_of_amazons_that_was_not_signed_is_refused() -> None:
    request = sign_header(a_get())
    fault = refusal(changed(request, headers=[*request.scope["headers"], (b"x-amz-acl", b"public-read")]))
    assert (fault.code, fault.elements["HeadersNotSigned"]) == ("AccessDenied", "x-amz-acl")


def test_a_signature_that_does_not_cover_the_host_is_refused() -> None:
    request = sign_header(a_get())
    authorization = request.headers["authorization"].replace("host;", "")
    assert refusal(replaced(request, "authorization", authorization)).elements["HeadersNotSigned"] == "host"


def test_values_of_a_repeated_header_are_signed_joined_and_spaces_count_once() -> None:
    request = sign_header(a_get({"x-amz-meta-a": "one,two three"}))
    fields = [field for field in request.scope["headers"] if field[0] != b"x-amz-meta-a"]
    split = changed(request, headers=[*fields, (b"x-amz-meta-a", b"  one "), (b"x-amz-meta-a", b"two    three")])
    assert believe(split).caller.principal == "owner"


@pytest.mark.parametrize(("sent", "signed"), [("%7Ex%2Fy", "~x/y"), ("a%7eb", "a~b"), ("a(b)", "a%28b%29")])
def test_another_spelling_of_the_same_path_is_believed(sent: str, signed: str) -> None:
    request = sign_header(a_get(url=f"{BASE}/main/{signed}"))
    assert believe(changed(request, raw_path=f"/main/{sent}".encode())).caller.principal == "owner"


def test_a_plus_in_a_query_is_a_space() -> None:
    request = sign_header(a_get(url=f"{BASE}/main?prefix=a%20b"))
    assert believe(changed(request, query_string=b"prefix=a+b")).caller.principal == "owner"


def test_a_wrong_secret_and_an_unknown_key_are_told_as_amazon_tells_them() -> None:
    request = sign_header(a_get(), Credentials(ACCESS_KEY, SECRET + "x"))
    fault = refusal(request)
    assert (fault.code, fault.status) == ("SignatureDoesNotMatch", 403)
    assert "GET\n/main/a/b.txt" in fault.elements["CanonicalRequest"]
    assert SECRET not in "".join(fault.elements.values())


@pytest.mark.parametrize("off", [-MAX_SKEW - 1, MAX_SKEW + 1, -86_400 * 400])
def test_a_header_signature_of_another_time_is_refused(off: int) -> None:
    request = sign_header(a_get())
    fault = refusal(request, time_of(request) + off)
    assert (fault.code, fault.status) == ("RequestTimeTooSkewed", 403)
    assert {"RequestTime", "ServerTime", "MaxAllowedSkewMilliseconds"} <= set(fault.elements)


@pytest.mark.parametrize("off", [-MAX_SKEW, 0, MAX_SKEW])
def test_a_header_signature_is_good_around_its_time(off: int) -> None:
    request = sign_header(a_get())
    assert believe(request, time_of(request) + off).caller.principal == "owner"


@pytest.mark.parametrize(("off", "said"), [(61, "Request has expired"), (-MAX_SKEW - 1, "Request is not yet valid")])
def test_a_presigned_url_ends_when_it_says(off: int, said: str) -> None:
    request = sign_query(a_get(), 60)
    assert believe(request, time_of(request) + 60).presigned
    fault = refusal(request, time_of(request) + off)
    assert (fault.code, fault.message) == ("AccessDenied", said)


@pytest.mark.parametrize("expires", ["0", "-7", "604801", "1e3", "", "٣", "99999999999999999999"])
def test_an_expiry_out_of_range_is_refused(expires: str) -> None:
    request = sign_query(a_get(), 600)
    query = request.query.decode().replace("X-Amz-Expires=600", f"X-Amz-Expires={quote(expires)}")
    assert refusal(changed(request, query_string=query.encode()), time_of(request)).code == "AuthorizationQueryParametersError"


def test_a_session_token_is_handed_to_whoever_knows_secrets() -> None:
    control = OneKeyPair()
    credentials = Credentials(ACCESS_KEY, SECRET, "anl1.token")
    believe(sign_header(a_get(), credentials), control=control)
    believe(sign_query(a_get(), credentials=credentials), control=control)
    assert control.asked == [(ACCESS_KEY, "anl1.token")] * 2


def test_the_date_header_stands_in_for_the_one_of_amazon() -> None:
    request = sign_header(a_get({"Date": "Mon, 01 Jan 2001 00:00:00 GMT"}))
    assert "x-amz-date" not in request.headers
    now = parsedate_to_datetime(request.headers["date"]).timestamp()
    assert believe(request, now).caller.principal == "owner"


@pytest.mark.parametrize(
    ("authorization", "code", "status"),
    [
        ("", "AccessDenied", 403),
        ("AWS AKIAIOSFODNN7EXAMPLE:frJIUN8DYpKDtOLCwo//yllqDzg=", "InvalidRequest", 400),
        ("Bearer anl1.secret", "InvalidArgument", 400),
        ("AWS4-HMAC-SHA256", "AuthorizationHeaderMalformed", 400),
        ("AWS4-HMAC-SHA256 Credential=a/b", "AuthorizationHeaderMalformed", 400),
        ("AWS4-HMAC-SHA256 Credential=AK/20260101/r/s3/aws4_request,SignedHeaders=host", "AuthorizationHeaderMalformed", 400),
        ("AWS4-HMAC-SHA256 Credential=AK/20260101/r/ec2/aws4_request,SignedHeaders=host,Signature=0", "AuthorizationHeaderMalformed", 400),
        ("AWS4-HMAC-SHA256 Credential=AK/20260101/r/s3/x,SignedHeaders=host,Signature=0", "AuthorizationHeaderMalformed", 400),
    ],
)
def test_what_is_no_signature_is_refused_in_amazons_words(authorization: str, code: str, status: int) -> None:
    headers = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": "20260101T000000Z"}
    if authorization:
        headers["authorization"] = authorization
    fault = refusal(received("GET", f"{BASE}/main", headers), 0.0)
    assert (fault.code, fault.status) == (code, status)


def test_a_query_signature_of_version_2_is_refused() -> None:
    fault = refusal(received("GET", f"{BASE}/main?AWSAccessKeyId=a&Signature=b&Expires=1", {}), 0.0)
    assert (fault.code, fault.status) == ("InvalidRequest", 400)
    assert "AWS4-HMAC-SHA256" in fault.message


def test_a_day_that_is_not_the_one_of_the_time_is_refused() -> None:
    request = sign_header(a_get())
    day = request.headers["x-amz-date"][:8]
    authorization = request.headers["authorization"].replace(f"/{day}/", "/20200101/")
    assert refusal(replaced(request, "authorization", authorization)).code == "AuthorizationHeaderMalformed"


@pytest.mark.parametrize("date", ["", "Bad Date", "20269999T000000Z", "20260101T000000", "\xff"])
def test_a_time_that_is_none_is_refused(date: str) -> None:
    request = sign_header(a_get())
    fault = refusal(replaced(without(request, "date"), "x-amz-date", date), time_of(request))
    assert (fault.code, fault.status) == ("AccessDenied", 403)


@given(st.text(st.characters(codec="latin-1"), max_size=200), st.text(st.characters(codec="latin-1"), max_size=60), st.text(max_size=20))
def test_any_authorization_is_answered_with_a_code(rest: str, date: str, payload: str) -> None:
    headers = {"authorization": f"AWS4-HMAC-SHA256 {rest}", "x-amz-date": date, "x-amz-content-sha256": payload.encode().decode("latin-1")}
    assert refusal(received("GET", f"{BASE}/main", headers), 0.0).status in {400, 403}


@given(
    st.sampled_from(["Algorithm", "Credential", "Signature", "Date", "SignedHeaders", "Expires", "Content-Sha256"]), st.text(max_size=40)
)
def test_any_query_signature_is_answered_with_a_code(name: str, value: str) -> None:
    request = sign_query(a_get())
    parameters = {**request.parameters, f"X-Amz-{name}": value}
    fault = refusal(changed(request, query_string=urlencode(parameters).encode()), time_of(request))
    assert fault.status in {400, 403}
