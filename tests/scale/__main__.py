"""`python -m tests.scale CLUSTER [SECONDS]`: play the pods of a cluster without nodes.

Until a signal. So many seconds each savepoint of a running driver takes.
"""

import asyncio
import logging
import resource
import sys

from dev.cluster.layout import find_layout
from tests.scale.api import connected
from tests.scale.pods import Pods


async def _play(name: str, taking: float) -> None:
    layout = find_layout(name)
    if layout is None:
        sys.exit(f"no cluster {name}")
    async with connected(layout) as api:
        await Pods(api, taking=taking).play()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    # A listener for each driver, and a connection to each that is asked.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
    asyncio.run(_play(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
