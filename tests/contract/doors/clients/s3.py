"""S3, by the requests that Amazon's own library signs."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode
from xml.etree.ElementTree import Element

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from defusedxml.ElementTree import fromstring

from interfaces.faults import Kind
from tests.contract.doors.clients.composed import MORE_BY_APPENDING, append_by_reading, search_by_reading
from tests.contract.doors.clients.door import Aspect, Difference, Door
from tests.contract.doors.clients.wire import Reply, Wire
from tests.contract.doors.leases import Standing
from tests.contract.doors.model import Operation, Refused, Seen
from tests.contract.doors.site import Held, Site

_NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class Bucket(Wire):
    """A client of one bucket."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings["AWS_ENDPOINT_URL"])
        self._base = f"{settings['AWS_ENDPOINT_URL']}/{settings['bucket']}"
        self._bucket = settings["bucket"]
        credentials = Credentials(settings["AWS_ACCESS_KEY_ID"], settings["AWS_SECRET_ACCESS_KEY"], settings.get("AWS_SESSION_TOKEN"))
        self._signs = S3SigV4Auth(credentials, "s3", settings["AWS_REGION"])

    def read(self, path: str) -> bytes:
        return self.ask("GET", path).body

    def list(self, path: str) -> tuple[str, ...]:
        query = urlencode({"delimiter": "/", "list-type": "2", "prefix": f"{path}/"})
        found = fromstring(self.ask("GET", "", query=query).body)
        keys = [*_texts(found, "Contents", "Key"), *_texts(found, "CommonPrefixes", "Prefix")]
        if not keys:
            raise Refused("200, no keys")
        return tuple(sorted(key.removeprefix(f"{path}/").rstrip("/") for key in keys))

    def stat(self, path: str) -> Seen:
        return Seen(is_directory=False, size=int(self.ask("HEAD", path).headers["content-length"]))

    def write(self, path: str, content: bytes) -> None:
        self.ask("PUT", path, content)

    def create(self, path: str, content: bytes) -> None:
        self.ask("PUT", path, content, {"If-None-Match": "*"})

    def append(self, path: str, content: bytes) -> None:
        found = self.ask("GET", path)
        self.ask("PUT", path, found.body + content, {"If-Match": found.headers["etag"]})

    def copy(self, path: str, target: str) -> None:
        self.ask("PUT", target, headers={"x-amz-copy-source": f"/{self._bucket}/{path}"})

    def move(self, path: str, target: str) -> None:
        self.copy(path, target)
        self.delete(path)

    def delete(self, path: str) -> None:
        self.ask("DELETE", path)

    def search(self, path: str, text: str) -> tuple[str, ...]:
        return search_by_reading(self, path, text)

    def ask(self, method: str, key: str, body: bytes = b"", headers: Mapping[str, str] | None = None, query: str = "") -> Reply:
        """Send one signed request about a key and return its answer. Raises `Refused`."""
        target = f"{self._base}/{key}" if key else self._base
        request = AWSRequest(method, f"{target}?{query}" if query else target, headers=dict(headers or {}), data=body)
        self._signs.add_auth(request)
        reply = self.send(method, str(request.url).partition(self.host)[2], dict(request.headers.items()), body)
        if reply.status >= 400:
            raise Refused(f"HEAD {reply.status}" if method == "HEAD" else _code(reply.body))
        return reply


def _texts(found: Element, group: str, name: str) -> list[str]:
    return [text.text or "" for text in found.findall(f"{_NAMESPACE}{group}/{_NAMESPACE}{name}")]


def _code(body: bytes) -> str:
    return fromstring(body).findtext("Code") or ""


WORDS = {
    "InvalidArgument": frozenset({Kind.INVALID, Kind.NOT_A_DIRECTORY, Kind.IS_A_DIRECTORY}),
    "InvalidAccessKeyId": frozenset({Kind.UNAUTHENTICATED}),
    "AccessDenied": frozenset({Kind.DENIED, Kind.READ_ONLY, Kind.GATED, Kind.BUDGET, Kind.REVOKED, Kind.NOT_PERMITTED}),
    "NoSuchKey": frozenset({Kind.NOT_FOUND, Kind.NO_ATTRIBUTE}),
    "OperationAborted": frozenset({Kind.EXISTS}),
    "BucketNotEmpty": frozenset({Kind.NOT_EMPTY}),
    "InvalidRequest": frozenset({Kind.INTO_ITSELF, Kind.KEY_REUSED, Kind.LOOP, Kind.TOO_MANY_LINKS}),
    "KeyTooLongError": frozenset({Kind.NAME_TOO_LONG}),
    "ServiceUnavailable": frozenset({Kind.NO_SPACE, Kind.UNAVAILABLE}),
    "EntityTooLarge": frozenset({Kind.TOO_LARGE}),
    "ConditionalRequestConflict": frozenset({Kind.CONFLICT, Kind.STALE}),
    "PreconditionFailed": frozenset({Kind.PRECONDITION}),
    "ExpiredToken": frozenset({Kind.EXPIRED}),
    "NotImplemented": frozenset({Kind.UNSUPPORTED}),
    "SlowDown": frozenset({Kind.BUSY, Kind.THROTTLED}),
    "InternalError": frozenset({Kind.CORRUPT, Kind.INTERNAL}),
    # A refused HEAD has a status and no code.
    "HEAD 400": frozenset({Kind.INVALID, Kind.EXPIRED}),
    "HEAD 403": frozenset({Kind.DENIED, Kind.READ_ONLY, Kind.GATED, Kind.BUDGET, Kind.REVOKED, Kind.NOT_PERMITTED, Kind.UNAUTHENTICATED}),
    "HEAD 404": frozenset({Kind.NOT_FOUND}),
    # A listing of what is not there is a listing without keys.
    "200, no keys": frozenset({Kind.NOT_FOUND}),
}


def _connect(site: Site, held: Held) -> Bucket:
    return Bucket(site.credentials(held, "s3")["settings"])


S3 = Door(
    "S3",
    _connect,
    WORDS,
    by={
        Operation.LIST: "a listing with prefix and delimiter",
        Operation.STAT: "HEAD",
        Operation.APPEND: "GET and PUT with If-Match",
        Operation.MOVE: "copying and deleting",
        Operation.SEARCH: "listing and GET",
    },
    differs=(
        Difference(
            Aspect.DECISION,
            {Standing.HIDDEN},
            {Operation.WRITE, Operation.CREATE},
            "PUT makes the directories on its way, and is refused, and recorded, at the first that it may not make, there or not",
        ),
        Difference(
            Aspect.DECISION,
            {Standing.HIDDEN, Standing.BESIDE},
            {Operation.DELETE},
            "DELETE of what is not there succeeds, as the protocol wants, and deletes nothing",
        ),
        Difference(Aspect.READS, {Standing.READ_ONLY}, {Operation.COPY}, "the file is opened before the write of its copy is refused"),
        Difference(Aspect.DECISION, {Standing.SPENT}, {Operation.MOVE}, "a copy costs budget, which a move does not"),
        Difference(Aspect.FILES, {Standing.SPENT}, {Operation.MOVE}, "a copy costs budget, which a move does not"),
        Difference(Aspect.READS, {Standing.ALLOWED, Standing.READ_ONLY}, {Operation.MOVE}, "a copy reads the file"),
        Difference(
            Aspect.RECORD, {Standing.READ_ONLY, Standing.REFUSED}, {Operation.MOVE}, "what is refused is the copy, not the loss of the name"
        ),
        *append_by_reading(),
    ),
    # A file is read and written once more to append to it, and once more to move it.
    more={kind: 2 * amount for kind, amount in MORE_BY_APPENDING.items()},
)
