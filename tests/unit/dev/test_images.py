"""Images: the same content has the same digest, and only what is needed goes in."""

import json
import runpy
import tarfile
import zipfile
from pathlib import Path

from dev.image.archive import ImageConfig, folder_layer, write_archive

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
    layers = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        layers.append(folder_layer(tmp_path / f"{name}.tar", tmp_path / name))
    config = ImageConfig(entrypoint=["/x"], user="185")

    write_archive(tmp_path / "a.tar", "x:1", layers, config, present={layers[0].digest})

    with tarfile.open(tmp_path / "a.tar") as archive:
        names = archive.getnames()
        archive.extract("index.json", tmp_path, filter="data")
    index = json.loads((tmp_path / "index.json").read_text())
    assert "blobs/" + layers[1].digest.replace(":", "/") in names
    assert "blobs/" + layers[0].digest.replace(":", "/") not in names
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
