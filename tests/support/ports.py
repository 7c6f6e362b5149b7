"""Ports on loopback where nobody answers, or where others may knock."""

import contextlib
import socket
from collections.abc import Iterator

__all__ = ["asked", "closed_port"]


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """Nobody listens there, and nobody else gets it meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def asked(server: socket.socket, path: str) -> socket.socket:
    """The connection that brings a request with this in it: other tests may knock at ports that
    were theirs."""
    server.settimeout(120)
    while True:
        connection, _ = server.accept()
        connection.settimeout(120)
        if path.encode() in connection.recv(100):
            return connection
        connection.close()
