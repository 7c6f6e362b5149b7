"""Where bytes live: a directory or an S3 bucket, behind one small interface.

Nothing here knows what a checkpoint or a savepoint is.
"""

from urllib.parse import unquote, urlsplit

from sparkpoint.storage._files import chunks_of
from sparkpoint.storage._root import TEMPORARY
from sparkpoint.storage.directory import DirectoryStore
from sparkpoint.storage.errors import BadLocationError
from sparkpoint.storage.interface import Entry, Store, Taken

__all__ = ["TEMPORARY", "DirectoryStore", "Entry", "Store", "Taken", "chunks_of", "open_store"]


def open_store(uri: str, endpoint_url: str | None = None) -> Store:
    """The store at a plain path, a `file:` URI, or `s3://bucket/prefix` (`s3a:` is the same).

    Nothing is read or written yet: a missing directory is an empty store, a missing bucket shows on
    first use. `endpoint_url` is for S3 servers other than Amazon's.
    """
    if "\0" in uri or not uri.strip():
        raise BadLocationError(f"{uri!r} is not a location: give a path or s3://bucket/prefix.")
    scheme, separator, rest = uri.partition(":")
    if not separator or "/" in scheme:
        return DirectoryStore(uri)
    match scheme.lower():
        case "file":
            return DirectoryStore(_file_path(uri, rest))
        case "s3" | "s3a":
            return _open_bucket(uri, endpoint_url)
        case _ if "//" not in rest:
            return DirectoryStore(uri)
        case _:
            raise BadLocationError(
                f"{uri!r} has the unknown scheme {scheme!r}: give a path, file:/path or s3://bucket/prefix."
            )


def _file_path(uri: str, rest: str) -> str:
    parts = urlsplit(f"file:{rest}")
    if parts.netloc not in ("", "localhost"):
        raise BadLocationError(f"{uri!r} names another host: write file:///path.")
    path = rest.removeprefix(f"//{parts.netloc}") if rest.startswith("//") else rest
    if not path.startswith("/"):
        raise BadLocationError(f"{uri!r} is relative: a file: URI needs an absolute path.")
    # Java writes file:/a b unescaped and file:///a%20b escaped, so only the second form is
    # unquoted.
    path = unquote(path) if rest.startswith("//") else path
    if "\0" in path:
        raise BadLocationError(f"{uri!r} is not a location: no path has a NUL character in it.")
    return path


def _open_bucket(uri: str, endpoint_url: str | None) -> Store:
    # boto3 takes a third of a second to import: only who needs it pays.
    from sparkpoint.storage.s3 import S3Store, connect

    if endpoint_url and not endpoint_url.lower().startswith(("http://", "https://")):
        raise BadLocationError(
            f"The endpoint URL {endpoint_url!r} of {uri} is none: write http:// or https:// in "
            f"front, such as http://{endpoint_url.rsplit('//', 1)[-1]}."
        )
    parts = urlsplit(uri)
    if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadLocationError(f"{uri!r} is not of the form s3://bucket/prefix.")
    return S3Store(connect(uri, endpoint_url), bucket=parts.netloc, prefix=parts.path.strip("/"))
