"""Secrets in texts: what is known to be one is blotted out before a text leaves the process.

Known are values by the names that they have: environment variables and properties of Spark. A
secret that has no such name, or was changed on its way into a text, is not recognised: this is the
last line of defence, and no reason to print secrets.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["BLOT", "NOTHING_SECRET", "Redaction", "is_sensitive"]

BLOT: Final = "[redacted]"
_SENSITIVE: Final = re.compile(
    r"secret|passw(or)?d|passphrase|token|credential|(access|private|api|account)[._-]?key", re.I
)
_BEGIN: Final = r"(^|[._-]|(?-i:(?<=[a-z0-9])(?=[A-Z])))"
"""Of a word in STORAGE_KEY and storageKey."""
_KEY: Final = re.compile(
    rf"({_BEGIN}|aes|auth|cryption|hmac|jwt|master|root|sas|shared|signing|ssl|storage"
    r"|subscription|tls)keys?$",
    re.I,
)
"""The last word is `key`, or one that ends like MASTERKEY; and not monkey."""
_OF_ROWS: Final = re.compile(
    rf"{_BEGIN}((dedup|foreign|join|merge|partition|public|record|row|sort)[._-]?keys?"
    r"|(bucket|business|cluster(ing)?|dedupe|deduplication|group(ing)?|natural|primary|unique)"
    r"[._-]?keys)$",
    re.I,
)
"""A key that opens nothing. PRIMARY_KEY does: so Azure calls one of two. Several are columns."""
_HARMLESS: Final = re.compile(
    r"(file|path|dir|directory|provider|class|type|enabled|name|renewer)s?$", re.I
)
"""Where a secret is, or how it is come by, is none."""
_SHORTEST: Final = 6
"""Characters: what is shorter is found in every other word."""
_TEXTS: Final = frozenset({"message", "note", "problems", "remedy"})
"""Fields of documents that hold sentences. Names and states are never touched: whoever reads them
goes by them."""


def is_sensitive(name: str) -> bool:
    """Whether a variable or a property of this name holds a secret."""
    if _SENSITIVE.search(name):
        return not _HARMLESS.search(name)
    return bool(_KEY.search(name)) and not _OF_ROWS.search(name)


class Redaction:
    """Blots out these values."""

    def __init__(self, values: Iterable[str]) -> None:
        known = {value for value in values if len(value) >= _SHORTEST}
        # As it looks inside of JSON, too; the longest first, as one may be part of another.
        known |= {json.dumps(value)[1:-1] for value in known}
        self._values = tuple(sorted(known, key=len, reverse=True))

    @classmethod
    def of(cls, named: Mapping[str, str]) -> "Redaction":
        """Those of these variables or properties that are secrets by their names."""
        return cls(value for name, value in named.items() if is_sensitive(name))

    def text(self, text: str) -> str:
        """The text without them."""
        for value in self._values:
            text = text.replace(value, BLOT)
        return text

    def document(self, value: Any) -> Any:
        """A document as JSON, with its sentences without them."""
        return self._walked(value) if self._values else value

    def _walked(self, value: Any, *, sentence: bool = False) -> Any:
        if isinstance(value, dict):
            return {k: self._walked(each, sentence=k in _TEXTS) for k, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._walked(each, sentence=sentence) for each in value]
        return self.text(value) if sentence and isinstance(value, str) else value


NOTHING_SECRET: Final = Redaction(())
"""Where no spec is known that could hold a secret."""
