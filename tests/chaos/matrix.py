"""The matrix as data: operations and phases come from the lifecycle, so that a new one appears."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from sparkpoint.lifecycle.phases import PLANS, Kind, Phase

__all__ = [
    "MEANINGS",
    "Case",
    "Fault",
    "Run",
    "all_cases",
    "find_case",
    "find_run",
    "hindrance",
    "runs_of",
]


class Fault(Enum):
    """What goes wrong."""

    OPERATOR = "operator"
    DRIVER = "driver"
    EXECUTOR = "executor"
    AGENT = "agent"
    APISERVER = "apiserver"
    ETCD = "etcd"
    S3 = "s3"

    @property
    def is_of_cluster(self) -> bool:
        """Whether every job of the cluster feels it, so that no other case may run on it."""
        return self in (Fault.AGENT, Fault.APISERVER, Fault.ETCD)

    @property
    def is_repeatable(self) -> bool:
        """Whether an operation goes on as it would have, so that it can strike in every phase of
        one: a driver that dies twice is another story, a rollback. Should it go on otherwise after
        all, the phases that it did not come to are tried one by one."""
        return self is not Fault.DRIVER


MEANINGS: dict[Fault, str] = {
    Fault.OPERATOR: "SIGKILL of the operator before it acts on what it has just written",
    Fault.DRIVER: "SIGKILL of all processes of the driver",
    Fault.EXECUTOR: "SIGKILL of an executor",
    Fault.AGENT: "packets to agents are dropped for 30 s",
    Fault.APISERVER: "the API server stands still for 30 s",
    Fault.ETCD: "etcd stands still for 30 s",
    Fault.S3: "the S3 server stands still for 30 s",
}

_WORK_OF_PODS = (Phase.ADOPT, Phase.CAPTURE, Phase.MODIFY, Phase.CLEAN)
"""Phases of worker pods: the driver has ended, or was never there."""
_ABOUT_A_DRIVER = (Fault.DRIVER, Fault.EXECUTOR, Fault.AGENT)
_OF_AN_ENDED_DRIVER = (Kind.RECOVER, Kind.ROLLBACK)
"""What begins because the driver has ended."""


@dataclass(frozen=True, slots=True)
class Case:
    """A cell of the matrix."""

    kind: Kind
    phase: Phase
    fault: Fault

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return f"{self.kind.value}-{self.phase.value}-{self.fault.value}".lower()


@dataclass(frozen=True, slots=True)
class Run:
    """One operation, and a fault in one or several of its phases, or at some moment."""

    kind: Kind
    phases: tuple[Phase, ...]
    fault: Fault
    after: float | None = None
    """Seconds after the beginning, if it is in no certain phase."""

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        phases = "+".join(phase.value for phase in self.phases)
        when = phases if self.after is None else f"{self.after}s"
        return f"{self.kind.value}-{when}-{self.fault.value}".lower()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cells that it fills."""
        return tuple(Case(self.kind, phase, self.fault) for phase in self.phases)


def all_cases() -> tuple[Case, ...]:
    """Every cell, row by row."""
    return tuple(
        Case(kind, phase, fault) for kind in Kind for phase in PLANS[kind] for fault in Fault
    )


def find_case(name: str) -> Case:
    """By its name; ValueError if there is none."""
    for case in all_cases():
        if case.name == name:
            return case
    raise ValueError(f"There is no case {name!r}. They are operation-phase-fault, in lower case.")


def find_run(name: str) -> Run:
    """By its name: upgrade-stop-operator, upgrade-4.5s-driver; ValueError if it is none."""
    kind, when, fault = [*name.split("-"), "", ""][:3]
    if not re.fullmatch(r"[0-9.]+s", when):
        case = find_case(name)
        return Run(case.kind, (case.phase,), case.fault)
    return Run(Kind(kind.capitalize()), (), Fault(fault), after=float(when[:-1]))


def hindrance(case: Case) -> str:
    """Why there is nothing to try; empty if there is."""
    if case.kind is Kind.RESUME and case.phase in (Phase.STOP, Phase.CAPTURE):
        return "A suspended job stands and is captured: the phase is over at once, never written."
    if case.fault not in _ABOUT_A_DRIVER:
        return ""
    if case.phase in _WORK_OF_PODS:
        return "A worker pod does the work of this phase: there is no driver."
    if (case.kind, case.phase) == (Kind.START, Phase.PREPARE):
        return "No driver was started yet."
    if case.phase is Phase.STOP and case.kind in _OF_AN_ENDED_DRIVER:
        return "The driver has ended before: that is what the operation began for."
    return ""


def runs_of(cases: Iterable[Case]) -> Iterator[Run]:
    """As few operations as will do, in the order of faults and then of operations.

    What a driver does in Stop leaves nothing for Capture to do; that phase takes an operation of
    its own, in which the driver does not live to do it.
    """
    order = {fault: number for number, fault in enumerate(Fault)}
    wanted = sorted(cases, key=lambda case: order[case.fault])
    for (fault, kind), group in groupby(wanted, key=lambda case: (case.fault, case.kind)):
        phases = [case.phase for case in group]
        together = [phase for phase in phases if phase is not Phase.CAPTURE]
        if fault.is_repeatable and together:
            yield Run(kind, tuple(together), fault)
        else:
            yield from (Run(kind, (phase,), fault) for phase in together)
        if Phase.CAPTURE in phases:
            yield Run(kind, (Phase.CAPTURE,), fault)
