"""What must hold at any time: checked after every step of a simulated life."""

from datetime import datetime, timedelta

from sparkpoint.lifecycle.phases import AGAIN, PLANS, Kind
from sparkpoint.lifecycle.record import Begin, Operation, Outcome, Record, Result, Run
from sparkpoint.lifecycle.world import Wish, WorkerState
from tests.unit.lifecycle.simulated_cluster import Cluster
from tests.unit.lifecycle.simulated_pods import BrokenPromiseError

__all__ = ["Promises"]

_SLACK = timedelta(seconds=30)


class Promises:
    """Remembers what the user's wishes allow, and raises BrokenPromiseError for anything else."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._deleted: datetime | None = None
        self._asked: set[str] = set()
        """Savepoints that the user wants to go to."""
        self._stateless: set[str] = set()
        """Code that was to begin without state."""
        self._given_up = False
        self._back: set[str] = set()
        """Savepoints that were rolled back to."""
        self._proven = 0
        """How far the stable revision had come when it proved itself."""
        self._opened: list[int] = []
        """Epochs whose gate was opened."""
        self._adopts = False
        """The job began with somebody else's checkpoint."""
        self._folders: dict[str, int] = {}
        """Directory -> its epoch."""

    def restores(self, savepoint: str) -> None:
        """The user wants to go there."""
        self._asked.add(savepoint)

    def deletes(self) -> None:
        """The user deletes the job."""
        self._deleted = self._cluster.now

    def writes(self, old: Record, new: Record, wish: Wish) -> None:
        """The operator writes a record."""
        _check_phases(old.operation, new.operation)
        if new.last != old.last and new.run is not None:
            self._check_partitions(new.last, new.run)
        self._check_names(old, new)
        operation = new.operation
        if old.run is None and new.run is not None and operation is not None:
            self._adopts = operation.adopt is not None
        if (
            operation is not None
            and operation.target is not None
            and wish.policy.mode == "Stateless"
        ):
            self._stateless.add(operation.target.revision.code)
        if operation is not None and operation.fenced and old.run is not None:
            self._cluster.leave_behind(old.run.epoch)
        if new.run is not None and new.run.epoch > 1 and _is_without_state(new.run):
            # It could not be captured, and was to be given up when its directory was left.
            self._given_up = True
        for each in (old, new):
            rolls_back = each.operation is not None and each.operation.kind is Kind.ROLLBACK
            if rolls_back and each.stable is not None:
                self._back.add(each.stable.savepoint or "")
        proven = new.stable is not None and new.stable.savepoint is None
        if proven and new.stable != old.stable and new.run is not None:
            directory = self._cluster.directories.get(new.run.epoch)
            self._proven = len(directory.ledger) if directory is not None else 0

    def _check_partitions(self, last: Outcome | None, run: Run) -> None:
        """State that was to be brought to other partitions is in them."""
        if last is None or (last.kind, last.result) != (Kind.REPARTITION, Result.SUCCEEDED):
            return
        directory = self._cluster.directories.get(run.epoch)
        if directory is not None and directory.partitions != run.revision.partitions:
            raise BrokenPromiseError(f"{run} has {directory.partitions} partitions")

    def _check_names(self, old: Record, new: Record) -> None:
        """A directory keeps its name, and no other one has it."""
        if old.sequence and new.life != old.life:
            raise BrokenPromiseError(f"the life of {old.life} becomes {new.life}")
        if new.run is None:
            return
        epoch = self._folders.setdefault(new.run.folder, new.run.epoch)
        known = [each for each in self._folders.values() if each == epoch]
        if epoch != new.run.epoch or len(known) > 1 or not new.run.folder.endswith(new.life):
            raise BrokenPromiseError(f"{new.run} beside {self._folders}")

    def releases(self) -> None:
        """The operator lets the job go."""
        working = [
            each.name
            for each in self._cluster.workers.values()
            if each.state is WorkerState.RUNNING
        ]
        if working:
            raise BrokenPromiseError(f"released while {working} work")

    def check(self, record: Record, wish: Wish, *, released: bool) -> None:
        """At any moment."""
        captured, there = self._cluster.captured, set(self._cluster.savepoints)
        missing = (record.references() & captured) - there
        if missing:
            raise BrokenPromiseError(f"{missing} are needed and were deleted")
        epochs = [pod.run.epoch for pod in self._cluster.writers()]
        if len(epochs) != len(set(epochs)):
            raise BrokenPromiseError(f"two writers in one directory: {epochs}")
        if self._deleted is not None and not released:
            late = self._cluster.now - self._deleted - wish.policy.delete_timeout
            if late > _SLACK:
                raise BrokenPromiseError(f"the deletion takes too long: {record}")

    def opens(self, run: Run) -> None:
        """A gate was opened: a new epoch begins with what it should."""
        pod = self._cluster.driver(run)
        if pod is None or not pod.admitted or run.epoch in self._opened:
            return
        former = max(self._opened, default=None)
        self._opened.append(run.epoch)
        length = len(self._cluster.directories[run.epoch].ledger)
        self._check_output(run, length)
        self._check_number(run)
        if former is None and self._adopts and run.source.begin is Begin.SAVEPOINT:
            self._check_adopted(run, length)
        if run.source.begin is Begin.EMPTY:
            self._check_empty(run)
        elif not self._is_asked(run):
            self._check_savepoint(run, length, former)

    def _is_asked(self, run: Run) -> bool:
        """The user wants to go there; or to what was made of it in other partitions."""
        name = run.source.savepoint or ""
        while name not in self._asked and name in self._cluster.savepoints:
            name = self._cluster.savepoints[name].parent
        return name in self._asked

    def _check_number(self, run: Run) -> None:
        """State is in the partitions that the code which gets it asks for.

        Unless the user went to a savepoint in others, or a sink that cannot go back kept a rollback
        from doing so.
        """
        number = self._cluster.directories[run.epoch].partitions
        elsewhere = bool(self._asked) or self._adopts or not self._cluster.rewinds
        if not elsewhere and number not in (None, run.revision.partitions):
            raise BrokenPromiseError(f"{run} gets {number} partitions")

    def _check_adopted(self, run: Run, length: int) -> None:
        """The first that runs goes on from where the other job stood, unless the user goes back."""
        foreign = len(self._cluster.foreign.ledger)
        if not self._is_asked(run) and length != foreign:
            raise BrokenPromiseError(f"epoch {run.epoch} adopts {foreign} and begins at {length}")

    def _check_empty(self, run: Run) -> None:
        certain = self._adopts or any(each.certain for each in self._cluster.directories.values())
        if certain and not self._given_up and run.revision.code not in self._stateless:
            raise BrokenPromiseError(f"epoch {run.epoch} begins empty although there is state")

    def _check_savepoint(self, run: Run, length: int, former: int | None) -> None:
        if run.source.savepoint in self._back:
            if length < self._proven:
                raise BrokenPromiseError(f"the rollback to {length} loses {self._proven}")
        elif former is not None and length < self._cluster.directories[former].certain:
            raise BrokenPromiseError(f"epoch {run.epoch} at {length} loses commits of {former}")

    def _check_output(self, run: Run, length: int) -> None:
        """Sinks that go on must not hold more than what is gone on from."""
        resumes = run.source.begin is Begin.SAVEPOINT and run.source.sink == "Resume"
        if resumes and not self._is_asked(run) and self._cluster.output > length:
            raise BrokenPromiseError(f"sinks hold {self._cluster.output} and resume at {length}")
        self._cluster.output = length


def _is_without_state(run: Run) -> bool:
    return run.source.begin is Begin.EMPTY and not run.opened and run.left is None


def _check_phases(old: Operation | None, new: Operation | None) -> None:
    """An operation goes through its phases in their order, or begins again where it may."""
    if old is None or new is None or old.id != new.id:
        return
    plan = PLANS[new.kind]
    again = new.launches > old.launches and old.phase in AGAIN
    if not again and plan.index(new.phase) < plan.index(old.phase):
        raise BrokenPromiseError(f"{new.id} goes from {old.phase} to {new.phase}")
