"""T9: a request that its signer and the server read differently. %2F, +, repeated names, headers that were not signed, skewed dates."""

from __future__ import annotations

import datetime
import random
from contextlib import closing
from urllib.parse import quote, urlencode

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.attacks.stand import Stand
from tests.contract.doors.clients.wire import Wire

ALPHABET = "ab/+ %2F2f&=~*'()!$,;:@\u00e9\u6f22.-_"
REQUESTS = 300
REFUSED = {400, 403, 503}
"""Refused: by its form, by its signature, or told to slow down after some that were."""


def test_what_amazons_library_signs_is_read_as_it_was_signed_and_nothing_near_it(stand: Stand) -> None:
    draw = random.Random(9)
    held = stand.start()
    settings = stand.credentials(held, "s3")["settings"]
    credentials = Credentials(settings["AWS_ACCESS_KEY_ID"], settings["AWS_SECRET_ACCESS_KEY"], settings.get("AWS_SESSION_TOKEN"))
    signs = S3SigV4Auth(credentials, "s3", settings["AWS_REGION"])
    base = f"{settings['AWS_ENDPOINT_URL']}/{settings['bucket']}"
    with closing(Wire(base)) as wire:
        for _ in range(REQUESTS):
            key = "work/" + "".join(draw.choice(ALPHABET) for _ in range(draw.randint(1, 12))).strip("/.") + "x"
            query = urlencode([(draw.choice(["prefix", "marker", "x"]), draw.choice(ALPHABET)) for _ in range(draw.randint(0, 2))])
            url = f"{base}/{quote(key, safe='/~')}" + (f"?{query}" if query else "")
            request = AWSRequest("GET", url)
            signs.add_auth(request)
            headers = dict(request.headers.items())
            target = str(request.url).partition(wire.host)[2]
            assert wire.send("GET", target, headers, None).status in {200, 400, 404}, url
            path, _, asked = target.partition("?")
            near = [path + "x", path + "%2F", path.replace("work/", "work%2F", 1) + "y"]
            for other in near:
                assert wire.send("GET", other + (f"?{asked}" if asked else ""), headers, None).status in REFUSED, (url, other)
            assert wire.send("GET", target + ("&" if asked else "?") + "versionId=1", headers, None).status in REFUSED
            unsigned = {**headers, "x-amz-security-policy": "none"}
            assert wire.send("GET", target, unsigned, None).status in REFUSED


def test_a_signature_of_another_day_or_for_another_host_is_none(stand: Stand) -> None:
    held = stand.start()
    settings = stand.credentials(held, "s3")["settings"]
    credentials = Credentials(settings["AWS_ACCESS_KEY_ID"], settings["AWS_SECRET_ACCESS_KEY"], settings.get("AWS_SESSION_TOKEN"))
    with closing(Wire(settings["AWS_ENDPOINT_URL"])) as wire:
        base = f"{settings['AWS_ENDPOINT_URL']}/{settings['bucket']}/work/a.txt"
        target = base.partition(wire.host)[2]

        def ask(url: str, hours: int) -> int:
            request = AWSRequest("GET", url)
            signs = Dated(credentials, "s3", settings["AWS_REGION"])
            signs.moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
            signs.add_auth(request)
            return wire.send("GET", target, dict(request.headers.items()), None).status

        assert ask(base, 0) == 200
        assert ask(base, -1) == ask(base, 1) == 403
        assert ask(base.replace(wire.host, "s3.amazonaws.com"), 0) == 403


class Dated(S3SigV4Auth):
    """Signs as if it was another time."""

    moment: datetime.datetime

    def add_auth(self, request: AWSRequest) -> None:
        request.context["timestamp"] = self.moment.strftime("%Y%m%dT%H%M%SZ")
        self._modify_request_before_signing(request)
        canonical = self.canonical_request(request)
        self._inject_signature_to_request(request, self.signature(self.string_to_sign(request, canonical), request))
