"""What a request proves beside its secret: the keys that whoever sent it has, as the thumbprints that leases are bound to. Pure.

1. A certificate counts as the proxy vouches for it (`interfaces.web.vouching`), by the SHA-256 of the whole of it (RFC 8705, ``x5t#S256``).
2. A key of SSH counts where the SSH server has checked it, by the fingerprint that OpenSSH prints.
"""

from __future__ import annotations

import base64
import hashlib


def proofs_of(certificate: bytes = b"", fingerprint: str = "") -> frozenset[str]:
    """Return the thumbprints that a certificate (DER) and an SSH key's fingerprint (``SHA256:...``) prove; empty where there is none."""
    proofs = set()
    if certificate:
        proofs.add("x5t:" + base64.urlsafe_b64encode(hashlib.sha256(certificate).digest()).rstrip(b"=").decode())
    if fingerprint:
        proofs.add(f"ssh:{fingerprint}")
    return frozenset(proofs)
