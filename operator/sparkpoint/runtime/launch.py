"""Start everything, run the script, and end as it should."""

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, Protocol

import pyspark

from sparkpoint.runtime.ending import Cause, incompatible, refusal
from sparkpoint.runtime.epochs import open_epoch_directory
from sparkpoint.runtime.errors import RefusedError, ScriptOver
from sparkpoint.runtime.exits import Exit
from sparkpoint.runtime.hooks import Hooks
from sparkpoint.runtime.job import RunningJob
from sparkpoint.runtime.memory import MemoryWatch
from sparkpoint.runtime.model import EndReason, RehearsalInfo, Termination
from sparkpoint.runtime.options import (
    AgentOptions,
    Options,
    RehearsalOptions,
    RestoreOptions,
    parse_options,
    termination_log_of,
)
from sparkpoint.runtime.rehearsal import Rehearsal
from sparkpoint.runtime.restoring import Restoring
from sparkpoint.runtime.scratch import Scratch, scratch_beside
from sparkpoint.runtime.script import ScriptEnd, run_script, surroundings_kept
from sparkpoint.runtime.sessions import stop_spark
from sparkpoint.runtime.signals import Signals
from sparkpoint.runtime.termination import (
    flush_streams,
    redacted,
    render,
    say,
    write_termination,
)
from sparkpoint.runtime.threads import await_threads
from sparkpoint.runtime.trials import Trials
from sparkpoint.storage import Store

__all__ = ["main"]

_UNWIND_AFTER = 2.0
"""How long a script has to end by itself once its queries stand."""
_EXIT_AFTER = 5.0
"""And how long its `finally` blocks have then."""
_SPARK_SECONDS = 5.0
"""How long Spark has to dismiss its executors, if the script has not stopped it."""

logger = logging.getLogger("sparkpoint.runtime")


def main(arguments: Sequence[str]) -> int:
    """Run a driver to its end; the exit code."""
    _log_to_stderr()
    log, epoch = termination_log_of(arguments), 0
    try:
        options = parse_options(arguments)
        log, epoch = options.termination_log, options.epoch
        return _Driver(options).run()
    except RefusedError as error:
        told = refusal(EndReason.REFUSED, str(error), exit_code=Exit.REFUSED, epoch=epoch)
    except Exception as error:
        traceback.print_exc()
        message = f"A fault of Sparkpoint: {type(error).__name__}: {error}"
        told = refusal(EndReason.INTERNAL, message, exit_code=Exit.INTERNAL, epoch=epoch)
    _tell(told, log)
    return told.exit_code


class _Driver:
    """One run of one script."""

    def __init__(self, options: Options) -> None:
        self._options = options
        # What is to be restored is not there yet.
        expect = options.expect if options.restore is None else "any"
        directory = open_epoch_directory(
            options.epoch_dir, expect, endpoint_url=options.endpoint_url
        )
        self._directory = directory
        self._scratch = _scratch(directory, options)
        self._job = RunningJob(options, directory)
        self._hooks = Hooks(self._job)
        self._signals = Signals(self._signalled)
        self._interrupts = 0
        self._telling = threading.Lock()
        self._told: Termination | None = None
        self._agent: _Closable | None = None
        self._memory = MemoryWatch()

    def run(self) -> int:
        """Until the script has ended and every query stands."""
        if self._scratch is not None:
            # Of a driver before us that was killed.
            self._scratch.remove_leftover()
        if self._options.agent is not None:
            self._agent = _start_agent(self._job, self._options, self._options.agent)
        self._signals.install()
        self._hooks.install()
        threading.Thread(target=self._oversee, name="sparkpoint-end", daemon=True).start()
        if self._options.restore is not None:
            self._restore(self._options.restore)
        if self._options.rehearsal is not None and self._scratch is not None:
            self._rehearse(self._options.rehearsal, self._scratch)
        if not self._job.is_ending:
            self._job.script_ended(self._run_script(lambda: self._job.is_released))
        self._job.await_release()
        code = self._conclude()
        if self._options.rehearsal is not None and self._scratch is not None:
            # An executor that was slow may have written something after all.
            self._scratch.remove_leftover()
        stop_spark(_SPARK_SECONDS)
        return code

    def _restore(self, options: RestoreOptions) -> None:
        job, endpoint = self._options.job, self._options.endpoint_url
        self._job.restore(Restoring(options, self._directory, job=job, endpoint_url=endpoint))

    def _rehearse(self, options: RehearsalOptions, scratch: Scratch) -> None:
        """Find out whether the queries can go on from a savepoint, before any of them does."""
        rehearsal = Rehearsal(
            options,
            scratch,
            Trials(scratch, functions=options.functions),
            job=self._options.job,
            is_called_off=lambda: self._job.is_ending,
            nudge=self._signals.nudge_script,
        )
        self._job.rehearse(rehearsal)
        logger.info("Rehearsing on savepoint %s, in %s", options.savepoint, scratch.uri)
        scratch.begin(options, job=self._options.job, endpoint_url=self._options.endpoint_url)
        self._hooks.script = rehearsal
        try:
            with surroundings_kept():
                info = rehearsal.perform(
                    lambda: self._run_script(lambda: rehearsal.is_over),
                    lambda message: self._job.end(Cause(EndReason.REFUSED, message)),
                )
        finally:
            self._hooks.script = self._job
        _log_verdict(info)
        if info.verdict == "incompatible" and not self._options.gated:
            self._job.end(incompatible(info))

    def _run_script(self, give_up: Callable[[], bool]) -> ScriptEnd:
        self._signals.runs_script = True
        try:
            end = run_script(self._options.script, self._options.arguments)
            # Python ends when the last thread does that is not a daemon.
            await_threads(give_up)
        except ScriptOver:
            end = ScriptEnd(Exit.OK)
        finally:
            self._signals.runs_script = False
        return end

    def _oversee(self) -> None:
        """When the job was ended from outside, see to it that the process ends, too."""
        cause = self._job.await_release()
        if cause.is_script:
            return
        self._conclude()
        time.sleep(_UNWIND_AFTER)
        self._signals.unwind_script()
        time.sleep(_EXIT_AFTER)
        self._exit_now()

    def _signalled(self, number: signal.Signals) -> None:
        if number is signal.SIGINT:
            self._interrupts += 1
        if self._interrupts > 1:
            logger.warning("A second SIGINT: ending at once")
            self._exit_now()
        if not self._job.end(Cause(EndReason.TERMINATED, f"{number.name} was received.")):
            self._job.release_after(self._options.stop_budget)

    def _conclude(self) -> int:
        """Say the last word, again if there is more to say now."""
        with self._telling:
            termination = self._job.termination()
            if termination.exit_code != 0 and self._memory.has_killed():
                termination = termination.model_copy(update={"out_of_memory": True})
            if termination != self._told:
                _tell(termination, self._options.termination_log)
                self._told = termination
        # Whoever waits for an answer has it: nobody holds the process any more.
        if self._agent is not None:
            self._agent.close()
        return termination.exit_code

    def _exit_now(self) -> NoReturn:
        code = self._conclude()
        flush_streams()
        os._exit(code)


class _Closable(Protocol):
    def close(self) -> None: ...


def _scratch(directory: Store, options: Options) -> Scratch | None:
    """The place for rehearsals; it may hold what a driver that was killed has left."""
    scratch = scratch_beside(directory.uri, options.endpoint_url)
    if scratch is None and options.rehearsal is not None:
        raise RefusedError(
            f"There is no place for a rehearsal beside the epoch directory {directory.uri}. Choose "
            "one that is a folder of another folder or of a bucket."
        )
    return scratch


def _log_verdict(info: RehearsalInfo) -> None:
    for name, query in info.queries.items():
        error = query.error
        said = [f"{error.type}: {error.message}", error.remedy] if error else [query.note]
        text = "".join(f" {part}" for part in said if part)
        level = logging.INFO if query.verdict == "compatible" else logging.WARNING
        logger.log(level, "Rehearsal: query %s is %s.%s", name, query.verdict, text)
    if info.error is not None:
        logger.warning("Rehearsal: %s: %s", info.error.type, info.error.message)
    logger.info("Rehearsed on savepoint %s: %s", info.savepoint, info.verdict)


def _start_agent(job: RunningJob, options: Options, agent: AgentOptions) -> _Closable:
    # Late: whoever runs without an agent does without its libraries.
    from sparkpoint.runtime.agent.errors import AgentError
    from sparkpoint.runtime.agent.server import start_agent
    from sparkpoint.runtime.orders import CaptureSettings

    namespace, _, name = options.job.partition("/")
    settings = CaptureSettings(
        namespace=namespace,
        job=name,
        epoch=options.epoch,
        epoch_dir=options.epoch_dir,
        endpoint_url=options.endpoint_url,
        revision=options.revision,
        spark_version=pyspark.__version__,
    )
    token = _token(agent.token_file)
    try:
        started = start_agent(
            job, host=agent.host, port=agent.port, token=token, savepoints=settings
        )
    except AgentError as error:
        raise RefusedError(str(error)) from error
    try:
        if agent.url_file is not None:
            _write_url(agent.url_file, started.url)
    except OSError as error:
        started.close()
        message = f"The agent's URL cannot be written to {agent.url_file}: {error}"
        raise RefusedError(message) from error
    return started


def _token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"The agent's token cannot be read from {path}: {error}") from error


def _write_url(path: Path, url: str) -> None:
    """Whole or not at all: whoever waits for the file reads it as soon as it is there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(f"{url}\n")
    beside.replace(path)


def _tell(termination: Termination, log: Path | None) -> None:
    write_termination(termination, log)
    say(f"sparkpoint: {render(redacted(termination))}")


def _log_to_stderr() -> None:
    """Our own lines, whatever the script makes of the root logger."""
    ours = logging.getLogger("sparkpoint")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s sparkpoint: %(message)s"))
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False
