"""A pretended cluster with an exact ledger: pods, agents, epoch directories, savepoints, workers.

It carries out what the core decides, tick by tick, and refuses what no cluster could survive: a
second writer in a directory, or a driver that is to restore a savepoint which is not there. A batch
is the offset that it consumed, so a directory is right if it holds 0, 1, 2, … and nothing else.
"""

from datetime import UTC, datetime, timedelta
from typing import assert_never

from sparkpoint.lifecycle.actions import (
    Adopt,
    Capture,
    Examine,
    Rehearse,
    RemoveData,
    Repartition,
    Task,
)
from sparkpoint.lifecycle.record import Begin, Revision, Run
from sparkpoint.lifecycle.world import (
    AgentFact,
    DriverExit,
    PodFact,
    QueryFact,
    WorkerFact,
    WorkerState,
)
from tests.unit.lifecycle.simulated_pods import (
    Behaviour,
    BrokenPromiseError,
    Directory,
    Moves,
    Pod,
    Savepoint,
    Stage,
    Stop,
    Worker,
    is_same,
    pod_fact,
    stop_fact,
    worker_fact,
)

__all__ = ["TICK", "Cluster"]

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(seconds=2)
_GRACE = 2
"""Ticks between a pod's deletion and its end."""
_QUERY = "visits"


class Cluster:
    """Everything outside the operator."""

    def __init__(self, behaviours: dict[str, Behaviour]) -> None:
        self.now = _BEGINNING
        self.behaviours = behaviours
        self.pods: list[Pod] = []
        self.directories: dict[int, Directory] = {}
        self.savepoints: dict[str, Savepoint] = {}
        self.captured: set[str] = set()
        """Every savepoint that there ever was."""
        self.committers: set[Behaviour] = set()
        self.workers: dict[str, Worker] = {}
        self.revisions: set[str] = set()
        self.repository_broken = False
        self.workers_fail = False
        self.input = True
        self.rewinds = True
        """Sinks can go back; those that skip what they have seen cannot."""
        self.output = 0
        """Batches that sinks hold, without what pods on lost nodes wrote."""
        self.removed = False
        self.moves = Moves.WELL
        self.foreign = Directory(ledger=list(range(5)), begun=True, written_by="a", partitions=8)
        """A checkpoint of somebody else's, which may be adopted and is never written."""
        self._uids = 0

    # --- what is seen ----------------------------------------------------------------------------

    def listed(self, *, role: str | None = None) -> list[Pod]:
        """Pods that Kubernetes shows."""
        return [pod for pod in self.pods if pod.listed and role in (None, pod.role)]

    def writers(self) -> list[Pod]:
        """Processes that may write, on whatever node."""
        return [pod for pod in self.pods if pod.writes]

    def driver(self, run: Run) -> Pod | None:
        """The driver pod of an attempt, as Kubernetes shows it."""
        found = (pod for pod in self.listed(role="driver") if is_same(pod.run, run))
        return next(found, None)

    def pod_facts(self) -> tuple[PodFact, ...]:
        """Pods as the operator sees them."""
        return tuple(pod_fact(pod, self._stuck(pod)) for pod in self.listed())

    def worker_facts(self) -> tuple[WorkerFact, ...]:
        """Worker pods as the operator sees them."""
        return tuple(worker_fact(worker) for worker in self.workers.values())

    def agent_fact(self, pod: PodFact | None) -> AgentFact | None:
        """What the agent of this pod answers."""
        found = next((each for each in self.pods if pod and each.uid == pod.uid), None)
        if found is None or not self._answers(found):
            return None
        queries = (self._query_fact(found),) if found.stage is Stage.RUNNING else ()
        return AgentFact(
            epoch=found.run.epoch,
            attempt=found.run.attempt,
            phase=found.stage.value,  # type: ignore[arg-type]
            queries=queries,
            stop=stop_fact(found.stop, self._batches(found.run.epoch)),
        )

    def newest(self) -> str | None:
        """The newest complete savepoint."""
        return next(reversed(self.savepoints), None)

    # --- what is done ----------------------------------------------------------------------------

    def start_driver(self, run: Run, expect: str, name: str) -> None:
        """Create the pod if there is none of this name."""
        if any(pod.name == name for pod in self.listed()):
            return
        self._uids += 1
        self.pods.append(Pod(name, f"u{self._uids}", "driver", run, self.now, expect))

    def open_gate(self, run: Run) -> None:
        """Let the queries of this attempt start, if its agent can be reached."""
        pod = self.driver(run)
        if pod is None or not self._answers(pod) or pod.stage is not Stage.GATED:
            return
        for other in self.writers():
            if other.run.epoch == run.epoch and other is not pod:
                raise BrokenPromiseError(
                    f"{pod.name} and {other.name} both write into epoch {run.epoch}"
                )
        pod.admitted = True

    def request_stop(self, run: Run, operation: str, savepoint: str | None) -> None:
        """As the agent does: one stop at a time, the same one again is no other."""
        pod = self.driver(run)
        if pod is None or not self._answers(pod) or pod.stage is Stage.PENDING:
            return
        if pod.stop is not None and pod.stop.state != "Failed":
            return
        touched = pod.stop is not None and pod.stop.touched
        pod.stop = Stop(operation, savepoint, touched=touched)

    def delete(self, uid: str) -> None:
        """Ask for a pod's end."""
        for pod in self.pods:
            if pod.uid == uid and pod.deleting is None:
                pod.deleting = 0
        for worker in self.workers.values():
            if worker.uid == uid and worker.deleting is None:
                worker.deleting = 0

    def start_worker(self, name: str, task: Task) -> None:
        """Create the worker pod if there is none of this name."""
        if name not in self.workers:
            self._uids += 1
            self.workers[name] = Worker(name, task, self.now, uid=f"w{self._uids}")

    # --- what happens ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Let time pass."""
        self.now += TICK
        for pod in list(self.pods):
            self._advance(pod)
        self.pods = [pod for pod in self.pods if pod.alive or pod.listed]
        for worker in list(self.workers.values()):
            self._work(worker)
            self._end(worker)

    def end(
        self, pod: Pod, reason: str, *, code: int = 1, clean: bool = False, cause: str = ""
    ) -> None:
        """The process ends."""
        stop = pod.stop
        done = stop is not None and stop.state == "Done"
        pod.exit = DriverExit(
            code=code,
            reason=reason,
            clean=clean,
            operation=stop.operation if stop is not None and done else None,
            savepoint=stop.savepoint if stop is not None and done else None,
            batches=self._batches(pod.run.epoch) if pod.commits else {},
            cause=cause,
        )
        pod.stage = Stage.ENDED

    def lose(self, pod: Pod, *, survives: bool, heard: bool = False) -> None:
        """Its node does not answer any more; its process goes on, or has died unseen."""
        pod.cut, pod.lost_since, pod.heard = True, self.now, heard
        if not survives:
            self.end(pod, "NodeLost")

    def bring_back(self, pod: Pod) -> None:
        """Its node answers again."""
        pod.cut, pod.lost_since = False, None

    def leave_behind(self, epoch: int) -> None:
        """What cannot be reached in this epoch is not waited for any more."""
        for pod in self.pods:
            unseen = pod.cut or not pod.listed
            pod.left = pod.left or (unseen and pod.run.epoch == epoch)

    def vanish(self, pod: Pod, *, lives: int = 0) -> None:
        """Deleted by force: its object goes at once, and whatever it says at its end is lost.

        Its process ends after so many ticks, and not before its node answers.
        """
        pod.listed, pod.dying = False, lives
        self._die(pod)

    def lay_to_rest(self) -> None:
        """A person has made sure that no process is left of what was deleted by force."""
        for pod in self.pods:
            if not pod.listed:
                self.bring_back(pod)
                pod.dying = 0
                self._die(pod)

    def collect_pods(self) -> None:
        """Ended drivers are deleted, except for the newest; ended workers are, too."""
        ended = [pod for pod in self.listed(role="driver") if pod.over]
        newest = max((pod.run.attempt for pod in ended), default=0)
        for pod in ended:
            pod.listed = pod.run.attempt == newest
        running = WorkerState.RUNNING
        self.workers = {n: each for n, each in self.workers.items() if each.state is running}

    # --- processes -------------------------------------------------------------------------------

    def _die(self, pod: Pod) -> None:
        """A kubelet ends what has no object any more, a while after it was told."""
        if pod.listed or pod.cut or not pod.alive:
            return
        if pod.dying <= 0:
            self.end(pod, "Killed")
            pod.over = True
        pod.dying -= 1

    def _advance(self, pod: Pod) -> None:
        pod.deaf = max(0, pod.deaf - 1)
        self._die(pod)
        if pod.deleting is not None:
            pod.deleting += 1
            if pod.deleting >= _GRACE and not pod.cut and pod.alive:
                self.end(pod, "Terminated", code=0, clean=True)
        if pod.alive and pod.role == "driver":
            _STAGES[pod.stage](self, pod)
        if pod.role == "executor" and pod.alive and not pod.cut and not self._has_driver(pod):
            self.end(pod, "Orphaned")
            pod.deleting = pod.deleting or 0
        if not pod.alive and not pod.cut:
            # Its end is shown before its object goes.
            pod.listed = pod.listed and not (pod.over and pod.deleting is not None)
            pod.over = True

    def _has_driver(self, executor: Pod) -> bool:
        return any(
            pod.role == "driver" and pod.alive and is_same(pod.run, executor.run)
            for pod in self.pods
        )

    def _pending(self, pod: Pod) -> None:
        if self._behaviour(pod.run.revision) is not Behaviour.IMAGE_MISSING:
            pod.stage = Stage.STARTING

    def _starting(self, pod: Pod) -> None:
        directory = self.directories.setdefault(pod.run.epoch, Directory())
        origin = pod.run.origin
        if origin.sink == "Rewind" and not (self.rewinds or directory.begun):
            self.end(pod, "Refused", code=83, cause="SinkConflict")
            return
        if origin.begin is Begin.SAVEPOINT:
            self._materialize(directory, origin.savepoint)
        refused = (pod.expect == "empty" and directory.begun) or (
            pod.expect == "restored" and not directory.begun
        )
        if refused:
            self.end(pod, "Refused", code=83)
        elif self._behaviour(pod.run.revision) is Behaviour.CRASHES_AT_START:
            self.end(pod, "ScriptFailed")
        else:
            pod.stage = Stage.GATED

    def _materialize(self, directory: Directory, name: str | None) -> None:
        savepoint = self.savepoints.get(name or "")
        if directory.begun:
            return
        if savepoint is None:
            raise BrokenPromiseError(f"savepoint {name} is to be restored, and is not there")
        directory.ledger = list(savepoint.ledger)
        directory.certain = len(directory.ledger)
        directory.begun, directory.written_by = True, savepoint.written_by
        directory.partitions = savepoint.partitions

    def _gated(self, pod: Pod) -> None:
        if pod.stop is not None:
            self._stopping(pod)
        elif pod.admitted:
            self._start_query(pod)

    def _start_query(self, pod: Pod) -> None:
        directory = self.directories[pod.run.epoch]
        code = pod.run.revision.code
        if directory.ledger and not self._reads(code, directory.written_by):
            self.end(pod, "QueryFailed", code=80)
            return
        directory.begun = pod.began = True
        if directory.partitions is None:
            directory.partitions = pod.run.revision.partitions
        pod.position, pod.stage = len(directory.ledger), Stage.RUNNING
        self._uids += 1
        name = f"{pod.name}-exec-1"
        executor = Pod(name, f"u{self._uids}", "executor", pod.run, self.now, stage=Stage.RUNNING)
        self.pods.append(executor)

    def _running(self, pod: Pod) -> None:
        if pod.stop is not None and pod.stop.state != "Failed":
            self._stopping(pod)
        else:
            self._commit(pod)

    def _commit(self, pod: Pod) -> None:
        behaviour = self._behaviour(pod.run.revision)
        if behaviour is Behaviour.NEVER_COMMITS or not self.input:
            return
        directory = self.directories[pod.run.epoch]
        directory.ledger.append(pod.position)
        directory.written_by = pod.run.revision.code
        self.committers.add(behaviour)
        if not pod.cut and not pod.left:
            directory.certain = self.output = len(directory.ledger)
        if directory.ledger != list(range(len(directory.ledger))):
            raise BrokenPromiseError(f"epoch {pod.run.epoch} holds {directory.ledger}")
        pod.position += 1
        pod.commits += 1
        pod.last_commit = self.now
        if behaviour is Behaviour.CRASHES_SOON and pod.commits == 2:
            self.end(pod, "QueryFailed", code=80)
        if behaviour is Behaviour.ENDS and pod.commits == 5:
            self.end(pod, "ScriptEnded", code=0, clean=True)

    def _stopping(self, pod: Pod) -> None:
        """One step of a stop per tick: look beforehand, reach the boundary, capture, end."""
        stop = pod.stop
        if stop is None or stop.state == "Failed":
            return
        if stop.state == "Done":
            self.end(pod, "Stopped", code=0, clean=True)
        elif pod.stage is not Stage.STANDING:
            self._reach_boundary(pod, stop)
        else:
            self._capture_at_boundary(pod, stop)

    def _reach_boundary(self, pod: Pod, stop: Stop) -> None:
        if stop.savepoint is not None and self.repository_broken:
            stop.state, stop.message = "Failed", "the repository cannot be written to"
            return
        if pod.stage is Stage.RUNNING:
            self._commit(pod)
        if pod.alive:
            pod.stage, stop.touched = Stage.STANDING, True

    def _capture_at_boundary(self, pod: Pod, stop: Stop) -> None:
        if stop.savepoint is None:
            stop.state = "Done"
            return
        directory = self.directories[pod.run.epoch]
        nothing = not (pod.began and directory.ledger)
        if self.repository_broken or nothing:
            stop.state, stop.empty = "Failed", nothing
            stop.message = "it could not be captured"
            return
        saved = self._save(stop.savepoint, pod.run.epoch)
        stop.state = "Done" if saved else "Failed"

    def _save(self, name: str, epoch: int) -> bool:
        """The same name and epoch is the same savepoint; another epoch's name is taken."""
        directory = self.directories[epoch]
        known = self.savepoints.get(name)
        if known is not None:
            return known.epoch == epoch
        self.savepoints[name] = Savepoint(
            epoch, tuple(directory.ledger), directory.written_by, directory.partitions
        )
        self.captured.add(name)
        return True

    # --- workers ---------------------------------------------------------------------------------

    def _end(self, worker: Worker) -> None:
        if worker.deleting is None:
            return
        worker.deleting += 1
        if worker.deleting >= _GRACE:
            del self.workers[worker.name]

    def _work(self, worker: Worker) -> None:
        if worker.state is not WorkerState.RUNNING:
            return
        if self._behaviour(worker.task.revision) is Behaviour.IMAGE_MISSING:
            worker.stuck = "ImagePullBackOff"
            return
        worker.age += 1
        if worker.age < 2:
            return
        if self.workers_fail:
            worker.state, worker.message = WorkerState.FAILED, "it was killed"
            return
        self._do(worker)

    def _do(self, worker: Worker) -> None:
        match worker.task:
            case Adopt(savepoint=name):
                self._adopt(worker, name)
            case Capture(run=run, savepoint=name):
                self._capture(worker, run.epoch, name)
            case Rehearse(run=run, savepoint=name, captured_from=source):
                self._rehearse(worker, run, self._copied(name, source))
            case Examine(savepoint=name, captured_from=source):
                self._examine(worker, self._copied(name, source))
            case Repartition(savepoint=name, made=made, partitions=partitions):
                self._repartition(worker, name, made, partitions)
            case RemoveData():
                self.removed = True
                worker.state, worker.answer = WorkerState.SUCCEEDED, "Removed"
            case _:
                assert_never(worker.task)

    def _adopt(self, worker: Worker, name: str) -> None:
        if self.repository_broken:
            worker.state, worker.message = WorkerState.FAILED, "the repository is broken"
            return
        ledger = tuple(self.foreign.ledger)
        made = Savepoint(0, ledger, self.foreign.written_by, self.foreign.partitions)
        self.savepoints.setdefault(name, made)
        self.captured.add(name)
        worker.state, worker.answer = WorkerState.SUCCEEDED, "Captured"
        worker.batches = {_QUERY: len(ledger) - 1}

    def _capture(self, worker: Worker, epoch: int, name: str) -> None:
        directory = self.directories.get(epoch, Directory())
        if self.repository_broken:
            worker.state, worker.message = WorkerState.FAILED, "the repository is broken"
            return
        if not directory.ledger:
            worker.state, worker.answer = WorkerState.SUCCEEDED, "NothingCommitted"
            return
        if not self._save(name, epoch):
            worker.state, worker.message = WorkerState.FAILED, "NameTaken"
            return
        worker.state, worker.answer = WorkerState.SUCCEEDED, "Captured"
        worker.batches = self._batches(epoch)

    def _copied(self, name: str, source: Run | None) -> str | None:
        """Whose state a trial gets to read; None if it cannot be read.

        Where there is no savepoint, one is taken for the trial, and removed again. Its name is that
        of nobody if nothing was committed.
        """
        if self.repository_broken:
            return None
        if source is not None:
            return self.directories[source.epoch].written_by
        savepoint = self.savepoints.get(name)
        return None if savepoint is None else savepoint.written_by

    def _rehearse(self, worker: Worker, run: Run, written_by: str | None) -> None:
        worker.state = WorkerState.SUCCEEDED
        if not written_by:
            worker.answer = "Unknown"
            worker.kind = "SavepointUnreadable" if written_by is None else ""
            return
        fits = self._reads(run.revision.code, written_by)
        worker.answer = "Compatible" if fits else "Incompatible"
        if self._behaviour(run.revision) is Behaviour.CRASHES_AT_START:
            worker.answer, worker.kind = "Unknown", "ScriptRaises"

    def _examine(self, worker: Worker, written_by: str | None) -> None:
        if written_by is None:
            worker.state, worker.message = WorkerState.FAILED, "the savepoint cannot be read"
            return
        worker.state = WorkerState.SUCCEEDED
        worker.answer = "Compatible" if written_by else "Unknown"
        if self.moves is Moves.REFUSED:
            worker.answer = "Incompatible"

    def _repartition(self, worker: Worker, name: str, made: str, partitions: int) -> None:
        """One savepoint, whoever asks how often; what is there of that name was made of it."""
        parent = self.savepoints.get(name)
        if parent is None:
            raise BrokenPromiseError(f"{made} is to be made of {name}, which is not there")
        if self.repository_broken or self.moves in (Moves.REFUSED, Moves.FAILS, Moves.PENDING):
            worker.state, worker.message = WorkerState.FAILED, "it cannot be made"
            worker.final = not self.repository_broken
            worker.kind = "PendingBatch" if self.moves is Moves.PENDING else ""
            return
        if parent.partitions == partitions:
            made = name
        known = self.savepoints.setdefault(
            made, Savepoint(parent.epoch, parent.ledger, parent.written_by, partitions, name)
        )
        if made != name and (known.parent, known.partitions) != (name, partitions):
            raise BrokenPromiseError(f"{made} is another one: {known}")
        self.captured.add(made)
        worker.state, worker.answer, worker.savepoint = WorkerState.SUCCEEDED, "Repartitioned", made

    # --- within ----------------------------------------------------------------------------------

    def _behaviour(self, revision: Revision) -> Behaviour:
        return self.behaviours[revision.code]

    def _reads(self, code: str, written_by: str) -> bool:
        """Code reads what it wrote itself; compatible code also what other such code wrote."""
        either = {self.behaviours[code], self.behaviours[written_by]}
        return code == written_by or Behaviour.INCOMPATIBLE not in either

    def _stuck(self, pod: Pod) -> str:
        missing = self._behaviour(pod.run.revision) is Behaviour.IMAGE_MISSING
        return "ImagePullBackOff" if missing and pod.stage is Stage.PENDING else ""

    def _answers(self, pod: Pod) -> bool:
        started = pod.stage not in (Stage.PENDING, Stage.ENDED)
        return started and (pod.heard or not pod.cut) and pod.deaf == 0

    def _batches(self, epoch: int) -> dict[str, int]:
        directory = self.directories.get(epoch)
        return {_QUERY: len(directory.ledger) - 1} if directory and directory.ledger else {}

    def _query_fact(self, pod: Pod) -> QueryFact:
        never = self._behaviour(pod.run.revision) is Behaviour.NEVER_COMMITS
        return QueryFact(
            name=_QUERY,
            batch=pod.position - 1 if pod.commits else None,
            active=True,
            busy=self.input or never,
            last_commit=pod.last_commit,
        )


_STAGES = {
    Stage.PENDING: Cluster._pending,
    Stage.STARTING: Cluster._starting,
    Stage.GATED: Cluster._gated,
    Stage.RUNNING: Cluster._running,
    Stage.STANDING: Cluster._stopping,
}
