"""Images: the same content has the same digest, and only what is needed goes in."""

import json
import runpy
import tarfile
import zipfile
from pathlib import Path

import pytest

from dev.image import layers
from dev.image.archive import ImageConfig, folder_layer, write_archive
from dev.image.containerfile import read_containerfile

_SLIM = runpy.run_path("images/slim_aws_sdk.py")
_ARCHIVE = runpy.run_path("images/archive_classes.py")


def test_a_layer_does_not_depend_on_owners_or_times(tmp_path: Path) -> None:
    folder = tmp_path / "content"
    folder.mkdir()
    (folder / "file").write_text("same")
    first = folder_layer(tmp_path / "first.tar", folder)
    (folder / "file").unlink()
    (folder / "file").write_text("same")

    second = folder_layer(tmp_path / "second.tar", folder)

    assert first.digest == second.digest


def test_an_archive_leaves_out_layers_that_are_already_there(tmp_path: Path) -> None:
    both = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        both.append(folder_layer(tmp_path / f"{name}.tar", tmp_path / name))
    config = ImageConfig(entrypoint=["/x"], user="185")

    write_archive(tmp_path / "a.tar", "x:1", both, config, present={both[0].digest})

    with tarfile.open(tmp_path / "a.tar") as archive:
        names = archive.getnames()
        archive.extract("index.json", tmp_path, filter="data")
    index = json.loads((tmp_path / "index.json").read_text())
    assert "blobs/" + both[1].digest.replace(":", "/") in names
    assert "blobs/" + both[0].digest.replace(":", "/") not in names
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == "x:1"


def test_the_slim_sdk_keeps_s3_and_the_core_and_drops_other_services(tmp_path: Path) -> None:
    core = "software/amazon/awssdk/core/Sdk.class"
    s3 = "software/amazon/awssdk/services/s3/S3Client.class"
    other = "software/amazon/awssdk/services/s3tables/Client.class"
    with zipfile.ZipFile(tmp_path / "bundle.jar", "w") as bundle:
        for name in (core, s3, other):
            bundle.writestr(name, b"class")

    _SLIM["slim"](str(tmp_path / "bundle.jar"), str(tmp_path / "slim.jar"))

    with zipfile.ZipFile(tmp_path / "slim.jar") as jar:
        assert sorted(jar.namelist()) == sorted([core, s3])


def test_the_jar_that_names_other_jars_names_them_all_in_order(tmp_path: Path) -> None:
    names = [f"jars/some-library_2.13-{number}.0.{number}.jar" for number in range(40)]

    _ARCHIVE["_write_pathing_jar"](tmp_path / "classpath.jar", names)

    with zipfile.ZipFile(tmp_path / "classpath.jar") as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
    lines = manifest.split("\r\n")
    assert max(map(len, lines)) <= 70
    assert manifest.endswith("\r\n")
    assert manifest.replace("\r\n ", "").split("Class-Path: ")[1].split() == names


def test_the_operators_debian_keeps_python_alone_and_the_runtimes_everything() -> None:
    operator, runtime = read_containerfile("operator"), read_containerfile("runtime")

    assert operator.packages == ("ca-certificates", "python3", "tini")
    assert operator.programs == ("python3*", "tini")
    assert "openjdk-17-jre-headless" in runtime.packages
    assert runtime.programs is None


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("usr/bin/python3.11", True),
        ("usr/bin/tini", True),
        ("usr/bin/tini-static", False),
        ("usr/bin/dash", False),
        ("bin/sh", False),
        ("usr/sbin/ldconfig", False),
        ("usr/lib/x86_64-linux-gnu/libc.so.6", True),
        ("usr/bin", True),
    ],
)
def test_a_program_stays_by_its_name_and_everything_else_as_it_is(name: str, stays: bool) -> None:
    assert layers._stays(name, ("python3*", "tini")) is stays
    assert layers._stays(name, None)
