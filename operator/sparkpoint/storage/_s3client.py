"""Clients for S3 servers: how patient they are, and what they may share."""

import contextlib
import functools
import gzip
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import JSONFileLoader, Loader, create_loader
from botocore.utils import parse_timestamp
from pydantic_core import from_json

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
    core = botocore.session.Session()
    loader = _loader(core.get_config_variable("data_path"))
    core.register_component("data_loader", loader)
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
    before = list(loader.search_paths)
    session = boto3.session.Session(botocore_session=core)
    # boto3 adds its own folder to the loader every time.
    loader.search_paths[:] = dict.fromkeys([*before, *loader.search_paths])
    return session


def _moment(value: str | float) -> datetime:
    """Every entry of a listing has one: what reads any form takes most of the listing's time."""
    with contextlib.suppress(ValueError, TypeError):
        found = datetime.fromisoformat(value)  # type: ignore[arg-type]
        if found.tzinfo is not None:
            return found
    return parse_timestamp(str(value))


@functools.cache
def _loader(data_path: str | None) -> Loader:
    """`data_path`: the user's own folders of descriptions."""
    loader: Loader = create_loader(data_path)
    loader.file_loader = _Descriptions()
    return loader


class _Descriptions(JSONFileLoader):
    """What botocore's own does in a quarter of the time, which every command begins with."""

    def load_file(self, file_path: str) -> Any:
        """Its content, packed or not; None if there is none."""
        for ending, opened in _OPENED.items():
            with contextlib.suppress(FileNotFoundError), opened(file_path + ending, "rb") as file:
                return from_json(file.read())
        return None


_OPENED: Mapping[str, Callable[..., Any]] = {".json": open, ".json.gz": gzip.open}
