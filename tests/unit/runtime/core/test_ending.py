"""What an end means: one table."""

import pytest

from sparkpoint.runtime.ending import Cause, Ending, conclude, script_cause
from sparkpoint.runtime.model import EndReason, ErrorInfo, QueryEnd, StopReport
from sparkpoint.runtime.script import ScriptEnd

ERROR = ErrorInfo(type="ValueError", message="no")
GOOD = QueryEnd(batch=3, clean=True)
OPEN = QueryEnd(batch=3, clean=False)
DEAD = QueryEnd(batch=3, clean=False, error=ErrorInfo(type="STREAM_FAILED", message="boom"))
RAISED = ScriptEnd(1, ERROR)
EXITED = ScriptEnd(7, ErrorInfo(type="SystemExit", message="7"))
DONE = ScriptEnd(0)
SCRIPT = "script"


def ending(reason: EndReason | str, end: QueryEnd, script: ScriptEnd | None, policy: str) -> Ending:
    if reason == SCRIPT:
        assert script is not None
        cause = script_cause(script)
    else:
        cause = Cause(EndReason(reason), "because")
    report = StopReport(clean=end.clean and not end.error, queries={"q": end}, seconds=1)
    return Ending(
        epoch=1,
        cause=cause,
        report=report,
        script=script,
        made_session=True,
        on_query_failure="ignore" if policy == "ignore" else "fail",
    )


@pytest.mark.parametrize(
    ("reason", "query", "script", "policy", "verdict", "code"),
    [
        (SCRIPT, GOOD, DONE, "fail", EndReason.SCRIPT_ENDED, 0),
        (SCRIPT, OPEN, DONE, "fail", EndReason.SCRIPT_ENDED, 0),
        (SCRIPT, GOOD, RAISED, "fail", EndReason.SCRIPT_FAILED, 1),
        (SCRIPT, GOOD, EXITED, "fail", EndReason.SCRIPT_FAILED, 7),
        # A dead query behind a script that ended well, or that passed its exception on.
        (SCRIPT, DEAD, DONE, "fail", EndReason.QUERY_FAILED, 80),
        (SCRIPT, DEAD, RAISED, "fail", EndReason.QUERY_FAILED, 1),
        (SCRIPT, DEAD, DONE, "ignore", EndReason.SCRIPT_ENDED, 0),
        (SCRIPT, DEAD, RAISED, "ignore", EndReason.SCRIPT_FAILED, 1),
        (EndReason.QUERY_FAILED, DEAD, None, "fail", EndReason.QUERY_FAILED, 80),
        (EndReason.QUERY_FAILED, DEAD, DONE, "fail", EndReason.QUERY_FAILED, 80),
        (EndReason.QUERY_FAILED, DEAD, RAISED, "fail", EndReason.QUERY_FAILED, 1),
        # Whatever the script makes of a stop, a clean one is no failure.
        (EndReason.STOPPED, GOOD, None, "fail", EndReason.STOPPED, 0),
        (EndReason.STOPPED, GOOD, RAISED, "fail", EndReason.STOPPED, 0),
        (EndReason.STOPPED, OPEN, DONE, "fail", EndReason.STOPPED, 81),
        (EndReason.TERMINATED, GOOD, EXITED, "fail", EndReason.TERMINATED, 0),
        (EndReason.TERMINATED, DEAD, RAISED, "fail", EndReason.TERMINATED, 81),
        (EndReason.GATE_NOT_OPENED, GOOD, DONE, "fail", EndReason.GATE_NOT_OPENED, 82),
        (EndReason.EPOCH_OVER, OPEN, None, "fail", EndReason.EPOCH_OVER, 82),
        (EndReason.INTERNAL, GOOD, None, "fail", EndReason.INTERNAL, 84),
    ],
)
def test_reason_and_exit_code(
    reason: EndReason | str,
    query: QueryEnd,
    script: ScriptEnd | None,
    policy: str,
    verdict: EndReason,
    code: int,
) -> None:
    termination = conclude(ending(reason, query, script, policy))

    assert (termination.reason, termination.exit_code) == (verdict, code)


@pytest.mark.parametrize(
    ("made", "said"), [(True, "no query was started"), (False, "no Spark session was made")]
)
def test_a_script_without_a_query_is_told_so(made: bool, said: str) -> None:
    report = StopReport(clean=True, queries={}, seconds=0)
    cause = script_cause(DONE)

    termination = conclude(
        Ending(epoch=1, cause=cause, report=report, script=DONE, made_session=made)
    )

    assert said in termination.message
    assert termination.exit_code == 0
