"""Start everything, run the script, and end as it should."""

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NoReturn, Protocol

import pyspark

from sparkpoint.runtime.ending import Cause, refusal
from sparkpoint.runtime.epochs import open_epoch_directory
from sparkpoint.runtime.errors import RefusedError, ScriptOver
from sparkpoint.runtime.exits import Exit
from sparkpoint.runtime.hooks import install_hooks, stop_spark
from sparkpoint.runtime.job import RunningJob
from sparkpoint.runtime.model import EndReason, Termination
from sparkpoint.runtime.options import AgentOptions, Options, parse_options
from sparkpoint.runtime.script import ScriptEnd, run_script
from sparkpoint.runtime.signals import Signals
from sparkpoint.runtime.termination import flush_streams, render, say, write_termination
from sparkpoint.runtime.threads import await_threads

__all__ = ["main"]

_UNWIND_AFTER = 2.0
"""How long a script has to end by itself once its queries stand."""
_EXIT_AFTER = 2.0
"""And how long its `finally` blocks have then."""
_SPARK_SECONDS = 5.0
"""How long Spark has to dismiss its executors, if the script has not stopped it."""

logger = logging.getLogger("sparkpoint.runtime")


def main(arguments: Sequence[str]) -> int:
    """Run a driver to its end; the exit code."""
    _log_to_stderr()
    log, epoch = _termination_log(arguments), 0
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
        directory = open_epoch_directory(options.epoch_dir, options.expect)
        self._job = RunningJob(options, directory)
        self._signals = Signals(self._signalled)
        self._interrupts = 0
        self._telling = threading.Lock()
        self._told: Termination | None = None
        self._agent: _Closable | None = None

    def run(self) -> int:
        """Until the script has ended and every query stands."""
        if self._options.agent is not None:
            self._agent = _start_agent(self._job, self._options, self._options.agent)
        self._signals.install()
        install_hooks(self._job)
        threading.Thread(target=self._oversee, name="sparkpoint-end", daemon=True).start()
        self._job.script_ended(self._run_script())
        self._job.await_release()
        code = self._conclude()
        stop_spark(_SPARK_SECONDS)
        return code

    def _run_script(self) -> ScriptEnd:
        self._signals.runs_script = True
        try:
            end = run_script(self._options.script, self._options.arguments)
            # Python ends when the last thread does that is not a daemon.
            await_threads(lambda: self._job.is_released)
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
        spark_version=pyspark.__version__,
    )
    try:
        token = agent.token_file.read_text().strip()
        return start_agent(job, host=agent.host, port=agent.port, token=token, savepoints=settings)
    except AgentError as error:
        raise RefusedError(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        message = f"The agent's token cannot be read from {agent.token_file}: {error}"
        raise RefusedError(message) from error


def _tell(termination: Termination, log: Path | None) -> None:
    write_termination(termination, log)
    say(f"sparkpoint: {render(termination)}")


def _termination_log(arguments: Sequence[str]) -> Path | None:
    """Where the last word goes when the command line itself is wrong."""
    for name, value in pairwise(arguments):
        if name == "--":
            return None
        if name == "--termination-log":
            return Path(value)
    return None


def _log_to_stderr() -> None:
    """Our own lines, whatever the script makes of the root logger."""
    ours = logging.getLogger("sparkpoint")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s sparkpoint: %(message)s"))
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False
