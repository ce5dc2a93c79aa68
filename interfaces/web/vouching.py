"""What a declared proxy says of its client: address and certificate. Everything else of that kind is taken off a request.

1. A client's certificate (``Client-Cert``, RFC 9440; the URL-encoded PEM that nginx writes is read as well) counts when the request comes
   from the address of a declared proxy AND brings the secret that was agreed with it (``Agent-NAS-Proxy``). An address proves nothing
   on a machine where agents run: they can connect from where the proxy does.
2. Whatever comes, no application behind this sees one of these fields; what is not believed is as if it had not been sent.
3. A field that is there twice, or that is no certificate, is none.
4. Pure, but for one warning a minute in the log when somebody else sends a certificate.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import ssl
import time
from urllib.parse import unquote

from interfaces.web.asgi import CERTIFICATE, App, Receive, Scope, Send

PROOF = b"agent-nas-proxy"
"""The field with the secret of a proxy."""
_FIELDS = frozenset({PROOF, b"client-cert", b"client-cert-chain"})
_LONGEST = 16 << 10
_PEM = "-----BEGIN CERTIFICATE-----"
_WARN_SECONDS = 60.0
log = logging.getLogger("nas.web")


class Vouching:
    """An application that is told of certificates by proxies that may."""

    def __init__(self, app: App, proxies: frozenset[str], secret: bytes) -> None:
        """Serve `app`; believe the addresses `proxies` when they know `secret` (empty: nobody)."""
        self._app = app
        self._proxies = proxies
        self._secret = secret
        self._warned = -_WARN_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            scope = self._cleaned(scope)
        await self._app(scope, receive, send)

    def _cleaned(self, scope: Scope) -> Scope:
        fields = scope["headers"]
        told = [(name, value) for name, value in fields if name in _FIELDS]
        if not told:
            return scope
        cleaned = {**scope, "headers": [field for field in fields if field[0] not in _FIELDS]}
        if self._is_believed(scope, told):
            certificate = read_certificate([value for name, value in told if name == b"client-cert"])
            if certificate:
                cleaned["extensions"] = {**scope.get("extensions", {}), CERTIFICATE: certificate}
        elif time.monotonic() - self._warned > _WARN_SECONDS:
            self._warned = time.monotonic()
            log.warning("a certificate of a client was sent by nobody who may vouch for one, and was ignored")
        return cleaned

    def _is_believed(self, scope: Scope, told: list[tuple[bytes, bytes]]) -> bool:
        client = scope.get("client")
        proofs = [value for name, value in told if name == PROOF]
        if not self._secret or not client or client[0] not in self._proxies or len(proofs) != 1:
            return False
        return hmac.compare_digest(proofs[0], self._secret)


def read_certificate(values: list[bytes]) -> bytes:
    """Return the certificate in the values of ``Client-Cert`` as DER; empty where there is not exactly one."""
    if len(values) != 1 or len(values[0]) > _LONGEST:
        return b""
    try:
        text = values[0].decode("ascii").strip()
        if text.startswith(":") and text.endswith(":") and len(text) > 2:
            return base64.b64decode(text[1:-1], validate=True)
        pem = unquote(text)
        return ssl.PEM_cert_to_DER_cert(pem) if pem.startswith(_PEM) and pem.count(_PEM) == 1 else b""
    except (UnicodeDecodeError, binascii.Error, ValueError):
        return b""
