"""The failures of S3 in Amazon's words: code, HTTP status and standard message, and one code for every kind. Pure.

1. Clients decide by the code, so a code here is one that Amazon documents, with the status it documents.
2. The table of kinds is total: a kind without a code is an error found by a test.
3. What a lease cannot see is `Kind.NOT_FOUND` and so ``NoSuchKey``, whatever hides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interfaces.faults import Kind


@dataclass(frozen=True, slots=True)
class Failure:
    """One of Amazon's error codes: its HTTP status, and what it says when nothing more exact is known."""

    status: int
    message: str


CODES: Mapping[str, Failure] = {
    "AccessDenied": Failure(403, "Access Denied"),
    "AccessForbidden": Failure(403, "CORSResponse: This CORS request is not allowed."),
    "AuthorizationHeaderMalformed": Failure(400, "The authorization header that you provided is not valid."),
    "AuthorizationQueryParametersError": Failure(400, "The authorization query parameters that you provided are not valid."),
    "BadRequest": Failure(400, "Bad Request"),
    "BadDigest": Failure(400, "The Content-MD5 or checksum value that you specified did not match what the server received."),
    "BucketAlreadyExists": Failure(409, "The requested bucket name is not available. Specify a different name and try again."),
    "BucketAlreadyOwnedByYou": Failure(409, "The bucket that you tried to create already exists, and you own it."),
    "BucketNotEmpty": Failure(409, "The bucket that you tried to delete is not empty."),
    "ConditionalRequestConflict": Failure(409, "A conflicting operation occurred. Fetch the object's ETag and retry the upload."),
    "EntityTooLarge": Failure(400, "Your proposed upload exceeds the maximum allowed object size."),
    "EntityTooSmall": Failure(400, "Your proposed upload is smaller than the minimum allowed object size."),
    "ExpiredToken": Failure(400, "The provided token has expired."),
    "IllegalVersioningConfigurationException": Failure(400, "The versioning configuration specified in the request is not valid."),
    "IncompleteBody": Failure(400, "You did not provide the number of bytes specified by the Content-Length HTTP header."),
    "InternalError": Failure(500, "An internal error occurred. Try again."),
    "InvalidAccessKeyId": Failure(403, "The access key ID that you provided does not exist in our records."),
    "InvalidArgument": Failure(400, "Invalid Argument"),
    "InvalidBucketName": Failure(400, "The specified bucket is not valid."),
    "InvalidBucketState": Failure(409, "The request is not valid for the current state of the bucket."),
    "InvalidChunkSizeError": Failure(400, "Only the last chunk is allowed to have a size less than 8192 bytes"),
    "InvalidDigest": Failure(400, "The Content-MD5 or checksum value that you specified is not valid."),
    "InvalidEncryptionAlgorithmError": Failure(400, "The encryption request that you specified is not valid. The valid value is AES256."),
    "InvalidObjectState": Failure(403, "The operation is not valid for the current state of the object."),
    "InvalidPart": Failure(
        400, "One or more of the specified parts could not be found. The part might not have been uploaded, or its entity tag differs."
    ),
    "InvalidPartNumber": Failure(416, "The requested partnumber is not satisfiable"),
    "InvalidPartOrder": Failure(
        400, "The list of parts was not in ascending order. The parts list must be specified in order by part number."
    ),
    "InvalidRange": Failure(416, "The requested range is not satisfiable"),
    "InvalidRequest": Failure(400, "Invalid Request"),
    "InvalidSecurity": Failure(403, "The provided security credentials are not valid."),
    "InvalidStorageClass": Failure(400, "The storage class that you specified is not valid."),
    "InvalidTag": Failure(400, "The tag provided was not a valid tag."),
    "InvalidToken": Failure(400, "The provided token is malformed or otherwise not valid."),
    "InvalidURI": Failure(400, "The specified URI couldn't be parsed."),
    "KeyTooLongError": Failure(400, "Your key is too long."),
    "MalformedACLError": Failure(400, "The ACL that you provided was not well formed or did not validate against our published schema."),
    "MalformedPOSTRequest": Failure(400, "The body of your POST request is not well-formed multipart/form-data."),
    "MalformedPolicy": Failure(400, "Your policy contains a principal or statement that is not valid."),
    "MalformedXML": Failure(400, "The XML that you provided was not well formed or did not validate against our published schema."),
    "MaxMessageLengthExceeded": Failure(400, "Your request was too large."),
    "MetadataTooLarge": Failure(400, "Your metadata headers exceed the maximum allowed metadata size."),
    "MethodNotAllowed": Failure(405, "The specified method is not allowed against this resource."),
    "MissingContentLength": Failure(411, "You must provide the Content-Length HTTP header."),
    "MissingRequestBodyError": Failure(400, "Request body is empty."),
    "MissingSecurityHeader": Failure(400, "Your request was missing a required header."),
    "NoSuchBucket": Failure(404, "The specified bucket does not exist"),
    "NoSuchBucketPolicy": Failure(404, "The bucket policy does not exist"),
    "NoSuchCORSConfiguration": Failure(404, "The CORS configuration does not exist"),
    "NoSuchKey": Failure(404, "The specified key does not exist."),
    "NoSuchLifecycleConfiguration": Failure(404, "The lifecycle configuration does not exist"),
    "NoSuchPublicAccessBlockConfiguration": Failure(404, "The public access block configuration was not found"),
    "NoSuchTagSet": Failure(404, "The TagSet does not exist"),
    "NoSuchUpload": Failure(
        404, "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."
    ),
    "NoSuchVersion": Failure(404, "The specified version does not exist."),
    "NoSuchWebsiteConfiguration": Failure(404, "The specified bucket does not have a website configuration"),
    "NotImplemented": Failure(501, "A header or query you provided implies functionality that is not implemented."),
    "NotModified": Failure(304, "Not Modified"),
    "ObjectLockConfigurationNotFoundError": Failure(404, "Object Lock configuration does not exist for this bucket"),
    "OperationAborted": Failure(409, "A conflicting conditional operation is currently in progress against this resource. Try again."),
    "OwnershipControlsNotFoundError": Failure(404, "The bucket ownership controls were not found"),
    "PreconditionFailed": Failure(412, "At least one of the pre-conditions you specified did not hold"),
    "ReplicationConfigurationNotFoundError": Failure(404, "The replication configuration was not found"),
    "RequestHeaderSectionTooLarge": Failure(400, "Your request header section exceeds the maximum allowed request header section size."),
    "RequestTimeTooSkewed": Failure(403, "The difference between the request time and the server's time is too large."),
    "RequestTimeout": Failure(400, "Your socket connection to the server was not read from or written to within the timeout period."),
    "ServerSideEncryptionConfigurationNotFoundError": Failure(404, "The server side encryption configuration was not found"),
    "ServiceUnavailable": Failure(503, "Service is unable to handle request."),
    "SignatureDoesNotMatch": Failure(
        403,
        "The request signature that the server calculated does not match the signature you provided. Check your key and signing method.",
    ),
    "SlowDown": Failure(503, "Please reduce your request rate."),
    "TooManyBuckets": Failure(400, "You have attempted to create more buckets than are allowed for this account."),
    "UnexpectedContent": Failure(400, "This request contains unsupported content."),
    "XAmzContentChecksumMismatch": Failure(400, "The provided checksum does not match what was computed."),
    "XAmzContentSHA256Mismatch": Failure(400, "The provided 'x-amz-content-sha256' header does not match what was computed."),
}

KINDS: Mapping[Kind, str] = {
    Kind.INVALID: "InvalidArgument",
    Kind.UNAUTHENTICATED: "InvalidAccessKeyId",
    Kind.THROTTLED: "SlowDown",
    Kind.DENIED: "AccessDenied",
    Kind.READ_ONLY: "AccessDenied",
    Kind.GATED: "AccessDenied",
    Kind.NOT_FOUND: "NoSuchKey",
    Kind.EXISTS: "OperationAborted",
    Kind.NOT_A_DIRECTORY: "InvalidArgument",
    Kind.IS_A_DIRECTORY: "InvalidArgument",
    Kind.NOT_EMPTY: "BucketNotEmpty",
    Kind.INTO_ITSELF: "InvalidRequest",
    Kind.NAME_TOO_LONG: "KeyTooLongError",
    Kind.BUDGET: "AccessDenied",
    Kind.NO_SPACE: "ServiceUnavailable",
    Kind.TOO_LARGE: "EntityTooLarge",
    Kind.CONFLICT: "ConditionalRequestConflict",
    Kind.PRECONDITION: "PreconditionFailed",
    Kind.KEY_REUSED: "InvalidRequest",
    Kind.EXPIRED: "ExpiredToken",
    Kind.REVOKED: "AccessDenied",
    Kind.UNSUPPORTED: "NotImplemented",
    Kind.NOT_PERMITTED: "AccessDenied",
    Kind.NO_ATTRIBUTE: "NoSuchKey",
    Kind.STALE: "ConditionalRequestConflict",
    Kind.LOOP: "InvalidRequest",
    Kind.TOO_MANY_LINKS: "InvalidRequest",
    Kind.BUSY: "SlowDown",
    Kind.UNAVAILABLE: "ServiceUnavailable",
    Kind.CORRUPT: "InternalError",
    Kind.INTERNAL: "InternalError",
}
"""What S3 calls each kind of failure when the door knows nothing more exact."""

KIND_OF_STATUS: Mapping[int, Kind] = {
    304: Kind.PRECONDITION,
    403: Kind.DENIED,
    404: Kind.NOT_FOUND,
    405: Kind.NOT_PERMITTED,
    409: Kind.CONFLICT,
    412: Kind.PRECONDITION,
    500: Kind.INTERNAL,
    501: Kind.UNSUPPORTED,
    503: Kind.UNAVAILABLE,
}
"""The kind behind a failure that the door itself names; every other status is `Kind.INVALID`."""
