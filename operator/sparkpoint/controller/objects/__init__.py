"""The Kubernetes objects of a job, as plain JSON: functions of its spec and its run, nothing else.

No API server, no clock, no randomness: the same spec and run make the same objects, so that an
effect that was repeated finds what it made before.
"""

from sparkpoint.controller.objects.access import agent_secret, ui_service
from sparkpoint.controller.objects.driver import (
    Expectation,
    Repository,
    driver_objects,
    repository_of,
)
from sparkpoint.controller.objects.manifest import (
    LABELS,
    Manifest,
    Owner,
    attempt_labels,
    epoch_labels,
    job_labels,
    worker_labels,
)
from sparkpoint.controller.objects.places import (
    AGENT_PORT,
    LOCAL_DIRECTORY,
    agent_secret_name,
    epoch_directory,
    job_directory,
    script_path,
)
from sparkpoint.controller.objects.safety import unsafe_parts, unsafe_templates
from sparkpoint.controller.objects.stored import (
    controller_revision,
    controller_revision_name,
    script_of,
    spec_of,
)
from sparkpoint.controller.objects.template import template_errors, unfit_templates
from sparkpoint.controller.objects.workers import spark_worker_objects, worker_pod

__all__ = [
    "AGENT_PORT",
    "LABELS",
    "LOCAL_DIRECTORY",
    "Expectation",
    "Manifest",
    "Owner",
    "Repository",
    "agent_secret",
    "agent_secret_name",
    "attempt_labels",
    "controller_revision",
    "controller_revision_name",
    "driver_objects",
    "epoch_directory",
    "epoch_labels",
    "job_directory",
    "job_labels",
    "repository_of",
    "script_of",
    "script_path",
    "spark_worker_objects",
    "spec_of",
    "template_errors",
    "ui_service",
    "unfit_templates",
    "unsafe_parts",
    "unsafe_templates",
    "worker_labels",
    "worker_pod",
]
