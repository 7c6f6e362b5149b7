"""Whether what kopf watches was listed once, which it tells nobody.

kopf lists a resource again and again, in silence, until the list has ended, and watches it from
then on. So its first request for a watch says that the list has ended, also where it was empty.
"""

from types import SimpleNamespace

import aiohttp

from sparkpoint.controller.pulse import Pulse

__all__ = ["watched"]


def watched(pulse: Pulse) -> aiohttp.TraceConfig:
    """For the session that kopf gets: lets the pulse know of each watch that begins."""

    async def notice(
        _: aiohttp.ClientSession, __: SimpleNamespace, request: aiohttp.TraceRequestStartParams
    ) -> None:
        if request.url.query.get("watch") == "true":
            pulse.listed(request.url.path)

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(notice)
    return trace
