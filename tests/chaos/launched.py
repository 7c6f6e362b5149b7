"""The operator, held where a case wants it: python -m tests.chaos.launched FOLDER PARENT …"""

import os
import sys
import threading
import time
from pathlib import Path

from sparkpoint.controller.apiserver import ApiServer
from sparkpoint.controller.cluster import JOBS, Object
from sparkpoint.controller.main import main
from tests.chaos.breakpoints import Breakpoints


def hold_at(breakpoints: Breakpoints) -> None:
    """Look at every status of a job once the API server has taken it."""
    write = ApiServer.replace_status

    async def written(self: ApiServer, body: Object) -> Object:
        answer = await write(self, body)
        if body["kind"] == JOBS.kind:
            # All of the process stands still, as it would if it was about to die.
            breakpoints.pass_by(body["status"])
        return answer

    # mypy does not let methods be replaced; that is what this is for.
    ApiServer.replace_status = written  # type: ignore[method-assign]


def end_with(parent: int) -> None:
    """Whoever plays with this operator may be killed: nobody else would end it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    hold_at(Breakpoints(Path(sys.argv.pop(1))))
    threading.Thread(target=end_with, args=[int(sys.argv.pop(1))], daemon=True).start()
    main(prog_name="python -m sparkpoint.controller")
