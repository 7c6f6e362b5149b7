"""Loading images into a node's containerd, without a registry."""

from collections.abc import Sequence

from dev.cache import exclusive
from dev.cluster.components import PAUSE_IMAGE
from dev.cluster.layout import Layout
from dev.cluster.programs import kubernetes_binaries, tool_environment
from dev.console import run_program
from dev.image.archive import ImageConfig, Layer, write_archive, write_layer

__all__ = ["load_image", "load_pause"]


def load_image(layout: Layout, name: str, layers: Sequence[Layer], config: ImageConfig) -> None:
    """Make the image known to the node; only layers that it does not hold yet are sent."""
    with exclusive(f"images-{layout.name}"):
        present = set(_ctr(layout, "content", "list", "--quiet").split())
        archive = layout.volatile / "image.tar"
        digest = write_archive(archive, name, layers, config, present=present)
        # The name, too: content may be there from before, while the name points to a later build.
        if digest not in present or _digest_of(layout, name) != digest:
            _ctr(layout, "images", "import", str(archive))
        archive.unlink()


def _digest_of(layout: Layout, name: str) -> str | None:
    lines = _ctr(layout, "images", "list", f"name=={name}").splitlines()[1:]
    return lines[0].split()[2] if lines else None


def load_pause(layout: Layout) -> None:
    """Load the image that holds a pod's namespaces."""
    layer = write_layer(layout.volatile / "pause.tar", {"pause": kubernetes_binaries() / "pause"})
    load_image(layout, PAUSE_IMAGE, [layer], ImageConfig(entrypoint=["/pause"], user="65535"))


def _ctr(layout: Layout, *arguments: str) -> str:
    return run_program(
        ["ctr", "--address", layout.socket, "--namespace", "k8s.io", *arguments],
        env=tool_environment(),
        failed=f"containerd refused `{' '.join(arguments)}`",
        remedy=f"see {layout.logs}/containerd.log; make cluster-up repairs the cluster.",
    )
