"""`python -m tests.scale CLUSTER`: play the pods of a cluster without nodes, until a signal."""

import asyncio
import logging
import resource
import sys

from dev.cluster.layout import find_layout
from tests.scale.api import connected
from tests.scale.pods import Pods


async def _play(name: str) -> None:
    layout = find_layout(name)
    if layout is None:
        sys.exit(f"no cluster {name}")
    async with connected(layout) as api:
        await Pods(api).play()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    # A listener for each driver, and a connection to each that is asked.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
    asyncio.run(_play(sys.argv[1]))
