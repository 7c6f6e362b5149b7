"""Layers and image archives in OCI's format, written the same way every time.

Owner and times of files are set to constants: the same content gives the same digest, so a layer
that did not change is neither built nor loaded again.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["ImageConfig", "Layer", "folder_layer", "write_archive", "write_layer"]

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: an uncompressed tar and its digest."""

    path: Path
    digest: str

    @classmethod
    def of(cls, path: Path) -> "Layer":
        with path.open("rb") as file:
            return cls(path, "sha256:" + hashlib.file_digest(file, "sha256").hexdigest())


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What a container of the image runs, and as whom."""

    entrypoint: Sequence[str]
    user: str
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = "/"


def write_layer(path: Path, files: Mapping[str, Path]) -> Layer:
    """Write a layer of single files, each given as name in the image -> file here."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            _add(tar, files[name], name, readable=True)
    return Layer.of(path)


def folder_layer(
    path: Path,
    folder: Path,
    *,
    prefix: str = "",
    leave_out: Callable[[str], bool] = lambda _: False,
    readable: bool = False,
) -> Layer:
    """Write a layer of all in `folder`, under `prefix`; owners become root.

    Modes are kept, or with `readable` made such that everybody can read, whatever the umask here.
    """
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(folder.rglob("*")):
            name = str(file.relative_to(folder))
            if not leave_out(name):
                _add(tar, file, prefix + name, readable=readable)
    return Layer.of(path)


def _add(tar: tarfile.TarFile, file: Path, name: str, *, readable: bool = False) -> None:
    entry = tar.gettarinfo(file, arcname=name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    if readable:
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    # A hard link's target may have been left out; a copy is always right.
    if entry.islnk():
        entry.type = tarfile.REGTYPE
        entry.size = file.stat().st_size
    if entry.isreg():
        with file.open("rb") as content:
            tar.addfile(entry, content)
    else:
        tar.addfile(entry)


def write_archive(
    path: Path,
    name: str,
    layers: Sequence[Layer],
    config: ImageConfig,
    *,
    present: Collection[str] = (),
) -> str:
    """Write an OCI archive without the layers that are `present` already; the image's digest."""
    configuration = _json(_configuration(layers, config))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, configuration),
            "layers": [
                {"mediaType": _LAYER, "digest": layer.digest, "size": layer.path.stat().st_size}
                for layer in layers
            ],
        }
    )
    reference = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    described = {**_descriptor(_MANIFEST, manifest), "annotations": reference}
    index = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [described]})
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        _add_bytes(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        for layer in layers:
            if layer.digest not in present:
                _add(tar, layer.path, _blob(layer.digest))
        for blob in (configuration, manifest):
            _add_bytes(tar, _blob(_digest(blob)), blob)
        _add_bytes(tar, "index.json", index)
    return _digest(manifest)


def _configuration(layers: Sequence[Layer], config: ImageConfig) -> dict[str, Any]:
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {
            "Entrypoint": list(config.entrypoint),
            "Env": [f"{key}={value}" for key, value in config.environment.items()],
            "User": config.user,
            "WorkingDir": config.working_directory,
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
    }


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
