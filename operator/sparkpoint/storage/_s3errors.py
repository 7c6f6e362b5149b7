"""What an S3 server's and boto3's errors mean, in our words."""

import contextlib
from collections.abc import Iterator

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.exceptions import ConnectionError as BotoConnectionError
from urllib3.exceptions import HTTPError

from sparkpoint.storage.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    BadLocationError,
    ChangedError,
    FullError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)

__all__ = ["code_of", "explained", "was_retried"]

_MISSING_BUCKET = "its bucket does not exist at this endpoint; check the name, or create it."
_CREDENTIALS = (
    "access was refused: the key is unknown to this endpoint or its secret is wrong. Check "
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_PROFILE, and the endpoint URL."
)
_POLICY = "access was refused: these credentials lack the permission for it, or are wrong."

_CODES: dict[str, tuple[type[StorageError], str]] = {
    "NoSuchKey": (NotFoundError, "does not exist."),
    "404": (NotFoundError, "does not exist."),
    "NotFound": (NotFoundError, "does not exist."),
    "NoSuchUpload": (NotFoundError, "does not exist: the upload was ended."),
    "NoSuchBucket": (BadLocationError, _MISSING_BUCKET),
    "InvalidBucketName": (BadLocationError, "this bucket name is not allowed."),
    "PermanentRedirect": (BadLocationError, "its bucket is in another region; set AWS_REGION."),
    "AuthorizationHeaderMalformed": (BadLocationError, "the region is wrong; set AWS_REGION."),
    "KeyTooLongError": (BadLocationError, "has too long a name for S3."),
    "InvalidAccessKeyId": (AccessDeniedError, _CREDENTIALS),
    "SignatureDoesNotMatch": (AccessDeniedError, _CREDENTIALS),
    "ExpiredToken": (AccessDeniedError, "access was refused: the session token has expired."),
    "InvalidToken": (AccessDeniedError, "access was refused: the session token is wrong."),
    "AccessDenied": (AccessDeniedError, _POLICY),
    "403": (AccessDeniedError, _POLICY),
    "RequestTimeTooSkewed": (AccessDeniedError, "this host's clock is wrong by too much."),
    "PreconditionFailed": (ChangedError, "is not the version that was expected."),
    "412": (ChangedError, "is not the version that was expected."),
    "NotImplemented": (UnsupportedError, "the server lacks an operation that this needs."),
    "QuotaExceeded": (FullError, "cannot be written: the quota is used up."),
    "XMinioStorageFull": (FullError, "cannot be written: the server has no space left."),
    "InsufficientStorage": (FullError, "cannot be written: the server has no space left."),
    "507": (FullError, "cannot be written: the server has no space left."),
}


def code_of(error: ClientError) -> str:
    """The server's own word for what went wrong."""
    return str(error.response.get("Error", {}).get("Code", ""))


def was_retried(error: ClientError) -> bool:
    """Whether boto3 sent the request more than once, so that an earlier one may have had effect."""
    metadata = error.response.get("ResponseMetadata", {})
    return int(metadata.get("RetryAttempts", 0)) > 0


@contextlib.contextmanager
def explained(root: str, path: str = "", *, creating: bool = False) -> Iterator[None]:
    """Turn boto3's errors into the StorageError that says what to do."""
    where = f"{root}/{path}" if path else root
    try:
        yield
    except ClientError as error:
        raise _of_client(error, where, creating=creating) from error
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
        sentence = "cannot be reached without credentials. Set AWS_ACCESS_KEY_ID and the like."
        raise AccessDeniedError(f"{where} {sentence} ({error})") from error
    except (
        ProfileNotFound,
        NoRegionError,
        InvalidRegionError,
        ParamValidationError,
        ValueError,
    ) as error:
        raise BadLocationError(f"{where} cannot be reached as configured: {error}") from error
    except (BotoConnectionError, HTTPClientError, HTTPError) as error:
        hint = "Check the endpoint URL and that the server is up; then run this again."
        raise UnavailableError(f"{where} did not answer: {error}. {hint}") from error
    except BotoCoreError as error:
        raise UnavailableError(f"{where} could not be used: {error}") from error


def _of_client(error: ClientError, where: str, *, creating: bool) -> StorageError:
    code = code_of(error)
    if creating and code in ("PreconditionFailed", "412"):
        return AlreadyExistsError(f"{where} exists already.")
    if code in _CODES:
        kind, sentence = _CODES[code]
        return kind(f"{where}: {sentence}" if kind is not NotFoundError else f"{where} {sentence}")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    message = error.response.get("Error", {}).get("Message", "")
    kind = UnavailableError if status >= 500 or status in (408, 409, 429) else StorageError
    return kind(f"{where}: the server answered {status} {code}: {message}")
