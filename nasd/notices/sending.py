"""The process that sends one message to one target, and ends. It alone reads the addresses and keys.

1. It is told on standard input where the address is and what to say, and answers with one line of JSON: whether it was taken, and if not
   why, in words that hold nothing of the address.
2. A file with a secret that others can read is refused.
3. What libraries would log is not logged: their lines name addresses with the secrets in them.
4. A webhook follows the Standard Webhooks: ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``, the last an HMAC-SHA256 over
   ``id.timestamp.body``. A redirect is not followed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import json
import logging
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHORTEST_KEY = 24
_SECONDS = 20


class Failed(Exception):
    """The message was not taken; the words hold nothing of the address."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def sign(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a webhook's body."""
    mac = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(mac.digest()).decode()}"


def read_key(text: str) -> bytes:
    """Return the key in a key file: base64, with or without ``whsec_`` before it. Raises `Failed`."""
    try:
        key = base64.b64decode(text.strip().removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise Failed("the key file does not hold base64") from error
    if len(key) < SHORTEST_KEY:
        raise Failed(f"the key is shorter than {SHORTEST_KEY} bytes")
    return key


def send(spec: Mapping[str, Any]) -> None:
    """Send one message. Raises `Failed`."""
    if spec["url_file"]:
        _notify(_secret(spec["url_file"]), spec["title"], spec["text"])
    else:
        address = spec["webhook"] or _secret(spec["webhook_file"])
        _post(address, read_key(_secret(spec["key_file"])), spec["id"], int(spec["timestamp"]), spec["document"].encode())


def _secret(path: str) -> str:
    try:
        if stat.S_IMODE(Path(path).stat().st_mode) & 0o077:
            raise Failed(f"{path} can be read by others: chmod 600 it")
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"{path} cannot be read") from error


def _notify(url: str, title: str, text: str) -> None:
    import apprise

    service = apprise.Apprise()
    if not service.add(url):
        raise Failed("the address is none that Apprise knows")
    if not service.notify(title=title, body=text, body_format=apprise.NotifyFormat.TEXT):
        raise Failed("the service did not take it")


def _post(address: str, key: bytes, id: str, timestamp: int, body: bytes) -> None:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "agent-nas",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(key, id, timestamp, body),
    }
    try:
        request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - the operator's own address
        if request.type not in {"http", "https"}:
            raise Failed("the address is neither http nor https")
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_SECONDS):
            return
    except urllib.error.HTTPError as error:
        raise Failed(f"it answered {error.code}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Failed(f"it could not be reached: {type(error).__name__}") from error


def main() -> int:
    """Send what standard input says and tell on standard output what came of it."""
    logging.disable(logging.CRITICAL)
    spec = json.load(sys.stdin)
    told, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    try:
        send(spec)
        report = {"sent": True, "why": ""}
    except Failed as failure:
        report = {"sent": False, "why": str(failure)}
    print(json.dumps(report), file=told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
