"""What can go wrong between the command line and a cluster.

ClusterError
├── ClientMissingError    the Kubernetes client is not installed
├── NoClusterError        no kubeconfig, or no such context
├── UnavailableError      no answer, or none that counts; asking again helps
├── DeniedError           not logged in, or a right is missing
├── NotFoundError         no such job, savepoint, revision or pod
├── AlreadyExistsError    something else has that name
├── ConflictError         somebody else changed it meanwhile
└── RefusedError          possible to say, but not to do; nothing was changed
"""

__all__ = [
    "AlreadyExistsError",
    "ClientMissingError",
    "ClusterError",
    "ConflictError",
    "DeniedError",
    "NoClusterError",
    "NotFoundError",
    "RefusedError",
    "UnavailableError",
]


class ClusterError(Exception):
    """The cluster did not do what was asked."""

    retry_helps = False


class ClientMissingError(ClusterError):
    """The command line was installed without its Kubernetes part."""

    def __init__(self) -> None:
        super().__init__(
            "`sparkpoint job` needs the Kubernetes client: pip install 'sparkpoint[kubernetes]'"
        )


class NoClusterError(ClusterError):
    """It is not known which cluster is meant, or how to log in to it."""


class UnavailableError(ClusterError):
    """The API server did not answer, or is too busy."""

    retry_helps = True


class DeniedError(ClusterError):
    """The API server does not know us, or does not let us."""


class NotFoundError(ClusterError):
    """There is no such object."""


class AlreadyExistsError(ClusterError):
    """Something else has that name."""


class ConflictError(ClusterError):
    """It changed since it was read."""

    retry_helps = True


class RefusedError(ClusterError):
    """It would be unsafe, or the API server refuses it; nothing was changed."""
