"""`make sbom`: what is in our images, as CycloneDX documents in `build/sbom/`.

Read from the layers themselves: Debian's list of installed packages, the metadata of each Python
package, and the jars with their digests. The same images give the same documents, byte for byte.
"""

import hashlib
import io
import json
import re
import tarfile
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Final

from packageurl import PackageURL

from dev.console import run_command, say, step
from dev.image.archive import Layer
from dev.image.build import Image, operator_image, runtime_image
from sparkpoint import __version__

__all__ = ["Component", "bill_of_materials", "components_of"]

_FOLDER: Final = Path(__file__).parent.parent / "build" / "sbom"
_DEBIAN: Final = "var/lib/dpkg/status"
_PYTHON: Final = re.compile(r"opt/python/[^/]+\.dist-info/METADATA")
_JAR: Final = re.compile(r"opt/python/pyspark/jars/(?:[^/]+/)*([^/]+)\.jar")
_VERSIONED: Final = re.compile(r"(.+?)-(\d.*)")
_NAMESPACE: Final = uuid.UUID("6f0f6c0e-9c2b-5d0b-9b0e-5a2f3d1f7a10")
"""Of serial numbers that follow from what is listed."""


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """Something that somebody else made."""

    purl: str
    """Empty where it is not known by whom."""
    name: str
    version: str
    sha256: str = ""

    def entry(self) -> dict[str, Any]:
        """As CycloneDX has it."""
        hashes = [{"alg": "SHA-256", "content": self.sha256}] if self.sha256 else None
        known = {"purl": self.purl or None, "hashes": hashes}
        reference = self.purl or f"{self.name}@{self.version}"
        return {
            "type": "library",
            "bom-ref": reference,
            "name": self.name,
            "version": self.version,
            **{name: value for name, value in known.items() if value},
        }


def bill_of_materials(name: str, components: Iterable[Component]) -> dict[str, Any]:
    """The document of one image."""
    listed = [component.entry() for component in sorted(set(components))]
    image, _, tag = name.rpartition(":")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, json.dumps([name, listed]))}",
        "version": 1,
        "metadata": {
            "component": {"type": "container", "bom-ref": name, "name": image, "version": tag}
        },
        "components": listed,
    }


def components_of(layers: Sequence[Layer]) -> Iterator[Component]:
    """What is in these layers, and our own package."""
    yield _python("sparkpoint", __version__)
    for layer in layers:
        with tarfile.open(layer.path) as tar:
            for member in tar:
                if member.isfile():
                    yield from _components_in(member.name, tar, member)


def _components_in(name: str, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[Component]:
    jar = _JAR.fullmatch(name)
    if not (jar or name == _DEBIAN or _PYTHON.fullmatch(name)):
        return
    stream = tar.extractfile(member)
    assert stream is not None
    data = stream.read()
    if jar:
        yield _jar(jar[1], data)
    elif name == _DEBIAN:
        yield from _debian(data.decode())
    else:
        about = HeaderParser().parsestr(data.decode())
        yield _python(about["Name"], about["Version"])


def _debian(status: str) -> Iterator[Component]:
    for stanza in status.split("\n\n"):
        about = HeaderParser().parsestr(stanza)
        if about["Status"] == "install ok installed":
            name, version = about["Package"], about["Version"]
            where = {"arch": about["Architecture"], "distro": "debian-12"}
            yield Component(str(PackageURL("deb", "debian", name, version, where)), name, version)


def _python(name: str, version: str) -> Component:
    return Component(str(PackageURL("pypi", None, name, version)), name, version)


def _jar(stem: str, data: bytes) -> Component:
    digest, made = hashlib.sha256(data).hexdigest(), _maven(stem, data)
    if made is not None:
        group, artifact, version = made
        return Component(
            str(PackageURL("maven", group, artifact, version)), artifact, version, digest
        )
    found = _VERSIONED.fullmatch(stem)
    name, version = (found[1], found[2]) if found else (stem, "unknown")
    return Component("", name, version, digest)


def _maven(stem: str, data: bytes) -> tuple[str, str, str] | None:
    """Group, artifact and version that the jar says of itself; those of what it swallowed do not
    count, nor does a jar that says nothing."""
    with zipfile.ZipFile(io.BytesIO(data)) as jar:
        for name in jar.namelist():
            if not re.fullmatch(r"META-INF/maven/.+/pom\.properties", name):
                continue
            told = dict(re.findall(r"(?m)^(\w+)=(\S+)", jar.read(name).decode()))
            if stem == f"{told.get('artifactId')}-{told.get('version')}":
                return told["groupId"], told["artifactId"], told["version"]
    return None


def main() -> None:
    """Write the documents of both images."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for name, image in (("operator", operator_image()), ("runtime", runtime_image())):
        with step(f"Listing what is in {image.name}", usually="10 s"):
            path = _FOLDER / f"{name}.cdx.json"
            document = _document(image)
            path.write_text(json.dumps(document, indent=1) + "\n")
        say(f"    {path.relative_to(_FOLDER.parents[1])}: {len(document['components'])} components")


def _document(image: Image) -> dict[str, Any]:
    return bill_of_materials(image.name, components_of(image.layers))


if __name__ == "__main__":
    run_command(main)
