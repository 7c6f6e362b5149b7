"""Words that the resources are made of: durations, sizes, places, names.

Each is a string in the resource, with a pattern that the API server and Python check alike. Every
pattern comes with the words that a person is told if a text does not match it.
"""

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema, core_schema

__all__ = [
    "EXPECTED",
    "LONGEST_JOB_NAME",
    "Argument",
    "Artifact",
    "Count",
    "Cpu",
    "Digest",
    "Duration",
    "EnvName",
    "EnvValue",
    "FieldPath",
    "Image",
    "JobName",
    "Location",
    "Memory",
    "MountPath",
    "Nonce",
    "ObjectKey",
    "ObjectName",
    "OnDelete",
    "QueryName",
    "Region",
    "RepositoryName",
    "S3Location",
    "ScriptPath",
    "SparkVersion",
    "SubPath",
    "Text",
    "Trigger",
    "Url",
    "Verification",
    "Word",
    "expected",
]

EXPECTED: Final[dict[str, str]] = {}
"""Pattern -> what is expected, in words; filled by the definitions below."""


def expected(pattern: str, words: str) -> str:
    """The pattern itself, once it is known what to say if a text does not match it."""
    EXPECTED[pattern] = words
    return pattern


def _shaped(pattern: str, words: str, *, longest: int) -> StringConstraints:
    return StringConstraints(pattern=expected(pattern, words), max_length=longest)


class Word(str):
    """A string with a pattern and a meaning; what does not match cannot be made."""

    __slots__ = ()
    pattern: ClassVar[str]
    longest: ClassVar[int]

    def __new__(cls, text: str) -> Self:
        if len(text) > cls.longest or not re.fullmatch(cls.pattern, text):
            raise ValueError(f"{text[:40]!r} is not {EXPECTED[cls.pattern]}")
        return super().__new__(cls, text)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        text = core_schema.str_schema(pattern=cls.pattern, max_length=cls.longest)
        return core_schema.no_info_after_validator_function(cls, text)


def _descending(units: tuple[str, ...]) -> str:
    """One unit at least, each smaller than the one before: an option for each would allow none."""
    number = "[0-9]{1,5}"
    rest = [f"({number}{unit})?" for unit in units]
    starts = [number + unit + "".join(rest[at + 1 :]) for at, unit in enumerate(units)]
    return f"^({'|'.join(starts)})$"


class Duration(Word):
    """A time span as people write it: `30s`, `5m`, `1h30m`, `7d`, `500ms`."""

    __slots__ = ()
    pattern = expected(_descending(("d", "h", "m", "s", "ms")), "a duration such as 30s or 1h30m")
    longest = 32
    _UNITS: ClassVar[dict[str, timedelta]] = {
        "d": timedelta(days=1),
        "h": timedelta(hours=1),
        "m": timedelta(minutes=1),
        "s": timedelta(seconds=1),
        "ms": timedelta(milliseconds=1),
    }

    @property
    def timedelta(self) -> timedelta:
        """What it means."""
        parts = re.findall(r"([0-9]+)(ms|[dhms])", self)
        return sum((int(number) * self._UNITS[unit] for number, unit in parts), timedelta())

    @property
    def seconds(self) -> float:
        """What it means, in seconds."""
        return self.timedelta.total_seconds()


class Memory(Word):
    """Memory as Spark writes it (`512m`, `2g`) or as Kubernetes does (`512Mi`, `2Gi`).

    Always powers of 1024. Kubernetes' decimal `M` and `G` are refused: Spark reads `1G` as 1 GiB.
    """

    __slots__ = ()
    pattern = expected(
        r"^[1-9][0-9]{0,8}([kmgt]|[KMGT]i)$", "an amount of memory such as 512m, 2g or 2Gi"
    )
    longest = 12

    @property
    def bytes(self) -> int:
        """What it means."""
        digits = self.rstrip("kmgtKMGTi")
        unit = self[len(digits)].lower()
        return int(digits) << 10 * ("kmgt".index(unit) + 1)

    @property
    def mebibytes(self) -> int:
        """Rounded up: what is asked for is never cut short."""
        return -(-self.bytes // 1024**2)


class OnDelete(StrEnum):
    """What becomes of data when the resource that it belongs to is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class Trigger(StrEnum):
    """Who asked for a savepoint."""

    MANUAL = "Manual"
    PERIODIC = "Periodic"
    UPGRADE = "Upgrade"
    FINAL = "Final"
    DRILL = "Drill"


class Verification(StrEnum):
    """How a savepoint is checked once it is complete."""

    SKIP = "Skip"
    CONTENT = "Content"
    """Every object is read again and compared with its digest; the file set is complete."""
    DEEP = "Deep"
    """And Spark loads the state."""


LONGEST_JOB_NAME: Final = 40
"""`<job>-e9999-a9999-exec-99999` must fit into the 63 characters of a host name."""

Count = Annotated[int, Field(ge=0)]
Nonce = Annotated[int, Field(ge=0, le=2**31 - 1)]

Argument = Annotated[str, StringConstraints(max_length=8192)]
Artifact = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
EnvValue = Annotated[str, StringConstraints(max_length=32768)]
FieldPath = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Image = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Text = Annotated[str, StringConstraints(max_length=4096)]

Cpu = Annotated[
    str,
    _shaped(
        r"^([1-9][0-9]{0,5}m|[0-9]{1,4}(\.[0-9]{1,3})?)$",
        "an amount of CPU such as 500m or 1.5",
        longest=12,
    ),
]
Digest = Annotated[str, _shaped(r"^[0-9a-f]{64}$", "64 lower-case hexadecimal digits", longest=64)]
EnvName = Annotated[
    str,
    _shaped(
        r"^[-._a-zA-Z][-._a-zA-Z0-9]*$",
        "the name of a variable: letters, digits, '_', '-' and '.', beginning with no digit",
        longest=253,
    ),
]
JobName = Annotated[
    str,
    _shaped(
        r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
        "the name of a job: lower-case letters, digits and '-', beginning with a letter",
        longest=LONGEST_JOB_NAME,
    ),
]
ObjectKey = Annotated[
    str, _shaped(r"^[-._a-zA-Z0-9]+$", "a key: letters, digits, '-', '_' and '.'", longest=253)
]
"""A key in a ConfigMap or a Secret."""
ObjectName = Annotated[
    str,
    _shaped(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
        longest=253,
    ),
]
QueryName = Annotated[
    str,
    _shaped(
        r"^[^\s\x00-\x1f]([^\x00-\x1f]*[^\s\x00-\x1f])?$",
        "the name of a query: one line, with no space at its ends",
        longest=253,
    ),
]
RepositoryName = Annotated[
    str,
    _shaped(
        r"^[a-z0-9]([-a-z0-9._]{0,126}[a-z0-9])?$",
        "a name in a repository: up to 128 lower-case letters, digits, '-', '.' and '_'",
        longest=128,
    ),
]
"""The name of a namespace, a job, a savepoint or a tag, as the repository has them."""
Region = Annotated[
    str, _shaped(r"^[a-z0-9][-a-z0-9]*$", "a region such as eu-central-1", longest=64)
]
SparkVersion = Annotated[
    str, _shaped(r"^[0-9]+\.[0-9]+\.[0-9]+$", "a version such as 4.3.0", longest=32)
]
Url = Annotated[
    str, _shaped(r"^https?://[^\s/]+(/\S*)?$", "a URL such as https://s3.example.com", longest=1024)
]

_BUCKET = r"s3a?://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]"
# Neither `.` nor `..`: what lies inside of what must be plain to see, and keys have no way up.
_PART: Final = r"([^\s/.][^\s/]*|\.[^\s/.][^\s/]*|\.\.[^\s/]+)"
Location = Annotated[
    str,
    _shaped(
        rf"^({_BUCKET}|/{_PART})(/{_PART})*$",
        "an absolute path on a volume, or s3://bucket/prefix, without '.' and '..' in it and "
        "without a '/' at the end",
        longest=1024,
    ),
]
S3Location = Annotated[
    str, _shaped(rf"^{_BUCKET}/\S+$", "of the form s3://bucket/key", longest=1024)
]
MountPath = Annotated[
    str, _shaped(r"^(/[^\s:/]+)+$", "an absolute path without a '/' at its end", longest=512)
]
ScriptPath = Annotated[str, _shaped(r"^/\S+$", "an absolute path in the image", longest=1024)]
SubPath = Annotated[str, _shaped(r"^[^/\s]\S*$", "a path relative to the volume", longest=512)]
