"""What all our operators share: the cluster, the run that they belong to, and the wait."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException

from sparkpoint.airflow.decisions.goals import End, judge, progress
from sparkpoint.airflow.decisions.keys import run_key
from sparkpoint.airflow.failures import telling
from sparkpoint.airflow.triggers import ResourceTrigger
from sparkpoint.cli.jobs.cluster import JOBS, SAVEPOINTS, Cluster, Kind, find

__all__ = ["Waiting", "key_of_run", "run_of"]

Object = dict[str, Any]
_DEFAULT_CONNECTION: Final = "kubernetes_default"
_AN_HOUR: Final = timedelta(hours=1)
_WITHOUT_TRIGGERER: Final = timedelta(minutes=5)
"""After the deadline that the trigger keeps and explains, Airflow ends the wait by itself."""


def run_of(context: Context) -> str:
    """What a run is known by: its time if it is one of the schedule, else its id.

    A run of the schedule that is deleted and made again is the same one.
    """
    run = context["dag_run"]
    scheduled = str(run.run_type).rpartition(".")[2].lower() == "scheduled"
    moment = run.logical_date
    return str(moment.isoformat()) if scheduled and moment is not None else str(run.run_id)


def key_of_run(context: Context, *, namespace: str, job: str, purpose: str) -> str:
    """The key of what a run makes for a job and a purpose."""
    dag = context["dag_run"].dag_id
    return run_key(namespace=namespace, job=job, dag=dag, task=purpose, run=run_of(context))


class Waiting(BaseOperator):
    """Asks for something, and waits for it without a worker.

    `wait_timeout` ends the wait, and not what was asked for: the next try finds it again.
    """

    template_fields: Sequence[str] = ("namespace", "kubernetes_conn_id")
    ui_color: ClassVar[str] = "#e8f0fb"

    def __init__(
        self,
        *,
        namespace: str | None = None,
        kubernetes_conn_id: str = _DEFAULT_CONNECTION,
        wait_timeout: timedelta = _AN_HOUR,
        end_from_trigger: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.namespace, self.kubernetes_conn_id = namespace, kubernetes_conn_id
        self.wait_timeout, self.end_from_trigger = wait_timeout, end_from_trigger
        self.links: dict[str, str] = {}

    def open_cluster(self) -> Cluster:
        """The namespace of the task, else that of the connection."""
        found: Cluster = self._hook().cluster(self.namespace)
        return found

    def _hook(self) -> Any:
        # Here and not above: what reads a DAG must not pay for a Kubernetes client.
        from sparkpoint.airflow.hooks import SparkpointHook

        return SparkpointHook(conn_id=self.kubernetes_conn_id)

    def show(self, cluster: Cluster, **named: str | None) -> None:
        """Have the buttons of the task lead to a job and a savepoint."""
        kinds = {"job": JOBS, "savepoint": SAVEPOINTS}
        self.links |= {
            which: self._hook().link(kinds[which], cluster.namespace, name)
            for which, name in named.items()
            if name
        }

    def wait_for(self, cluster: Cluster, kind: Kind, names: Sequence[str], goal: Object) -> None:
        """Return if it is there already; else go to sleep until it is."""
        if not self._is_reached(cluster, kind, names, goal):
            self.sleep_until(cluster, kind, names, goal)

    def sleep_until(self, cluster: Cluster, kind: Kind, names: Sequence[str], goal: Object) -> None:
        """Let the trigger look, also if it is there already: it tells what was left behind."""
        self.defer(
            trigger=ResourceTrigger(
                plural=kind.plural,
                namespace=cluster.namespace,
                names=names,
                goal=goal,
                kubernetes_conn_id=self.kubernetes_conn_id,
                # Without a connection the synchronous hook finds its pod's account by itself, and
                # the asynchronous one does not.
                in_cluster=self._hook().is_in_cluster or None,
                end_from_trigger=self.end_from_trigger,
                deadline=(datetime.now(UTC) + self.wait_timeout).isoformat(),
            ),
            method_name="resume",
            kwargs={
                "plural": kind.plural,
                "names": list(names),
                "goal": goal,
                "namespace": cluster.namespace,
            },
            timeout=self.wait_timeout + _WITHOUT_TRIGGERER,
        )

    def _is_reached(self, cluster: Cluster, kind: Kind, names: Sequence[str], goal: Object) -> bool:
        """AirflowException if it will not be."""
        waits = False
        for name in names:
            body = find(cluster, kind, name)
            outcome = judge(goal, name, body)
            if outcome.end is End.FAILED:
                raise AirflowException(outcome.message)
            if outcome.end is End.WAITING:
                waits = True
                self.log.info("Waiting. %s", progress(body) if body is not None else name)
        return not waits

    def resume(self, context: Context, event: Any = None, **asked: Any) -> Any:
        """After the trigger, where it did not end the task: look once more, and say how it went."""
        if isinstance(event, Mapping) and event.get("end") == End.FAILED.value:
            raise AirflowException(str(event.get("message")))
        if event == "failed":
            raise AirflowException("It failed: the log of the trigger says why.")
        for key, value in (event.get("left") or {} if isinstance(event, Mapping) else {}).items():
            context["ti"].xcom_push(key=key, value=value)
        if not asked:
            # `dag.test()` loses what was given to the trigger.
            return None
        kind = JOBS if asked["plural"] == JOBS.plural else SAVEPOINTS
        self.namespace = asked["namespace"]
        with telling():
            if not self._is_reached(self.open_cluster(), kind, asked["names"], asked["goal"]):
                raise AirflowException(f"{', '.join(asked['names'])}: not as wanted any more.")
        return asked["names"][0] if len(asked["names"]) == 1 else asked["names"]
