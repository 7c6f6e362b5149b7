"""What the operator counts about itself, in the text format that Prometheus reads."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Final

__all__ = ["Metrics"]

_BUCKETS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class Metrics:
    """Counters of one operator; read from the same event loop that writes them."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._passes: Counter[tuple[str, str]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._phases: dict[tuple[str, object], str] = {}

    def passed(self, kind: str, result: str, seconds: float) -> None:
        """A pass over a resource has ended."""
        self._passes[kind, result] += 1
        # Counter is typed for whole numbers, and adds any.
        self._seconds[kind] += seconds  # type: ignore[assignment]
        for bound in _BUCKETS:
            if seconds <= bound:
                self._buckets[kind, bound] += 1

    def asked(self, verb: str, resource: str) -> None:
        """A request goes to the API server."""
        self._requests[verb, resource] += 1

    def seen(self, kind: str, key: object, phase: str) -> None:
        """A resource is in this phase."""
        self._phases[kind, key] = phase

    def gone(self, kind: str, key: object) -> None:
        """A resource is no more."""
        self._phases.pop((kind, key), None)

    @property
    def resources(self) -> int:
        """How many there are."""
        return len(self._phases)

    def render(self) -> str:
        """The page."""
        lines = [
            *self._pass_lines(),
            *self._duration_lines(),
            *self._phase_lines(),
            *self._request_lines(),
            *_processor_lines(),
        ]
        return "\n".join(lines) + "\n"

    def _pass_lines(self) -> Iterable[str]:
        yield "# HELP sparkpoint_operator_passes_total Passes over resources, by how they ended."
        yield "# TYPE sparkpoint_operator_passes_total counter"
        for (kind, result), count in sorted(self._passes.items()):
            yield f'sparkpoint_operator_passes_total{{kind="{kind}",result="{result}"}} {count}'

    def _duration_lines(self) -> Iterable[str]:
        name = "sparkpoint_operator_pass_duration_seconds"
        yield f"# HELP {name} How long passes took."
        yield f"# TYPE {name} histogram"
        for kind in sorted({kind for kind, _ in self._passes}):
            total = sum(count for (each, _), count in self._passes.items() if each == kind)
            for bound in _BUCKETS:
                count = self._buckets[kind, bound]
                yield f'{name}_bucket{{kind="{kind}",le="{bound}"}} {count}'
            yield f'{name}_bucket{{kind="{kind}",le="+Inf"}} {total}'
            yield f'{name}_sum{{kind="{kind}"}} {self._seconds[kind]:.6f}'
            yield f'{name}_count{{kind="{kind}"}} {total}'

    def _phase_lines(self) -> Iterable[str]:
        yield "# HELP sparkpoint_operator_resources Resources, by the phase that they are in."
        yield "# TYPE sparkpoint_operator_resources gauge"
        counts = Counter((kind, phase) for (kind, _), phase in self._phases.items())
        for (kind, phase), count in sorted(counts.items()):
            yield f'sparkpoint_operator_resources{{kind="{kind}",phase="{phase}"}} {count}'

    def _request_lines(self) -> Iterable[str]:
        name = "sparkpoint_operator_api_requests_total"
        yield f"# HELP {name} Requests to the API server, but for watches."
        yield f"# TYPE {name} counter"
        for (verb, resource), count in sorted(self._requests.items()):
            yield f'{name}{{verb="{verb}",resource="{resource}"}} {count}'


def _processor_lines() -> Iterable[str]:
    yield "# HELP process_cpu_seconds_total Processor time of this process, user and system."
    yield "# TYPE process_cpu_seconds_total counter"
    yield f"process_cpu_seconds_total {time.process_time():.6f}"
