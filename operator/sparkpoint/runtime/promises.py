"""Whether a query can keep what its job promises about output, as far as that can be known. Pure.

What a function of `foreachBatch` or `foreach` does when a batch comes again is known to its author
alone, so it is believed.
"""

from sparkpoint.runtime.writing import Traits

__all__ = ["broken_promises"]

_SINKS = {
    "kafka": "the sink kafka has the rows of a batch twice if it is interrupted and done again",
    "memory": "the sink memory is gone with the driver",
    "console": "the sink console keeps nothing, and shows a batch again that is done again",
}
_SOURCES = {"socket": "the source socket cannot give the same rows again"}
_CONTINUOUS = "a continuous trigger makes rows twice after an interruption"
_ASYNCHRONOUS = (
    "asyncProgressTrackingEnabled writes down batches late, so that several are done again after "
    "an interruption"
)


def broken_promises(traits: Traits) -> list[str]:
    """Why its output is not exactly once; nothing if nothing speaks against it."""
    found = [_SINKS.get((traits.sink or "").lower())]
    found += [_SOURCES.get(source.lower()) for source in sorted(set(traits.sources))]
    found.append(_CONTINUOUS if traits.is_continuous else None)
    found.append(_ASYNCHRONOUS if traits.is_asynchronous else None)
    return [reason for reason in found if reason is not None]
