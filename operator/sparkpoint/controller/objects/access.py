"""How a driver is reached: the token of its agent, and the Service of Spark's own pages."""

import base64

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.keys import ROLE
from sparkpoint.controller.objects.manifest import (
    Manifest,
    Owner,
    epoch_labels,
    job_labels,
    manifest,
)
from sparkpoint.controller.objects.places import agent_secret_name, ui_port

__all__ = ["agent_secret", "ui_service"]


def agent_secret(owner: Owner, epoch: int, token: str) -> Manifest:
    """One token for all attempts of an epoch; whoever creates it first has chosen it."""
    return manifest(
        owner,
        "v1",
        "Secret",
        name=agent_secret_name(owner.name, epoch),
        labels=epoch_labels(owner, epoch),
        type="Opaque",
        immutable=True,
        data={"token": base64.b64encode(token.encode()).decode("ascii")},
    )


def ui_service(owner: Owner, spec: JobSpec) -> Manifest:
    """Leads to the driver that runs, whichever attempt it is, by our labels and not by Spark's."""
    port = ui_port(spec)
    return manifest(
        owner,
        "v1",
        "Service",
        name=f"{owner.name}-ui",
        labels=job_labels(owner),
        spec={
            "selector": {**job_labels(owner), ROLE: "driver"},
            "ports": [{"name": "spark-ui", "port": port, "targetPort": port}],
            # The pages are wanted most while the driver does not get ready.
            "publishNotReadyAddresses": True,
        },
    )
