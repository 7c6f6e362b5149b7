"""The list of what is in an image: complete, the same each time, CycloneDX by its own schema."""

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dev.image.archive import Layer
from dev.sbom import bill_of_materials, components_of

_STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
_METADATA = "Metadata-Version: 2.4\nName: PyYAML\nVersion: 6.0.3\n\nName: not this\n"


def _jar(*told: tuple[str, str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as jar:
        for group, artifact, version in told:
            text = f"#made\ngroupId={group}\nartifactId={artifact}\nversion={version}\n"
            jar.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", text)
    return data.getvalue()


def is_cyclonedx(document: dict[str, Any]) -> bool:
    # Importing it takes two seconds, which every worker that collects the tests would pay.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is None


@pytest.fixture
def layers(tmp_path: Path) -> list[Layer]:
    swallowed = ("org.swallowed", "guava", "1.0")
    files = {
        "var/lib/dpkg/status": _STATUS.encode(),
        "opt/python/pyyaml-6.0.3.dist-info/METADATA": _METADATA.encode(),
        "opt/python/yaml/METADATA": b"Name: not this either",
        "opt/python/pyspark/jars/hadoop-aws-3.5.0.jar": _jar(
            swallowed, ("org.apache.hadoop", "hadoop-aws", "3.5.0")
        ),
        "opt/python/pyspark/jars/scala-library-2.13.16.jar": _jar(),
    }
    path = tmp_path / "layer.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return [Layer(path, "sha256:0")]


def test_debian_packages_python_packages_and_jars_are_listed(layers: list[Layer]) -> None:
    found = {each.name: each for each in components_of(layers)}

    assert set(found) == {"sparkpoint", "libc6", "PyYAML", "hadoop-aws", "scala-library"}
    assert found["libc6"].purl.startswith("pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64")
    assert found["PyYAML"].purl == "pkg:pypi/pyyaml@6.0.3"
    assert found["hadoop-aws"].purl == "pkg:maven/org.apache.hadoop/hadoop-aws@3.5.0"
    assert (found["scala-library"].version, found["scala-library"].purl) == ("2.13.16", "")
    assert len(found["scala-library"].sha256) == 64


def test_the_document_is_what_cyclonedx_says(layers: list[Layer]) -> None:
    document = bill_of_materials("sparkpoint.dev/operator:dev", components_of(layers))

    assert is_cyclonedx(document)
    assert document["metadata"]["component"]["version"] == "dev"


def test_a_document_that_is_not_is_found_out(layers: list[Layer]) -> None:
    document = bill_of_materials("sparkpoint.dev/operator:dev", components_of(layers))
    document["components"][0]["type"] = "thing"

    assert not is_cyclonedx(document)


def test_the_same_image_gives_the_same_document(layers: list[Layer]) -> None:
    one, other = (bill_of_materials("i:1", components_of(layers)) for _ in range(2))

    assert one == other
    assert one["serialNumber"] != bill_of_materials("i:2", components_of(layers))["serialNumber"]
