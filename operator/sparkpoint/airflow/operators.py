"""The operators: each asks for something that has a name, so that asking twice is asking once.

Whoever waits does so in a trigger, and the trigger ends the task. So there is no result in XCom:
what came of it is read from the resource, by the key of the run.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from sparkpoint.airflow.decisions import goals
from sparkpoint.airflow.decisions.drills import SETTINGS, settings_of
from sparkpoint.airflow.decisions.due import Skip
from sparkpoint.airflow.failures import telling
from sparkpoint.airflow.links import JobLink, SavepointLink
from sparkpoint.airflow.waiting import Waiting, key_of_run, run_of
from sparkpoint.airflow.work.changes import ensure_change, rescaling
from sparkpoint.airflow.work.drills import ensure_drill
from sparkpoint.airflow.work.savepoints import Wanted, ensure_check, ensure_savepoint
from sparkpoint.cli.jobs.cluster import JOBS, SAVEPOINTS, find
from sparkpoint.cli.jobs.facts import metadata, moment_of, spec_of
from sparkpoint.cli.jobs.finding import find_job

__all__ = [
    "CollectGarbageOperator",
    "CreateSavepointOperator",
    "RescaleJobOperator",
    "RestoreDrillOperator",
    "RetainSavepointsOperator",
    "UpgradeJobOperator",
    "VerifySavepointOperator",
]


class CreateSavepointOperator(Waiting):
    """Takes a savepoint of a job: one for each run, however often the task runs.

    With `fresh_since` (a time), the task is skipped if one was captured since then, or if the job
    is suspended, changing or being captured by somebody else.
    """

    template_fields: Sequence[str] = (
        *Waiting.template_fields,
        "job",
        "tags",
        "verify",
        "retention",
        "fresh_since",
    )
    operator_extra_links = (JobLink(), SavepointLink())

    def __init__(
        self,
        *,
        job: str,
        trigger: str = "Periodic",
        tags: Sequence[str] | str = (),
        verify: str | None = None,
        retention: Mapping[str, Any] | None = None,
        fresh_since: str | None = None,
        purpose: str = "savepoint",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job, self.trigger, self.tags, self.verify = job, trigger, tags, verify
        self.retention, self.fresh_since, self.purpose = retention, fresh_since, purpose

    def execute(self, context: Context) -> Any:
        """Adopt what the run has, or ask for one; then wait until it is complete."""
        with telling():
            cluster = self.open_cluster()
            wanted = Wanted(
                job=self.job,
                key=key_of_run(
                    context, namespace=cluster.namespace, job=self.job, purpose=self.purpose
                ),
                run=f"{context['dag_run'].dag_id} {run_of(context)}",
                trigger=self.trigger,
                tags=_words(self.tags),
                verify=self.verify or None,
                retention=self.retention or {},
                fresh_since=moment_of(self.fresh_since),
            )
            found = ensure_savepoint(cluster, wanted, now=datetime.now(UTC))
            if isinstance(found, Skip):
                raise AirflowSkipException(f"{self.job}: {found.reason}")
            name = str(metadata(found)["name"])
            self.log.info("Savepoint %s of job %s/%s", name, cluster.namespace, self.job)
            self.show(cluster, job=self.job, savepoint=name)
            # A job may be gone by the time that its savepoint is found again.
            job = spec_of(find(cluster, JOBS, self.job) or {}).get("savepoints") or {}
            level = spec_of(found).get("verify") or job.get("verify") or "Skip"
            self.wait_for(cluster, SAVEPOINTS, [name], goals.taken(checked=level != "Skip"))
        return name


def _words(given: Sequence[str] | str) -> tuple[str, ...]:
    """A list, or a text with commas, which is what a template makes."""
    parts = given.split(",") if isinstance(given, str) else given
    return tuple(part.strip() for part in parts if part.strip())


class VerifySavepointOperator(Waiting):
    """Has a complete savepoint checked again: `Content` reads every byte, `Deep` loads its state.

    Fails if it is damaged. The resource of the check stays for whoever wants to read the verdict.
    """

    template_fields: Sequence[str] = (*Waiting.template_fields, "savepoint", "level")
    operator_extra_links = (SavepointLink(),)

    def __init__(
        self, *, savepoint: str, level: str = "Deep", purpose: str = "check", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.savepoint, self.level, self.purpose = savepoint, level, purpose

    def execute(self, context: Context) -> Any:
        """Ask for the check, and wait for its verdict."""
        with telling():
            cluster = self.open_cluster()
            key = key_of_run(
                context, namespace=cluster.namespace, job=self.savepoint, purpose=self.purpose
            )
            run = f"{context['dag_run'].dag_id} {run_of(context)}"
            _, check = ensure_check(cluster, self.savepoint, level=self.level, key=key, run=run)
            name = str(metadata(check)["name"])
            self.show(cluster, savepoint=self.savepoint)
            self.wait_for(cluster, SAVEPOINTS, [name], goals.taken(checked=True))
        return name


class RetainSavepointsOperator(Waiting):
    """Removes savepoints: those of a plan that was shown, as far as a plan made now agrees.

    `plan` is one job's, and `rules` what it was made by, as the cleanup's task `plan` has them.
    Does not wait: `CollectGarbageOperator` does.
    """

    template_fields: Sequence[str] = (*Waiting.template_fields, "plan", "rules")

    def __init__(
        self, *, plan: Mapping[str, Any], rules: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.plan, self.rules = plan, rules or {}

    def execute(self, context: Context) -> Any:
        """Remove them; what was asked of the operator, and what stays after all."""
        # Here and not above: what reads a DAG must not pay for the rules of retention.
        from sparkpoint.airflow.work.cleanup import apply_plan, cleanup_of

        with telling():
            done = apply_plan(
                self._hook().cluster,
                self.plan,
                cleanup=cleanup_of(self.rules),
                data=bool(self.rules.get("delete_data", True)),
                now=datetime.now(UTC),
            )
        for name in done.asked:
            self.log.info("Removing %s", name)
        for name, reason in done.left.items():
            self.log.warning("%s stays: %s", name, reason)
        return done.document()


class CollectGarbageOperator(Waiting):
    """Waits until savepoints that were removed are gone: the operator deletes their data before,
    and frees what no other savepoint needs.

    `removed` is what `RetainSavepointsOperator` returned.
    """

    template_fields: Sequence[str] = (*Waiting.template_fields, "removed")

    def __init__(self, *, removed: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.removed = removed

    def execute(self, context: Context) -> Any:
        """Wait."""
        asked = dict(self.removed.get("asked") or {})
        if not asked:
            raise AirflowSkipException("Nothing was removed.")
        self.namespace = str(self.removed["namespace"])
        with telling():
            cluster = self.open_cluster()
            goal = goals.gone(asked, since=self.removed.get("since"))
            self.sleep_until(cluster, SAVEPOINTS, sorted(asked), goal)
        return sorted(asked)


class RestoreDrillOperator(Waiting):
    """Restores a savepoint into a throw-away job, and waits until that has committed.

    The job says by an annotation how its copy is kept from writing to the same place; without it,
    the task is skipped. Whoever starts a drill ends it: see `sparkpoint.airflow.work.drills`.
    """

    template_fields: Sequence[str] = (*Waiting.template_fields, "job", "savepoint")
    operator_extra_links = (JobLink(), SavepointLink())

    def __init__(self, *, job: str, savepoint: str, purpose: str = "drill", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job, self.savepoint, self.purpose = job, savepoint, purpose

    def execute(self, context: Context) -> Any:
        """Make the copy, and wait until all its queries run and have committed."""
        with telling():
            cluster = self.open_cluster()
            if not settings_of(find_job(cluster, self.job)):
                raise AirflowSkipException(
                    f"{self.job} does not say where a copy of it would write ({SETTINGS})."
                )
            key = key_of_run(
                context, namespace=cluster.namespace, job=self.savepoint, purpose=self.purpose
            )
            run = f"{context['dag_run'].dag_id} {run_of(context)}"
            copy = ensure_drill(cluster, self.job, savepoint=self.savepoint, key=key, run=run)
            name = str(metadata(copy)["name"])
            self.log.info("Restoring %s into %s/%s", self.savepoint, cluster.namespace, name)
            self.show(cluster, job=name, savepoint=self.savepoint)
            self.wait_for(cluster, JOBS, [name], goals.runs())
        return name


class UpgradeJobOperator(Waiting):
    """Changes the spec of a job, and waits until the change is carried out and has proven itself.

    `change` names the fields that change and no others (a JSON merge patch of the spec). Fails if
    the operator rolls it back, holds it back, or somebody else changes the same fields.
    """

    template_fields: Sequence[str] = (*Waiting.template_fields, "job", "change")
    operator_extra_links = (JobLink(),)

    def __init__(self, *, job: str, change: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job, self.change = job, change or {}

    def execute(self, context: Context) -> Any:
        """Change it, unless it is changed, and wait."""
        with telling():
            cluster = self.open_cluster()
            before = find(cluster, JOBS, self.job)
            body = ensure_change(cluster, self.job, self.change)
            generation = metadata(body).get("generation")
            same = before is not None and metadata(before).get("generation") == generation
            self.log.info(
                "Job %s/%s: %s, generation %s",
                cluster.namespace, self.job, "changed already" if same else "changed", generation,
            )  # fmt: skip
            self.show(cluster, job=self.job)
            goal = goals.changed(goals.as_written(self.change, spec_of(body)))
            self.wait_for(cluster, JOBS, [self.job], goal)
        return self.job


class RescaleJobOperator(UpgradeJobOperator):
    """Gives a job so many executors, and waits until it runs with them."""

    template_fields: Sequence[str] = (*UpgradeJobOperator.template_fields, "instances")

    def __init__(self, *, instances: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.instances = instances

    def execute(self, context: Context) -> Any:
        """As an upgrade, of this one field."""
        with telling():
            self.change = rescaling(self.open_cluster(), self.job, self.instances)
        return super().execute(context)
