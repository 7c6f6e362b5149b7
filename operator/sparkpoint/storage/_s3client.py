"""Clients for S3 servers: how patient they are, and what they may share."""

import functools
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

from sparkpoint.storage._s3errors import explained

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["PARALLEL", "connect"]

PARALLEL = 16
"""Requests that one store has under way at once."""


def connect(uri: str, endpoint_url: str | None = None) -> "S3Client":
    """A client with credentials from where boto3 usually finds them, looked up anew each time."""
    config = Config(
        connect_timeout=10,
        read_timeout=60,
        max_pool_connections=2 * PARALLEL,
        retries={"mode": "standard", "total_max_attempts": 5},
        # We check content by our own digests. Many servers reject boto3's default trailers.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if endpoint_url else "auto"},
    )
    with explained(uri):
        session = _session()
        region = session.region_name or ("us-east-1" if endpoint_url else None)
        return session.client("s3", region_name=region, endpoint_url=endpoint_url, config=config)


def _session() -> boto3.session.Session:
    """A session of its own, hence credentials of its own, over what never differs.

    Reading the description of S3 takes a tenth of a second; a command opens several places.
    """
    core, loader = botocore.session.Session(), _loader()
    core.register_component("data_loader", loader)
    before = list(loader.search_paths)
    session = boto3.session.Session(botocore_session=core)
    # boto3 adds its own folder to the loader every time.
    loader.search_paths[:] = dict.fromkeys([*before, *loader.search_paths])
    return session


@functools.cache
def _loader() -> Loader:
    loader: Loader = botocore.session.Session().get_component("data_loader")
    return loader
