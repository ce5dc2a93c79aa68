"""What doors are shown instead of a secret: computed offline, recognised by computing it again, and gone with the lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trust.samples import NOW, WHOLE_TREE, give_lease, open_trust
from trust import Trust
from trust.derived import derive_basic, derive_key_pair, name_lease, read_lease, read_token
from trust.errors import Disabled, KeyMissing, LeaseExpired, LeaseRevoked, TrustError, Unauthenticated, Unknown
from trust.model import Action, Identity, LeaseId, PrincipalKind, Scope, TokenId
from trust.tokens import encode_lease_head, narrow_token, parse_lease_token

DAY, REGION, SERVICE = "20261130", "us-east-1", "s3"
READ_SRC = Scope(("src/**",), frozenset({Action.READ}), NOW, 1_500)
CAVEAT = {"p": ["src/**"], "exp": 1_500}


def sign_with_botocore(access_key: str, secret: str, session_token: str) -> tuple[str, bytes]:
    """Return the signature that a client sends, and the string it signed."""
    auth: Any = S3SigV4Auth(Credentials(access_key, secret, session_token or None), SERVICE, REGION)
    request = AWSRequest("GET", "http://nas.example/main/src/a%20b.py?versions=")
    request.context["timestamp"] = f"{DAY}T120000Z"
    request.context["signing"] = {}
    request.headers["X-Amz-Date"] = f"{DAY}T120000Z"
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return auth.signature(text, request), text.encode()


def enter_by_s3(trust: Trust, access_key: str, secret: str, session_token: str, now: int = NOW) -> Identity:
    """Do what a door does: check the signature, then ask whose it was."""
    signature, text = sign_with_botocore(access_key, secret, session_token)
    key, claim = trust.signing_key(access_key, session_token, DAY, REGION, SERVICE)
    if key.sign(text) != signature:
        raise Unauthenticated("signature", "wrong")
    return trust.admit(claim, now)


def ways_in(trust: Trust, secret: str) -> list[Callable[[int], Identity]]:
    """Return every way in that the holder of a lease token has, computed from the token alone."""
    return [
        lambda now: trust.authenticate(secret, now),
        lambda now: trust.authenticate_basic(*derive_basic(secret), now),
        lambda now: enter_by_s3(trust, *derive_key_pair(secret), now),
    ]


def test_every_door_recognises_a_lease(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    for enter in ways_in(trust, secret) * 2:
        assert enter(NOW).lease == lease
    assert trust.authenticate_basic(lease.id, trust.basic_password(lease.id), NOW).lease == lease
    assert enter_by_s3(trust, *trust.access_key(lease.id)).lease == lease
    access_key, _, session_token = trust.access_key(lease.id)
    assert (len(access_key), session_token) == (20, "")


def test_a_token_that_was_narrowed_offline_enters_by_every_door_and_is_one_lease(trust: Trust) -> None:
    _, secret = give_lease(trust)
    narrowed = narrow_token(secret, CAVEAT)
    for enter in reversed(ways_in(trust, narrowed) * 2):
        lease = enter(NOW).lease
        assert lease is not None and lease.scope.paths == ("src/**",)
    assert len(trust.leases()) == 2


def test_nobody_makes_a_lease_by_writing_down_caveats(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    access_key, _, session_token = derive_key_pair(narrow_token(secret, CAVEAT))
    user, _ = derive_basic(narrow_token(secret, CAVEAT))
    with pytest.raises(Unauthenticated):
        trust.authenticate_basic(user, trust.basic_password(lease.id), NOW)
    with pytest.raises(Unauthenticated):
        enter_by_s3(trust, access_key, trust.access_key(lease.id)[1], session_token)
    assert trust.leases() == [lease]


def test_another_session_token_than_that_of_the_access_key_is_worth_nothing(trust: Trust) -> None:
    _, secret = give_lease(trust)
    access_key, derived, _ = derive_key_pair(narrow_token(secret, CAVEAT))
    for wider in (encode_lease_head(parse_lease_token(secret).root, ()), derive_key_pair(narrow_token(secret, {"exp": 1_500}))[2]):
        with pytest.raises(Unauthenticated):
            enter_by_s3(trust, access_key, derived, wider)


def test_a_narrowed_lease_needs_no_session_token_once_its_key_pair_was_handed_out(trust: Trust) -> None:
    root, _ = give_lease(trust)
    child, secret = trust.narrow_lease(root.id, READ_SRC, NOW)
    access_key, derived, session_token = derive_key_pair(secret)
    with pytest.raises(Unauthenticated):
        enter_by_s3(trust, access_key, derived, "")
    assert trust.access_key(child.id) == (access_key, derived, session_token) == trust.access_key(child.id)
    assert enter_by_s3(trust, access_key, derived, "").lease == child
    trust.revoke_lease(root.id, "done", NOW)
    with pytest.raises(LeaseRevoked):
        enter_by_s3(trust, access_key, derived, "")


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda trust, lease: trust.revoke_lease(lease.id, "done", NOW), LeaseRevoked),
        (lambda trust, lease: trust.revoke_lease(lease.parent, "done", NOW), LeaseRevoked),
        (lambda trust, lease: trust.disable_principal("coder", NOW), LeaseRevoked),
        (lambda trust, lease: trust.disable_principal("ana", NOW), LeaseRevoked),
    ],
    ids=["revoked", "parent revoked", "disabled", "owner disabled"],
)
def test_every_way_in_ends_with_the_lease_at_once_in_every_process(
    end: Callable[[Trust, Any], object], error: type[TrustError], trust: Trust, tmp_path: Path
) -> None:
    root, _ = give_lease(trust)
    child, secret = trust.narrow_lease(root.id, READ_SRC, NOW)
    other = Trust.open(tmp_path / "trust")
    doors = ways_in(trust, secret) + ways_in(other, secret)
    for enter in doors:
        enter(NOW)
    end(trust, child)
    for enter in doors:
        with pytest.raises(error):
            enter(NOW)
    other.close()


def test_every_way_in_ends_in_the_lease_s_last_second(trust: Trust) -> None:
    _, secret = give_lease(trust)
    for enter in ways_in(trust, secret):
        enter(WHOLE_TREE.expires - 1)
    for enter in ways_in(trust, secret):
        with pytest.raises(LeaseExpired):
            enter(WHOLE_TREE.expires)


def test_one_door_s_credential_opens_no_other(trust: Trust) -> None:
    lease, _ = give_lease(trust)
    password, (access_key, derived, _) = trust.basic_password(lease.id), trust.access_key(lease.id)
    enter_by_s3(trust, access_key, derived, "")
    for user, given_password in ((access_key, ""), (access_key, derived), (lease.id, derived), (lease.id, ""), ("ana", password)):
        with pytest.raises(Unauthenticated):
            trust.authenticate_basic(user, given_password, NOW)
    with pytest.raises(Unauthenticated):
        enter_by_s3(trust, access_key, password, "")
    with pytest.raises(Unauthenticated):
        trust.authenticate(password, NOW)


def test_basic_takes_a_whole_secret_from_the_one_it_belongs_to(trust: Trust) -> None:
    lease, secret = give_lease(trust)
    token, own = trust.issue_token("ana", "laptop", None, NOW)
    assert trust.authenticate_basic(lease.id, secret, NOW).lease == lease
    assert trust.authenticate_basic("ana", own, NOW).token == token.id
    for user, password in (("coder", own), ("coder", secret), (lease.id, own), ("", own), (token.id, own)):
        with pytest.raises(Unauthenticated):
            trust.authenticate_basic(user, password, NOW)


def test_a_principal_s_token_has_a_key_pair_that_ends_with_it(trust: Trust) -> None:
    token, _ = trust.issue_token("ana", "laptop", NOW + 100, NOW)
    pair = trust.token_key_pair(token.id)
    assert len(pair[0]) == 20
    trust.rotate_key()
    assert trust.token_key_pair(token.id) != pair
    for access_key, secret in (pair, trust.token_key_pair(token.id)):
        identity = enter_by_s3(trust, access_key, secret, "", NOW + 99)
        assert (identity.principal.name, identity.token) == ("ana", token.id)
        assert identity.roles == {"owner"}
        with pytest.raises(Unauthenticated):
            enter_by_s3(trust, access_key, secret, "", NOW + 100)
    trust.revoke_token(token.id, NOW)
    with pytest.raises(Unauthenticated):
        enter_by_s3(trust, *pair, "")
    with pytest.raises(Unknown):
        trust.token_key_pair("tnone")


def test_a_disabled_principal_s_token_signs_nothing(trust: Trust) -> None:
    trust.add_principal("svc:x", PrincipalKind.SERVICE, NOW)
    token, _ = trust.issue_token("svc:x", "job", None, NOW)
    pair = trust.token_key_pair(token.id)
    enter_by_s3(trust, *pair, "")
    trust.disable_principal("svc:x", NOW)
    with pytest.raises((Disabled, Unauthenticated)):
        enter_by_s3(trust, *pair, "")


def test_who_has_the_database_and_not_the_keys_signs_nothing(trust: Trust, tmp_path: Path) -> None:
    lease, _ = give_lease(trust)
    token, _ = trust.issue_token("ana", "laptop", None, NOW)
    pairs = [trust.access_key(lease.id), (*trust.token_key_pair(token.id), "")]
    trust.close()
    for key in (tmp_path / "trust" / "keys").iterdir():
        key.unlink()
    stolen = Trust.open(tmp_path / "trust")
    for pair in pairs:
        with pytest.raises(Unauthenticated):
            enter_by_s3(stolen, *pair)
    with pytest.raises(KeyMissing):
        stolen.access_key(lease.id)
    assert stolen.token_key_pair(token.id) != pairs[1][:2]
    stolen.close()


def test_secrets_do_not_show_themselves(trust: Trust) -> None:
    lease, _ = give_lease(trust)
    access_key, secret, _ = trust.access_key(lease.id)
    key, claim = trust.signing_key(access_key, "", DAY, REGION, SERVICE)
    assert secret not in repr((key, claim)) and trust.basic_password(lease.id) not in repr(claim)


def test_an_access_key_says_which_lease_or_token() -> None:
    lease, token = LeaseId("l" + "abcdefghijklmnop"), TokenId("t" + "ponmlkjihgfedcba")
    assert read_lease(name_lease(lease)) == lease
    assert read_lease(name_lease(LeaseId(f"{lease}~x"))) is None
    assert read_token("ANTB" + token[1:].upper(), 1) == (token, 1)
    assert read_token("ANTB" + token[1:].upper(), 34) == (token, 33)
    with pytest.raises(Unauthenticated):
        read_token("ANTC" + token[1:].upper(), 1)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trust]:
    opened = open_trust(tmp_path_factory.mktemp("trust"))
    yield opened
    opened.close()


TEXTS = st.one_of(
    st.text(max_size=60),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ2345670", min_size=15, max_size=18).map("ANLR".__add__),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ2345670", min_size=15, max_size=18).map("ANT".__add__),
    st.binary(max_size=60).map(lambda data: "anl1." + data.hex()),
    st.just(encode_lease_head(LeaseId("l1"), ({"exp": 5},))),
)


@given(TEXTS, TEXTS)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_presented_gets_one_answer(stranger: Trust, one: str, other: str) -> None:
    with pytest.raises(Unauthenticated):
        stranger.authenticate_basic(one, other, NOW)
    with pytest.raises(Unauthenticated):
        enter_by_s3(stranger, one, "x", other) if one.isascii() and one.isprintable() else stranger.authenticate(one, NOW)
