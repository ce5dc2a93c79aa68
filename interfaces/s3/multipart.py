"""Uploading in parts: begin, send parts in any order, complete or abort.

1. A part is on stable storage when it is acknowledged; completing joins the parts without sending their bytes again.
2. Completion takes the name at once, under the conditions of its request, and only then are the parts let go.
3. The checksum of the whole is composed of those of its parts, or, for the CRCs, computed from them: no byte is read twice.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace

from interfaces.port import Attach, Attributes, Condition, Workspace
from interfaces.s3.call import Call
from interfaces.s3.checksums import Algorithm, Checksum, combine, composite, find_checksum, parse_algorithm
from interfaces.s3.documents import CompletedPart, parse_completion
from interfaces.s3.faults import S3Fault
from interfaces.s3.keys import check_key
from interfaces.s3.markup import document, tag
from interfaces.s3.payload import BodyPlan, CheckedContent
from interfaces.s3.ranges import read_part_number
from interfaces.s3.reading import Headers, render_version
from interfaces.s3.sealing import CustomerKey, Seal, Span, make_seal, read_key, render_key, require_key, tag_content, turn_content
from interfaces.s3.sidecars import Part, Sidecar, Summary, read_sidecar
from interfaces.s3.storing import FILE_MODE, Draft, Stored, store_object
from interfaces.s3.tree import Place
from interfaces.s3.uploads import Begun, UploadedPart, Uploads
from interfaces.s3.writing import MAX_SINGLE, read_tags, refuse_unsupported, seal_single
from interfaces.web.asgi import Reply
from interfaces.web.bodies import Upload

MIN_PART = 5 << 20
"""Bytes that every part but the last has at least."""

_XML = [("content-type", "application/xml")]


def create_upload(call: Call) -> Reply:
    """Answer ``POST ?uploads``."""
    check_key(call.key)
    refuse_unsupported(call.headers)
    algorithm, composed = _read_checksum_kind(call)
    now = int(call.door.clock() * 1e9)
    id = f"{now:016x}{call.door.entropy(12).hex()}"
    sidecar, tags, sealing = read_sidecar(call.headers), read_tags(call.headers), read_key(call.headers)
    if sealing:
        sidecar = replace(sidecar, seal=make_seal(sealing, call.door.entropy))
    upload = Begun(id, call.key, sidecar, tags, now, call.caller.principal, call.caller.lease, algorithm, composed)
    with call.opened() as workspace:
        Uploads(call, workspace).begin(upload)
    headers = [*_XML, *render_key(sealing)]
    if algorithm:
        headers += [("x-amz-checksum-algorithm", algorithm.value), ("x-amz-checksum-type", "COMPOSITE" if composed else "FULL_OBJECT")]
    body = document("InitiateMultipartUploadResult", tag("Bucket", call.bucket), tag("Key", call.text_key), tag("UploadId", id))
    return Reply(200, headers, body)


async def upload_part(call: Call) -> Reply:
    """Answer ``PUT ?partNumber&uploadId``."""
    number = read_part_number(call.parameters.get("partNumber", ""))
    plan = call.plan()
    if plan.length > MAX_SINGLE:
        raise S3Fault("EntityTooLarge", elements={"ProposedSize": str(plan.length), "MaxSizeAllowed": str(MAX_SINGLE)})
    begun = await call.door.pool.run(find_upload, call)
    plan = plan_part(plan, begun)
    key = demand_upload_key(call, begun)
    span = seal_single(key, plan.length, call.door.entropy).spans[0] if key else None
    upload = Upload(call.request, call.door.limits)
    part = await upload.into(call.door.pool, _stage_part, call, begun, number, plan.open(upload), key, span)
    headers = [("etag", f'"{part.md5}"'), *render_key(key)]
    if begun.algorithm and part.checksum:
        headers.append((begun.algorithm.header, part.checksum))
    return Reply(200, headers)


def complete_upload(call: Call, body: bytes) -> Reply:
    """Answer ``POST ?uploadId``."""
    named = parse_completion(body)
    with call.opened() as workspace:
        uploads = Uploads(call, workspace)
        if (finished := uploads.find_finished(call.parameters["uploadId"], call.key)) is not None:
            return _answer_completion(call, *finished, [])
        begun = uploads.find(call.parameters["uploadId"], call.key)
        key = demand_upload_key(call, begun)
        parts = _choose_parts(named, uploads.parts(begun.id), begun)
        stored = _join(call, workspace, begun, parts)
        uploads.finish(begun.id, begun.key, stored.sidecar, stored.version)
    return _answer_completion(call, stored.sidecar, stored.version, render_key(key))


def abort_upload(call: Call) -> Reply:
    """Answer ``DELETE ?uploadId``."""
    with call.opened() as workspace:
        uploads = Uploads(call, workspace)
        uploads.end(uploads.find(call.parameters["uploadId"], call.key).id)
    return Reply(204)


def find_upload(call: Call) -> Begun:
    """Return the upload a request names. Raises ``NoSuchUpload``."""
    with call.opened() as workspace:
        return Uploads(call, workspace).find(call.parameters["uploadId"], call.key)


def demand_upload_key(call: Call, begun: Begun) -> CustomerKey | None:
    """Return the key that seals the parts of an upload, None for one that is not sealed. Raises ``InvalidRequest``."""
    key = read_key(call.headers)
    require_key(begun.sidecar.seal, key)
    return key


def plan_part(plan: BodyPlan, begun: Begun) -> BodyPlan:
    """Return what the body of a part has to be, with the checksum its upload wants. Raises ``InvalidRequest`` for another one."""
    if begun.algorithm is None:
        return plan
    if plan.algorithm not in (None, begun.algorithm):
        told = plan.algorithm.value.lower() if plan.algorithm else "null"
        raise S3Fault(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {begun.algorithm.value.lower()}, actual checksum Type: {told}",
        )
    return replace(plan, algorithm=begun.algorithm)


def keep_part(call: Call, workspace: Workspace, begun: Begun, part: UploadedPart) -> UploadedPart:
    """Keep a staged part, unless its upload ended while it was on its way."""
    uploads = Uploads(call, workspace)
    try:
        uploads.find(begun.id, call.key)
    except S3Fault:
        workspace.unstage(part.staged)
        raise
    uploads.add(begun.id, part)
    return part


def _answer_completion(call: Call, sidecar: Sidecar, version: str, headers: Headers) -> Reply:
    checksum = sidecar.checksum
    told = (tag(checksum.algorithm.element, checksum.text), tag("ChecksumType", checksum.kind)) if checksum else ()
    answer = document(
        "CompleteMultipartUploadResult",
        tag("Location", f"{call.request.scheme}://{call.headers.get('host', '')}/{call.bucket}/{call.text_key}"),
        tag("Bucket", call.bucket),
        tag("Key", call.text_key),
        f"<ETag>&quot;{sidecar.etag}&quot;</ETag>",
        *told,
    )
    return Reply(200, [*_XML, *render_version(version), *headers], answer)


def _stage_part(call: Call, begun: Begun, number: int, content: CheckedContent, key: CustomerKey | None, span: Span | None) -> UploadedPart:
    with call.opened() as workspace:
        staged = workspace.stage(turn_content(content, key, (span,) if span else ()))
        checksum = content.checksum.text if begun.algorithm and content.checksum else ""
        now, nonce = int(call.door.clock() * 1e9), span.nonce.hex() if span else ""
        part = UploadedPart(number, staged.id, staged.size, tag_content(content.md5, key), checksum, now, nonce)
        return keep_part(call, workspace, begun, part)


def _choose_parts(named: Sequence[CompletedPart], have: Sequence[UploadedPart], begun: Begun) -> list[UploadedPart]:
    """Return the parts a completion names. Raises ``InvalidPart``, ``EntityTooSmall``."""
    by_number = {part.number: part for part in have}
    chosen = [_choose_part(each, by_number.get(each.number), begun) for each in named]
    for part in chosen[:-1]:
        if part.size < MIN_PART:
            told = {"PartNumber": str(part.number), "ETag": part.md5, "ProposedSize": str(part.size), "MinSizeAllowed": str(MIN_PART)}
            raise S3Fault("EntityTooSmall", elements=told)
    return chosen


def _choose_part(named: CompletedPart, part: UploadedPart | None, begun: Begun) -> UploadedPart:
    wrong = part is None or part.md5 != named.etag
    if part is not None and named.checksum and begun.algorithm and named.checksum.text != part.checksum:
        wrong = True
    if wrong or part is None:
        raise S3Fault("InvalidPart", elements={"UploadId": begun.id, "PartNumber": str(named.number), "ETag": named.etag})
    return part


def _join(call: Call, workspace: Workspace, begun: Begun, parts: Sequence[UploadedPart]) -> Stored:
    _check_size(call, sum(part.size for part in parts))
    checksum = _summarize(call, begun, parts)
    md5 = hashlib.md5(b"".join(bytes.fromhex(part.md5) for part in parts), usedforsecurity=False).hexdigest()
    kept = tuple(Part(part.number, part.size, part.checksum) for part in parts)
    sidecar = replace(begun.sidecar, etag=f"{md5}-{len(parts)}", checksum=checksum, parts=kept, seal=_seal_whole(begun, parts))
    ids = [part.staged for part in parts]

    def assemble(place: Place, condition: Condition | None, attach: Attach) -> Attributes:
        return workspace.assemble(place.parent, place.name, FILE_MODE, ids, condition=condition, attach=attach)

    return store_object(call, workspace, Draft(lambda: sidecar, begun.tags), assemble)


def _seal_whole(begun: Begun, parts: Sequence[UploadedPart]) -> Seal | None:
    seal = begun.sidecar.seal
    return replace(seal, spans=tuple(Span(part.size, bytes.fromhex(part.nonce)) for part in parts)) if seal else None


def _check_size(call: Call, size: int) -> None:
    stated = call.headers.get("x-amz-mp-object-size")
    if stated is not None and stated != str(size):
        raise S3Fault(
            "InvalidRequest", f"The provided 'x-amz-mp-object-size' header value {stated} does not match what was computed: {size}"
        )


def _summarize(call: Call, begun: Begun, parts: Sequence[UploadedPart]) -> Summary | None:
    """Return the checksum of the whole. Raises ``BadDigest`` when the completion states another."""
    algorithm = begun.algorithm
    if algorithm is None:
        return None
    digests = [(base64.b64decode(part.checksum), part.size) for part in parts]
    if begun.composite:
        summary = Summary(algorithm, composite(algorithm, [digest for digest, _ in digests]), composite=True)
    else:
        summary = Summary(algorithm, Checksum(algorithm, combine(algorithm, digests)).text)
    stated = call.headers.get(algorithm.header) if begun.composite else _stated(call)
    if stated is not None and stated.partition("-")[0] != summary.text.partition("-")[0]:
        raise S3Fault("BadDigest", f"The {algorithm.value} you specified did not match the calculated checksum.")
    return summary


def _stated(call: Call) -> str | None:
    checksum = find_checksum(call.headers)
    return checksum.text if checksum else None


def _read_checksum_kind(call: Call) -> tuple[Algorithm | None, bool]:
    """Return the algorithm of an upload, and whether its checksum is to be composed of those of the parts."""
    name, kind = call.headers.get("x-amz-checksum-algorithm", ""), call.headers.get("x-amz-checksum-type", "").upper()
    if not name:
        if kind:
            raise S3Fault("InvalidRequest", "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
        return None, False
    algorithm = parse_algorithm(name)
    composed = kind == "COMPOSITE" if kind else algorithm is not Algorithm.CRC64NVME
    if (
        kind not in {"", "COMPOSITE", "FULL_OBJECT"}
        or (composed and algorithm is Algorithm.CRC64NVME)
        or not (composed or algorithm.combines)
    ):
        raise S3Fault("InvalidRequest", f"The {kind} checksum type cannot be used with the {algorithm.value.lower()} checksum algorithm.")
    return algorithm, composed
