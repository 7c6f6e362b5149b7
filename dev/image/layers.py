"""The layers of our images, each built once per content and kept in the cache.

From the one that changes least to the one that changes most: Debian with Java or without, Python
packages from the lock file, jars, an archive of their classes, our own code.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from dev.cache import cached, digest_of, require_free_space
from dev.cluster.programs import debian_tools, tool_environment
from dev.console import run_program, step
from dev.image.archive import Layer, folder_layer, write_layer
from dev.jars import extra_jars
from dev.uv import run_uv

__all__ = [
    "classes_layer",
    "code_layer",
    "debian_layer",
    "file_layer",
    "jars_layer",
    "python_layer",
]

_CHECKOUT = Path(__file__).parent.parent.parent
_SUITE = "bookworm"
_MIRROR = "http://deb.debian.org/debian"
_CLASSES = ("opt/python/pyspark/classpath.jar", "opt/python/pyspark/classes.jsa")
_USER = "spark:x:185:185:Spark:/opt/spark:/usr/sbin/nologin\n"
_LEFT_OUT = re.compile(
    r"(var/cache/|var/lib/apt/lists/|var/log/|usr/share/(doc|man|locale|info|lintian)/|dev/|proc/|sys/"
    r"|etc/(resolv\.conf|hostname)$).*"
)
_PYTHON_LEFT_OUT = re.compile(r"(.*/)?(tests?/|include/)|.*\.(pyx|pxd|h|hpp|a)$")


def debian_layer(packages: Sequence[str], *, programs: Sequence[str] | None = None) -> Layer:
    """A minimal Debian with these packages and our user, without caches and manuals.

    Of its programs, the shell among them, those stay that match `programs`; without it, all.
    """
    content = [*packages, _SUITE, _USER, _LEFT_OUT.pattern, platform.machine()]
    key = f"debian-{digest_of([*content, *(programs or ())])}"

    def leave_out(name: str) -> bool:
        return bool(_LEFT_OUT.match(name)) or not _stays(name, programs)

    def build(folder: Path) -> None:
        require_free_space(folder, gib=3, purpose="Building the base image")
        root = folder / "root"
        with step(f"Making the base image with {', '.join(packages)}", usually="1 to 2 min, once"):
            _debootstrap(root, packages)
        with (root / "etc/passwd").open("a") as passwd, (root / "etc/group").open("a") as group:
            passwd.write(_USER)
            group.write("spark:x:185:\n")
        for path in ("opt/spark/conf", "opt/spark/work"):
            (root / path).mkdir(parents=True)
        folder_layer(folder / "layer.tar", root, leave_out=leave_out)
        shutil.rmtree(root)

    return _layer(key, build)


def _stays(name: str, programs: Sequence[str] | None) -> bool:
    place, _, program = name.rpartition("/")
    if programs is None or not re.fullmatch(r"(usr/)?s?bin(/.*)?", place):
        return True
    return any(fnmatch(program, pattern) for pattern in programs)


def _debootstrap(root: Path, packages: Sequence[str]) -> None:
    # debootstrap mounts /proc into the new root: in a mount namespace of its own no mount can stay.
    run_program(
        [
            *("unshare", "--mount", "--propagation", "private", "sh"),
            debian_tools() / "usr/sbin/debootstrap",
            *("--variant=minbase", f"--include={','.join(packages)}", _SUITE, root, _MIRROR),
        ],
        env={
            **tool_environment(),
            "DEBOOTSTRAP_DIR": str(debian_tools() / "usr/share/debootstrap"),
            # The unpacked tools' libraries are not those of the new root.
            "LD_LIBRARY_PATH": "",
            "NO_PROXY": os.environ.get("NO_PROXY", ""),
            "no_proxy": os.environ.get("no_proxy", ""),
        },
        failed="debootstrap failed",
        remedy="check that Debian's mirror is reachable, then run the same command again.",
    )


def python_layer(extra: str, *, replace: Mapping[str, str] | None = None) -> Layer:
    """The locked packages of one extra, under /opt/python; `replace` names other versions."""
    locked = _requirements(extra, replace or {})
    key = f"python-{extra}-{digest_of([locked, _PYTHON_LEFT_OUT.pattern])}"

    def build(folder: Path) -> None:
        packages = folder / "packages"
        with step(f"Installing the Python packages of the {extra} image", usually="30 s, once"):
            _install(locked, packages, folder)
        folder_layer(
            folder / "layer.tar",
            packages,
            prefix="opt/python/",
            leave_out=lambda n: bool(_PYTHON_LEFT_OUT.match(n)),
            readable=True,
        )
        shutil.rmtree(packages)

    return _layer(key, build)


def _requirements(extra: str, replace: Mapping[str, str]) -> str:
    options = (
        "--frozen",
        "--no-default-groups",
        "--no-emit-project",
        "--no-hashes",
        "--no-annotate",
    )
    exported = run_uv("export", *options, "--no-header", "--extra", extra)
    for name, version in replace.items():
        exported = re.sub(rf"(?m)^{name}==\S+", f"{name}=={version}", exported)
    return exported


def _install(requirements: str, target: Path, folder: Path) -> None:
    listed = folder / "requirements.txt"
    listed.write_text(requirements)
    # Debian bookworm has Python 3.11, whatever runs here.
    options = ("--quiet", "--python-version", "3.11", "--target", str(target))
    run_uv("pip", "install", *options, "--requirements", str(listed))
    listed.unlink()
    _compile(target)


def _compile(folder: Path) -> None:
    # By hash, not by time: times are set to zero in the layer, and pods cannot write caches.
    subprocess.run(
        [
            *(sys.executable, "-m", "compileall", "-q", "-j2"),
            *("--invalidation-mode=unchecked-hash", str(folder)),
        ],
        stdout=subprocess.DEVNULL,
        check=False,
    )


def jars_layer(spark_version: str) -> Layer:
    """The jars beside Spark's own."""
    jars = extra_jars(spark_version)
    files = {f"opt/python/pyspark/jars/{jar.name}": jar for jar in jars}
    key = f"jars-{digest_of([str(jar) for jar in jars])}"
    return _layer(key, lambda folder: _write(folder, files))


def classes_layer(below: Sequence[Layer]) -> Layer:
    """The archive of Spark's classes, made by the Java and the Spark of the layers below it."""
    script = _CHECKOUT / "images" / "archive_classes.py"
    key = f"classes-{digest_of([script, *(layer.digest for layer in below)])}"

    def build(folder: Path) -> None:
        require_free_space(folder, gib=4, purpose="Archiving Spark's classes")
        root = folder / "root"
        with step("Archiving Spark's classes for the runtime image", usually="40 s, once"):
            for layer in below:
                with tarfile.open(layer.path) as tar:
                    tar.extractall(root, filter="fully_trusted")
            shutil.copy(script, root / "tmp")
            (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
            _run_in(root, ["python3", f"/tmp/{script.name}"])
        made = {name: root / name for name in _CLASSES}
        _write(folder, made)
        shutil.rmtree(root)

    return _layer(key, build)


def _run_in(root: Path, command: Sequence[str]) -> None:
    mounts = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev"'
    run_program(
        # In a mount namespace of its own no mount can stay.
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
            f'{mounts} && exec chroot "$0" env -i "$@"',
            *(str(root), "PATH=/usr/bin:/bin", "PYTHONPATH=/opt/python", *command),
        ],
        failed="Archiving Spark's classes failed",
        remedy="run the same command again; if it fails again, remove the cache of layers.",
        timeout=1800,
    )


def file_layer(name: str, files: dict[str, Path]) -> Layer:
    """A layer of single files, known by their digests."""
    return _layer(f"{name}-{digest_of(files.values())}", lambda folder: _write(folder, files))


def code_layer() -> Layer:
    """Our package and the entrypoint: the layer that changes with every edit."""
    package = _CHECKOUT / "operator" / "sparkpoint"
    entrypoint = _CHECKOUT / "images" / "runtime" / "entrypoint.sh"
    key = f"code-{digest_of([package, entrypoint])}"

    def build(folder: Path) -> None:
        copy = folder / "opt" / "python" / "sparkpoint"
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(entrypoint, folder / "opt" / "entrypoint.sh")
        _compile(copy)
        files = sorted(p for p in (folder / "opt").rglob("*") if p.is_file())
        _write(folder, {str(p.relative_to(folder)): p for p in files})
        shutil.rmtree(folder / "opt")

    # On a shelf of their own: many small ones must not push the large ones out.
    return _layer(key, build, shelf="code")


def _write(folder: Path, files: dict[str, Path]) -> None:
    write_layer(folder / "layer.tar", files)


def _layer(key: str, build: Callable[[Path], None], *, shelf: str = "layers") -> Layer:
    def build_with_digest(folder: Path) -> None:
        build(folder)
        (folder / "digest").write_text(Layer.of(folder / "layer.tar").digest)

    folder = cached(shelf, key, build_with_digest, keep=20)
    return Layer(folder / "layer.tar", (folder / "digest").read_text())
