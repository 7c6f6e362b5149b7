"""Reading a command line: each task asks for what it knows, and every mistake is told at once.

What nobody asked for is a mistake, too. argparse would end at the first one.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkpoint.savepoint.errors import BadNameError
from sparkpoint.savepoint.names import check_name
from sparkpoint.worker.errors import RefusedError
from sparkpoint.worker.places import problem_with_endpoint, problem_with_place

__all__ = ["COMMON", "Given"]

COMMON = frozenset({"--termination-log"})
"""Options of every task; see process.py."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LARGEST = 2**63 - 1
_LONGEST = 4096
"""Characters that a manifest takes for a text."""


class Given:
    """What stands on the command line behind the task.

    The readers return something of the right type whatever was given; `check` tells whether it may
    be used.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._problems: list[str] = []
        self._known = set(COMMON)
        self._values: dict[str, list[str | None]] = {}
        self._rest: tuple[str, ...] = ()
        self._read(arguments)

    def _read(self, arguments: Sequence[str]) -> None:
        """Split into options and values. One that begins with `--` is written `--name=value`."""
        waiting: str | None = None
        for index, argument in enumerate(arguments):
            if argument == "--":
                self._values["--"], self._rest = [None], tuple(arguments[index + 1 :])
                return
            name, equals, value = argument.partition("=")
            if argument.startswith("--"):
                self._values.setdefault(name, []).append(value if equals else None)
                waiting = None if equals else name
            elif waiting is not None:
                self._values[waiting][-1] = argument
                waiting = None
            else:
                self.refuse(f"{argument!r} belongs to no option")

    def refuse(self, problem: str) -> None:
        """Remember a mistake."""
        self._problems.append(problem)

    def check(self, usage: str) -> None:
        """RefusedError with every mistake, if there is one."""
        unknown = [f"{name} is not an option" for name in self._values if name not in self._known]
        if unknown or self._problems:
            raise RefusedError([*unknown, *self._problems], usage)

    def has(self, name: str) -> bool:
        """Whether the option was given at all."""
        self._known.add(name)
        return name in self._values

    def rest(self) -> tuple[str, ...]:
        """Whatever follows `--`."""
        self._known.add("--")
        return self._rest

    def flag(self, name: str) -> bool:
        """An option without value."""
        given = self.has(name)
        if given and any(value is not None for value in self._values[name]):
            self.refuse(f"{name} takes no value")
        return given

    def many(self, name: str) -> tuple[str, ...]:
        """The values of an option that may be repeated."""
        if not self.has(name):
            return ()
        values = [value for value in self._values[name] if value and value.strip()]
        if len(values) < len(self._values[name]):
            self.refuse(f"{name} has no value")
        if any(len(value) > _LONGEST for value in values):
            self.refuse(f"{name} is longer than {_LONGEST} characters")
        return tuple(values)

    def optional(self, name: str) -> str | None:
        """The value of an option that may be absent."""
        values = self.many(name)
        if len(values) > 1:
            self.refuse(f"{name} is given {len(values)} times: give it once")
        return values[0] if values else None

    def text(self, name: str) -> str:
        """The value of an option that must be there."""
        value = self.optional(name)
        if value is None and name not in self._values:
            self.refuse(f"{name} is missing")
        return value or ""

    def number(self, name: str) -> int:
        """A whole number from 0 upwards."""
        return self._number(name, self.text(name))

    def numbers(self, name: str) -> tuple[int, ...]:
        """The same, any number of times."""
        return tuple(self._number(name, text) for text in self.many(name))

    def optional_number(self, name: str, default: int) -> int:
        """The same, with a default."""
        text = self.optional(name)
        return default if text is None else self._number(name, text)

    def _number(self, name: str, text: str) -> int:
        if not text:
            return 0
        if not (text.isascii() and text.isdecimal() and int(text) <= _LARGEST):
            self.refuse(f"{name} is {text!r}: give a whole number from 0 upwards")
            return 0
        return int(text)

    def job(self) -> tuple[str, str]:
        """`--job NAMESPACE/NAME`."""
        text = self.text("--job")
        namespace, _, name = text.partition("/")
        if text and not (self._is_name(namespace) and self._is_name(name)):
            self.refuse(
                f"--job is {text!r}: give NAMESPACE/NAME, each of lower-case letters, digits, "
                "'-', '.' and '_'"
            )
        return namespace, name

    def name(self, option: str) -> str:
        """A name in a repository."""
        return self._checked_name(option, self.text(option))

    def optional_name(self, option: str) -> str | None:
        """The same, if it is given."""
        text = self.optional(option)
        return None if text is None else self._checked_name(option, text)

    def names(self, option: str) -> tuple[str, ...]:
        """The same, any number of times."""
        return tuple(self._checked_name(option, text) for text in self.many(option))

    def _checked_name(self, option: str, text: str) -> str:
        if text and not self._is_name(text):
            self.refuse(
                f"{option} is {text[:140]!r}: give up to 128 lower-case letters, digits, '-', '.' "
                "and '_', with a letter or digit at both ends"
            )
        return text

    @staticmethod
    def _is_name(text: str) -> bool:
        try:
            check_name(text, "")
        except BadNameError:
            return False
        return True

    def digest(self, option: str) -> str | None:
        """A savepoint's id, if it is given."""
        text = self.optional(option)
        if text is not None and not _DIGEST.fullmatch(text):
            self.refuse(f"{option} is {text[:80]!r}: give all 64 lower-case hexadecimal digits")
        return text

    def place(self, option: str) -> str:
        """A location that must be there."""
        return self._checked_place(option, self.text(option))

    def optional_place(self, option: str) -> str | None:
        """The same, if it is given."""
        text = self.optional(option)
        return None if text is None else self._checked_place(option, text)

    def _checked_place(self, option: str, text: str) -> str:
        if text and (problem := problem_with_place(text)):
            self.refuse(f"{option} is {text[:200]!r}: {problem}")
        return text

    def endpoint(self, option: str = "--endpoint-url") -> str | None:
        """The S3 server, if it is not Amazon's; the environment says which by default."""
        found = [value for name in _ENDPOINTS if (value := self._environment.get(name))]
        text = self.optional(option) or (found[0] if found else None)
        if text is not None and (problem := problem_with_endpoint(text)):
            self.refuse(f"{option} is {text[:200]!r}: {problem}")
        return text

    def path(self, option: str) -> Path:
        """A path of this pod, from the root on."""
        text = self.text(option)
        if text and not text.startswith("/"):
            self.refuse(f"{option} is {text[:200]!r}: give an absolute path")
        return Path(text)
