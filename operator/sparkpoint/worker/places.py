"""Which locations make sense on a command line. Whether anything is there is another question."""

from urllib.parse import urlsplit

__all__ = ["problem_with_endpoint", "problem_with_place"]

_HINT = "give an absolute path or s3://bucket/prefix"


def problem_with_place(text: str) -> str:
    """What to do about a location that cannot be one; empty if it can."""
    if "\0" in text:
        return _HINT
    scheme, separator, rest = text.partition(":")
    if not separator or "/" in scheme:
        return _problem_with_path(text)
    match scheme.lower():
        case "file":
            return _problem_with_path(rest.removeprefix("//"))
        case "s3" | "s3a":
            return _problem_with_bucket(text)
        case _:
            return _HINT


def _problem_with_path(path: str) -> str:
    if not path.startswith("/"):
        return _HINT
    return _problem_with_parts(path)


def _problem_with_bucket(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return _HINT
    if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        return _HINT
    return _problem_with_parts(parts.path)


def _problem_with_parts(path: str) -> str:
    """A path that climbs up again means another place than it seems to."""
    if any(part in (".", "..") for part in path.split("/")):
        return "leave out '.' and '..'"
    return ""


def problem_with_endpoint(text: str) -> str:
    """What to do about a URL that cannot be that of a server; empty if it can."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    return "" if usable else "give a URL such as https://s3.example.com"
