"""Certificates of clients, through a real nginx that asks for them; and what everybody else gets who only says to have one."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import CERTIFICATE, Receive, Scope, Send
from interfaces.web.vouching import Vouching, read_certificate
from nasd.identities.certificates import names_of, parse_name
from tests.nasd.identities.conftest import PROXY_SECRET, Served, bearer
from tests.nasd.identities.real_issuer import free_port
from trust.errors import Unauthenticated

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key, as files and as DER."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    path: Path

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def issue(folder: Path, name: str, *, by: Issued | None = None, uri: str = "", ends: datetime.timedelta = DAY) -> Issued:
    """Issue a certificate by an authority (None: one that stands for itself)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "Tests"), x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    alternative: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri)] if uri else []
    if name == "localhost":
        alternative += [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * DAY)
        .not_valid_after(now + ends)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if alternative:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    certificate = builder.sign(by.key if by else key, hashes.SHA256())
    path = folder / f"{name}.pem"
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + text)
    return Issued(certificate, key, path)


@pytest.fixture
def authority(tmp_path: Path) -> Issued:
    return issue(tmp_path, "authority")


@pytest.fixture
def proxy(served: Served, authority: Issued, tmp_path: Path) -> Iterator[str]:
    """Run nginx before the appliance; it takes certificates of the authority, and says of a client what it has proven and nothing else."""
    port, server = free_port(), issue(tmp_path, "localhost", by=authority)
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(
        f"""
daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log; worker_processes 1;
{"user root;" if os.geteuid() == 0 else ""}
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {tmp_path}/b; proxy_temp_path {tmp_path}/p; fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u;
  scgi_temp_path {tmp_path}/s;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {server.path}; ssl_certificate_key {server.path};
    ssl_client_certificate {authority.path}; ssl_verify_client optional;
    location / {{
      proxy_pass {served.url};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Client-Cert $ssl_client_escaped_cert;
      proxy_set_header Agent-NAS-Proxy "{PROXY_SECRET}";
    }}
  }}
}}
"""
    )
    process = subprocess.Popen(
        [NGINX, "-c", configuration, "-p", tmp_path, "-e", tmp_path / "error.log"], stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            _wait_for(port, process)
            yield f"https://localhost:{port}"
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(200):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("nginx does not listen")


def ask(url: str, authority: Issued, client: Issued | None = None, headers: dict[str, str] | None = None, path: str = "/v1/runs") -> int:
    """Ask through the proxy, showing a certificate, and return the status."""
    context = ssl.create_default_context(cafile=str(authority.path))
    if client is not None:
        context.load_cert_chain(client.path)
    with httpx2.Client(verify=context, trust_env=False) as asking:
        return int(asking.get(url + path, headers=headers).status_code)


def register(served: Served, name: str, principal: str) -> str:
    served.house.issue_token(principal, "service")
    return str(served.house.call(served.house.owner, "certificate.add", {"name": name, "principal": principal})["certificate"])


def test_a_certificate_that_nginx_verified_speaks_for_whom_it_was_registered_until_it_is_not(
    served: Served, proxy: str, authority: Issued, tmp_path: Path
) -> None:
    robot = issue(tmp_path, "robot", by=authority, uri="spiffe://tests/robot")
    assert ask(proxy, authority, robot) == 401
    number = register(served, "URI:spiffe://tests/robot", "svc:robot")
    assert ask(proxy, authority, robot) == 200
    assert ask(proxy, authority, robot, path="/dav/main/README.md") == 200
    assert ask(proxy, authority, issue(tmp_path, "other", by=authority)) == 401
    assert ask(proxy, authority) == 401
    served.house.call(served.house.owner, "certificate.remove", {"certificate": number})
    assert ask(proxy, authority, robot) == 401


def test_a_field_that_a_client_sends_to_the_proxy_itself_is_replaced_by_what_the_proxy_knows(
    served: Served, proxy: str, authority: Issued, tmp_path: Path
) -> None:
    robot = issue(tmp_path, "robot", by=authority)
    register(served, f"sha256:{robot.certificate.fingerprint(hashes.SHA256()).hex()}", "svc:robot")
    said = {"Client-Cert": quote(robot.pem.decode())}
    assert ask(proxy, authority, robot) == 200
    assert ask(proxy, authority, None, said) == 401
    assert ask(proxy, authority, issue(tmp_path, "other", by=authority), said) == 401


@pytest.mark.parametrize("form", ["pem", "rfc9440"])
def test_whoever_connects_past_the_proxy_is_not_believed_although_the_address_is_the_proxys(
    served: Served, tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    robot = issue(tmp_path, "robot")
    register(served, "subject:CN=robot,O=Tests", "svc:robot")
    field = {"client-cert": quote(robot.pem.decode()) if form == "pem" else f":{base64.b64encode(robot.der).decode()}:"}
    assert served.ask("GET", "/v1/runs", field).status == 401
    assert served.ask("GET", "/v1/runs", field | {"agent-nas-proxy": PROXY_SECRET[:-1]}).status == 401
    assert served.ask("GET", "/v1/runs", field | {"agent-nas-proxy": ""}).status == 401
    assert served.ask("GET", "/v1/runs", field | {"agent-nas-proxy": PROXY_SECRET}).status == 200
    assert "was ignored" in caplog.text
    assert "BEGIN" not in caplog.text


def test_a_secret_in_the_request_counts_and_not_the_certificate_beside_it(served: Served, tmp_path: Path) -> None:
    robot = issue(tmp_path, "robot")
    register(served, "subject:CN=robot,O=Tests", "svc:robot")
    field = {"client-cert": quote(robot.pem.decode()), "agent-nas-proxy": PROXY_SECRET}
    assert served.ask("GET", "/v1/runs", field | bearer("nat1.tabc.def")).status == 401
    assert served.ask("GET", "/v1/principals", field).status == 403
    assert served.ask("GET", "/v1/principals", field | bearer(served.house.owner)).status == 200


def test_a_certificate_counts_in_its_own_time_for_one_principal_that_may_still_act(served: Served, tmp_path: Path) -> None:
    proof = {"agent-nas-proxy": PROXY_SECRET}
    ended = issue(tmp_path, "ended", ends=-DAY)
    both = issue(tmp_path, "both", uri="spiffe://tests/both")
    register(served, "subject:CN=ended,O=Tests", "svc:ended")
    register(served, "subject:CN=both,O=Tests", "svc:one")
    assert served.ask("GET", "/v1/runs", proof | {"client-cert": quote(both.pem.decode())}).status == 200
    register(served, "URI:spiffe://tests/both", "svc:two")
    for certificate in (ended, both):
        assert served.ask("GET", "/v1/runs", proof | {"client-cert": quote(certificate.pem.decode())}).status == 401
    single = issue(tmp_path, "single")
    register(served, "subject:CN=single,O=Tests", "svc:single")
    served.house.call(served.house.owner, "principal.disable", {"name": "svc:single"})
    assert served.ask("GET", "/v1/runs", proof | {"client-cert": quote(single.pem.decode())}).status == 401


def test_agents_have_no_certificates_and_only_an_owner_registers_them(served: Served) -> None:
    served.house.issue_token("bot", "agent")
    ana = served.house.issue_token("ana")
    for secret, principal, name, kind in (
        (served.house.owner, "bot", "DNS:bot.example", Kind.INVALID),
        (ana, "ana", "DNS:ana.example", Kind.DENIED),
        (served.house.owner, "nobody", "DNS:ana.example", Kind.NOT_FOUND),
        (served.house.owner, "ana", "ana.example", Kind.INVALID),
        (served.house.owner, "ana", "sha256:12", Kind.INVALID),
        (served.house.owner, "ana", "subject:nonsense", Kind.INVALID),
    ):
        with pytest.raises(Fault) as caught:
            served.house.call(secret, "certificate.add", {"name": name, "principal": principal})
        assert caught.value.kind is kind


def test_one_certificate_has_one_spelling_of_each_of_its_names(tmp_path: Path) -> None:
    issued = issue(tmp_path, "robot", uri="spiffe://tests/robot")
    thumbprint = issued.certificate.fingerprint(hashes.SHA256()).hex()
    typed = ":".join(thumbprint[at : at + 2] for at in range(0, 64, 2)).upper()
    wanted = [parse_name(f"SHA256:{typed}"), parse_name("subject: CN=robot,O=Tests"), parse_name("uri:spiffe://tests/robot")]
    assert names_of(issued.der, int(time.time())) == wanted


@pytest.mark.parametrize("proof", [[], [b"wrong"], [PROXY_SECRET.encode()], [PROXY_SECRET.encode()] * 2])
@pytest.mark.parametrize("peer", ["192.0.2.1", "192.0.2.2", None])
def test_no_application_sees_what_is_for_the_proxy_and_us_whoever_sent_it(tmp_path: Path, proof: list[bytes], peer: str | None) -> None:
    seen: list[Scope] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    issued = issue(tmp_path, "robot")
    headers = [(b"host", b"localhost"), (b"client-cert", quote(issued.pem.decode()).encode()), (b"client-cert-chain", b"x")]
    headers += [(b"agent-nas-proxy", secret) for secret in proof]
    scope = {"type": "http", "client": (peer, 1) if peer else None, "headers": headers, "extensions": {"other": 1}}
    vouching = Vouching(application, frozenset({"192.0.2.1"}), PROXY_SECRET.encode())
    asyncio.run(vouching(scope, None, None))  # type: ignore[arg-type]
    believed = peer == "192.0.2.1" and proof == [PROXY_SECRET.encode()]
    assert seen[0]["headers"] == [(b"host", b"localhost")]
    assert seen[0]["extensions"] == {"other": 1, **({CERTIFICATE: issued.der} if believed else {})}


@given(st.binary(max_size=200))
def test_what_is_no_certificate_speaks_for_nobody(text: bytes) -> None:
    read_certificate([text])
    assert read_certificate([text, text]) == b""
    with pytest.raises(Unauthenticated):
        names_of(text, 1_800_000_000)
