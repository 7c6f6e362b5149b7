"""The operator as a process: options, connections, kopf, and an orderly end."""

import asyncio
import gc
import logging
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import click
import kopf

from sparkpoint.controller.agents import Dial, dial_over
from sparkpoint.controller.apiserver import ApiServer
from sparkpoint.controller.claims import Claims
from sparkpoint.controller.clocks import OwnClock
from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, Cluster
from sparkpoint.controller.definitions import check_definitions
from sparkpoint.controller.errors import ClusterError, NotFoundError, UnfitError
from sparkpoint.controller.handlers import register
from sparkpoint.controller.health import serve_health
from sparkpoint.controller.leadership import (
    LEASE_NAME,
    FencedCluster,
    Leadership,
    fenced,
    identity_on,
)
from sparkpoint.controller.logs import LogFormat, configure_logs
from sparkpoint.controller.metrics import Metrics
from sparkpoint.controller.permissions import check_permissions
from sparkpoint.controller.settings import configure
from sparkpoint.controller.watches import watched
from sparkpoint.controller.wiring import Operator, put_together, utc_now

__all__ = ["main"]

logger = logging.getLogger(__name__)

_KINDS: Final = 3
"""That are watched: jobs, savepoints and pods, in each namespace by itself."""
_CONNECTIONS: Final = 8
"""Of kopf, beside its watches: for what it lists before them."""
_CIRCLES: Final = (10_000, 20, 50)
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def _own_namespace() -> str | None:
    """That of the pod; None outside of one: then this is the only operator."""
    return _ACCOUNT.read_text().strip() if _ACCOUNT.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the operator was told."""

    namespaces: tuple[str, ...]
    """Empty: all of them."""
    context: str | None
    concurrency: int
    health_port: int
    lease_namespace: str | None
    """None: this is the only operator."""
    lease_name: str
    unsafe_pods: bool = False


@click.command(context_settings={"auto_envvar_prefix": "SPARKPOINT", "show_default": True})
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    help="Serve this namespace; may be repeated. Without it, all namespaces are served.",
)
@click.option("--context", help="Context of the kubeconfig, if the operator runs outside of a pod.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=50,
    help="How many resources are looked at at once.",
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    default=8080,
    help="Port of /healthz and /metrics; 0 for any free one.",
)
@click.option(
    "--lease-namespace",
    default=_own_namespace,
    help="Where the Lease is that lets one of several operators act; empty: there is but this one."
    "  [default: the pod's own]",
    show_default=False,
)
@click.option(
    "--lease-name",
    default=LEASE_NAME,
    help="Which Lease it is: operators that serve different namespaces need different ones.",
)
@click.option(
    "--allow-unsafe-pods",
    is_flag=True,
    help="Let pod templates have host paths, host networks, privileges and the like.",
)
@click.option("--log-format", type=click.Choice(["console", "json"]), default="console")
@click.option("--verbose", is_flag=True, help="Log every pass.")
def main(
    namespaces: tuple[str, ...],
    context: str | None,
    concurrency: int,
    health_port: int,
    lease_namespace: str | None,
    lease_name: str,
    allow_unsafe_pods: bool,
    log_format: LogFormat,
    verbose: bool,
) -> None:
    """Keep StatefulSparkJobs and SparkSavepoints as they are wished for."""
    configure_logs(log_format, verbose=verbose)
    # Of what is remembered of thousands of jobs, nothing is ever in a circle: Python looks for
    # circles after every 700 new objects, and through all of them now and then, for a second.
    gc.set_threshold(*_CIRCLES)
    options = Options(
        namespaces=namespaces,
        context=context,
        concurrency=concurrency,
        health_port=health_port,
        # Empty is how an environment or a chart says that there is none.
        lease_namespace=lease_namespace or None,
        lease_name=lease_name,
        unsafe_pods=allow_unsafe_pods,
    )
    try:
        asyncio.run(run(options))
    except ClusterError as error:
        raise click.ClickException(str(error)) from error
    except ExceptionGroup as group:
        # Of tasks that end each other; what we have no sentence for is shown as it is.
        known, unknown = group.split(ClusterError)
        if known is None or unknown is not None:
            raise
        raise click.ClickException(str(_first(known))) from group


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What an operator stands on."""

    options: Options
    cluster: ApiServer
    dial: Dial
    metrics: Metrics
    clock: OwnClock


async def run(options: Options) -> None:
    """Until a signal comes."""
    metrics, clock = Metrics(), OwnClock(utc_now)
    cluster = await ApiServer.connect(options.context, asked=metrics.asked, hear=clock.hear)
    async with aiohttp.ClientSession() as session:
        ground = _Ground(
            options=options,
            cluster=cluster,
            dial=dial_over(session),
            metrics=metrics,
            clock=clock,
        )
        try:
            await _check_ground(cluster, options)
            if options.lease_namespace is None:
                await _serve_alone(ground)
            else:
                await _serve_in_turn(ground, options.lease_namespace)
        finally:
            await cluster.close()


async def _serve_alone(ground: _Ground) -> None:
    """Act, as there is nobody else."""
    # Of this process alone: nothing else keeps it apart from one that is about to end.
    claims = _claims(ground.cluster, f"the operator of host {socket.gethostname()}")
    operator = put_together(
        ground.cluster,
        ground.dial,
        serves=claims.serves,
        concurrency=ground.options.concurrency,
        unsafe_pods=ground.options.unsafe_pods,
        metrics=ground.metrics,
    )
    try:
        await _serve(ground, operator, claims)
    finally:
        await claims.give_back()


async def _serve_in_turn(ground: _Ground, namespace: str) -> None:
    """Watch, and act while we hold the Lease."""
    options = ground.options
    leadership = Leadership(
        ground.cluster,
        namespace=namespace,
        identity=identity_on(socket.gethostname()),
        monotonic=time.monotonic,
        now=utc_now,
        name=options.lease_name,
    )
    acting = FencedCluster(ground.cluster, leadership)
    claims = _claims(acting, f"{namespace}/{options.lease_name}")
    operator = put_together(
        acting,
        fenced(ground.dial, leadership),
        may_act=leadership.holds,
        term=lambda: leadership.term,
        serves=claims.serves,
        concurrency=options.concurrency,
        unsafe_pods=options.unsafe_pods,
        metrics=ground.metrics,
    )
    async with asyncio.TaskGroup() as tasks:
        keeper = tasks.create_task(leadership.keep(), name="lease")
        await _serve(ground, operator, claims)
        keeper.cancel()


def _claims(cluster: Cluster, claimant: str) -> Claims:
    return Claims(cluster, claimant=claimant, monotonic=time.monotonic, now=utc_now)


async def _serve(ground: _Ground, operator: Operator, claims: Claims) -> None:
    registry, options = kopf.OperatorRegistry(), ground.options
    register(registry, operator)
    _log_in(registry, ground, watches=_KINDS * max(1, len(set(options.namespaces))))

    def notes() -> Sequence[str]:
        return [*ground.clock.notes(), *claims.notes()]

    async with serve_health(options.health_port, metrics=operator.metrics, notes=notes) as port:
        served = ", ".join(options.namespaces) or "all namespaces"
        logger.info("Serving %s; pages on port %d", served, port)
        try:
            async with asyncio.TaskGroup() as tasks:
                keeper = tasks.create_task(claims.keep(), name="claims")
                await kopf.operator(
                    registry=registry,
                    settings=configure(kopf.OperatorSettings()),
                    clusterwide=not options.namespaces,
                    namespaces=options.namespaces,
                )
                keeper.cancel()
        finally:
            await operator.close()


async def _check_ground(cluster: ApiServer, options: Options) -> None:
    """What would else be found out later, in the midst of something, or never."""
    place = options.lease_namespace
    lease = (place, options.lease_name) if place is not None else None
    await check_permissions(cluster, namespaces=options.namespaces, lease=lease)
    await _check_resources(cluster, options.namespaces)
    await check_definitions(cluster)


async def _check_resources(cluster: ApiServer, namespaces: Sequence[str]) -> None:
    """kopf looks for our resources once, at its start, and then waits for ever for none."""
    namespace = namespaces[0] if namespaces else "default"
    for kind in (JOBS, SAVEPOINTS):
        try:
            # All of them: with a selector, an API server whose cache is still filling answers 429.
            await cluster.list(kind, namespace, labels={})
        except NotFoundError as error:
            raise UnfitError(
                f"The API server knows no {kind.kind}: kubectl apply --server-side -f crds/"
            ) from error


def _log_in(registry: kopf.OperatorRegistry, ground: _Ground, *, watches: int) -> None:
    """With connections that are counted: kopf itself opens one for each of a thousand requests that
    it has at once, and each has a quarter of a megabyte of buffers."""
    pulse = ground.metrics.pulse
    pulse.expect(watches)

    @kopf.on.login(registry=registry)
    async def log_in(**_: Any) -> kopf.AiohttpSession:
        info = kopf.ConnectionInfo(**await ground.cluster.credentials())
        connector = aiohttp.TCPConnector(limit=watches + _CONNECTIONS, ssl=info.as_ssl_context())
        session = aiohttp.ClientSession(
            connector=connector, headers=info.as_http_headers(), trace_configs=[watched(pulse)]
        )
        return kopf.AiohttpSession(server=info.server, aiohttp_session=session)
