"""The command line of the runtime; every mistake is told at once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparkpoint.runtime.errors import RefusedError

__all__ = [
    "AgentOptions",
    "Expectation",
    "FailurePolicy",
    "Guarantee",
    "Options",
    "RehearsalOptions",
    "RestoreOptions",
    "SinkMode",
    "parse_options",
    "termination_log_of",
]

Expectation = Literal["empty", "restored", "any"]
FailurePolicy = Literal["fail", "ignore"]
Guarantee = Literal["exactly-once", "at-least-once"]
SinkMode = Literal["resume", "rewind", "fork"]

USAGE = (
    "python -m sparkpoint.runtime --epoch-dir URI --epoch N --job NAMESPACE/NAME [option…] "
    "-- script.py [argument…]"
)
STOP_BUDGET = 20.0
"""Kubernetes kills after 30 seconds: a batch that is interrupted after these may take 5 more to
give up, and the last word is still to be written."""
REHEARSAL_DEADLINE = 600.0
"""Seconds for the copy, the start of Spark and a batch of every query together."""
_JOB = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_WAIT = 10 * 365 * 86_400
_HIGHEST_PORT = 65_535
_URL = re.compile(r"https?://[^\s/?#]+/?")
_LONGEST_REVISION = 4096
"""What a manifest takes."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Where the agent listens, and where its token is."""

    host: str
    port: int
    """0: any free one."""
    token_file: Path
    url_file: Path | None = None
    """Where to write its URL, for whoever cannot know the port before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalOptions:
    """A trial run of every query before the gate."""

    savepoint: str
    """Name or id."""
    repository: str
    deadline: float = REHEARSAL_DEADLINE
    functions: bool = False
    """Whether functions that are sinks are called, with rows that will come again."""
    keep: str | None = None
    """A repository in which the copy is captured as it is afterwards, to be looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """What the epoch begins from."""

    savepoint: str
    """Name, id or `namespace/job/name`."""
    repository: str
    endpoint_url: str | None = None
    """Of the repository, where it differs from the epoch directory's."""
    sink: SinkMode = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the launcher was told."""

    epoch_dir: str
    epoch: int
    job: str
    script: str
    arguments: tuple[str, ...] = ()
    gate_deadline: float | None = None
    gated: bool = False
    stop_budget: float = STOP_BUDGET
    on_query_failure: FailurePolicy = "fail"
    trigger_interval: float | None = None
    """Seconds from one batch to the next, for queries whose script does not say."""
    guarantee: Guarantee = "at-least-once"
    """`exactly-once`: queries that are known not to keep it do not start."""
    expect: Expectation = "any"
    agent: AgentOptions | None = None
    termination_log: Path | None = None
    endpoint_url: str | None = None
    """The S3 server of the epoch directory and of repositories; Amazon's, or the environment's, if
    None."""
    revision: str | None = None
    """Which version of the job this is; written into its savepoints."""
    rehearsal: RehearsalOptions | None = None
    restore: RestoreOptions | None = None


def parse_options(arguments: Sequence[str]) -> Options:
    """The options, or RefusedError that lists everything that is wrong with them."""
    ours, script = _split(arguments)
    problems: list[str] = []
    raw = _read(ours, problems)
    if not script:
        problems.append("there is no script: write `-- script.py` at the end")
    options = Options(
        epoch_dir=_required(raw.get("--epoch-dir"), "--epoch-dir", problems),
        epoch=_epoch(raw.get("--epoch"), problems),
        job=_job(raw.get("--job"), problems),
        script=script[0] if script else "",
        arguments=tuple(script[1:]),
        gated="--gated" in raw,
        gate_deadline=_seconds(raw.get("--gate-deadline"), "--gate-deadline", problems),
        stop_budget=_budget(raw.get("--stop-budget"), problems),
        on_query_failure=_policy(raw.get("--on-query-failure"), problems),
        trigger_interval=_seconds(raw.get("--trigger-interval"), "--trigger-interval", problems),
        guarantee=_guarantee(raw.get("--guarantee"), problems),
        expect=_expectation(raw.get("--expect"), problems),
        agent=_agent(raw, problems),
        termination_log=termination_log_of(arguments),
        endpoint_url=_url(raw, "--endpoint-url", problems),
        revision=_revision(raw.get("--revision"), problems),
        rehearsal=_rehearsal(raw, problems),
        restore=_restore(raw, problems),
    )
    if "--repository" in raw and options.rehearsal is None and options.restore is None:
        problems.append("--repository does nothing without --restore or --rehearse")
    if options.gate_deadline is not None and not options.gated:
        problems.append("--gate-deadline does nothing without --gated")
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise RefusedError(f"The command line cannot be used:{listed}\nUsage: {USAGE}")
    return options


def termination_log_of(arguments: Sequence[str]) -> Path | None:
    """Where the last word goes, also when the rest of the command line is wrong."""
    given = _read(_split(arguments)[0], []).get("--termination-log")
    return Path(given) if given else None


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


_VALUES = (
    "--epoch-dir",
    "--epoch",
    "--job",
    "--gate-deadline",
    "--stop-budget",
    "--on-query-failure",
    "--trigger-interval",
    "--guarantee",
    "--expect",
    "--agent-host",
    "--agent-port",
    "--agent-url-file",
    "--token-file",
    "--termination-log",
    "--endpoint-url",
    "--revision",
    "--rehearse",
    "--repository",
    "--rehearsal-deadline",
    "--rehearsal-keep",
    "--repository-endpoint-url",
    "--restore",
    "--sink",
)
_FLAGS = ("--gated", "--rehearse-functions")


def _read(arguments: Sequence[str], problems: list[str]) -> dict[str, str]:
    """Name -> value as given; argparse would end at the first mistake."""
    found: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in _FLAGS and not equals:
            found[name] = name
        elif name in _VALUES:
            found[name] = value if equals else next(rest, "")
        else:
            problems.append(f"{argument!r} is not an option")
    return found


def _required(value: str | None, name: str, problems: list[str]) -> str:
    if not value or not value.strip():
        problems.append(f"{name} is missing")
        return ""
    return value


def _epoch(value: str | None, problems: list[str]) -> int:
    text = _required(value, "--epoch", problems)
    if text and not (text.isascii() and text.isdecimal()):
        problems.append(f"--epoch is {text!r}: give a whole number from 0 upwards")
        return 0
    return int(text or 0)


def _job(value: str | None, problems: list[str]) -> str:
    text = _required(value, "--job", problems)
    if text and not _JOB.fullmatch(text):
        problems.append(
            f"--job is {text!r}: give NAMESPACE/NAME in lower-case letters, digits, '-' and '.'"
        )
    return text


def _seconds(value: str | None, name: str, problems: list[str]) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = float("nan")
    if not 0 <= seconds <= _LONGEST_WAIT:
        problems.append(f"{name} is {value!r}: give a number of seconds")
        return None
    return seconds


def _budget(value: str | None, problems: list[str]) -> float:
    seconds = _seconds(value, "--stop-budget", problems)
    return STOP_BUDGET if seconds is None else seconds


def _policy(value: str | None, problems: list[str]) -> FailurePolicy:
    match value:
        case None | "fail":
            return "fail"
        case "ignore":
            return "ignore"
    problems.append(f"--on-query-failure is {value!r}: give fail or ignore")
    return "fail"


def _guarantee(value: str | None, problems: list[str]) -> Guarantee:
    match value:
        case None | "at-least-once":
            return "at-least-once"
        case "exactly-once":
            return "exactly-once"
    problems.append(f"--guarantee is {value!r}: give exactly-once or at-least-once")
    return "at-least-once"


def _expectation(value: str | None, problems: list[str]) -> Expectation:
    match value:
        case None | "any":
            return "any"
        case "empty":
            return "empty"
        case "restored":
            return "restored"
    problems.append(f"--expect is {value!r}: give empty, restored or any")
    return "any"


def _agent(raw: Mapping[str, str], problems: list[str]) -> AgentOptions | None:
    host, port = raw.get("--agent-host"), raw.get("--agent-port")
    token_file, url_file = raw.get("--token-file"), raw.get("--agent-url-file")
    if host is None and port is None and token_file is None and url_file is None:
        return None
    for name, value in (("--agent-port", port), ("--token-file", token_file)):
        if not value:
            problems.append(f"{name} is missing: the agent needs it")
    number = port or "0"
    if not (number.isascii() and number.isdecimal() and int(number) <= _HIGHEST_PORT):
        problems.append(f"--agent-port is {port!r}: give a number from 0 (any) to {_HIGHEST_PORT}")
        number = "0"
    return AgentOptions(
        host or "127.0.0.1",
        int(number),
        Path(token_file or ""),
        Path(url_file) if url_file else None,
    )


def _url(raw: Mapping[str, str], name: str, problems: list[str]) -> str | None:
    value = raw.get(name)
    if value is not None and not _URL.fullmatch(value):
        problems.append(f"{name} is {value!r}: give a URL such as https://s3.example:9000")
    return value


def _revision(value: str | None, problems: list[str]) -> str | None:
    if value is not None and not 0 < len(value.strip()) <= len(value) <= _LONGEST_REVISION:
        problems.append(
            f"--revision is {value[:40]!r}: give from 1 to {_LONGEST_REVISION} characters"
        )
    return value


def _rehearsal(raw: Mapping[str, str], problems: list[str]) -> RehearsalOptions | None:
    if "--rehearse" not in raw:
        useless = ("--rehearsal-deadline", "--rehearsal-keep", "--rehearse-functions")
        problems += [f"{name} does nothing without --rehearse" for name in useless if name in raw]
        return None
    deadline = _seconds(raw.get("--rehearsal-deadline"), "--rehearsal-deadline", problems)
    return RehearsalOptions(
        savepoint=_required(raw["--rehearse"], "--rehearse", problems),
        repository=_required(raw.get("--repository"), "--repository", problems),
        deadline=REHEARSAL_DEADLINE if deadline is None else deadline,
        functions="--rehearse-functions" in raw,
        keep=raw.get("--rehearsal-keep"),
    )


def _restore(raw: Mapping[str, str], problems: list[str]) -> RestoreOptions | None:
    if "--restore" not in raw:
        if "--sink" in raw:
            problems.append("--sink does nothing without --restore")
        return None
    return RestoreOptions(
        savepoint=_required(raw["--restore"], "--restore", problems),
        repository=_required(raw.get("--repository"), "--repository", problems),
        endpoint_url=_url(raw, "--repository-endpoint-url", problems),
        sink=_sink(raw.get("--sink"), problems),
    )


def _sink(value: str | None, problems: list[str]) -> SinkMode:
    match value:
        case None | "resume":
            return "resume"
        case "rewind":
            return "rewind"
        case "fork":
            return "fork"
    problems.append(f"--sink is {value!r}: give resume, rewind or fork")
    return "resume"
