"""Making a cluster know our images."""

from dev.cluster.images import load_image
from dev.cluster.lifecycle import Cluster
from dev.console import say, step
from dev.image.build import DEFAULT_SPARK_VERSION, build_images, image_names

__all__ = ["load_images"]


def load_images(cluster: Cluster, *, spark_version: str = DEFAULT_SPARK_VERSION) -> None:
    """Build what changed and load it; a cluster that is not ours must know the images already."""
    if cluster.layout is None:
        names = "\n  ".join(image_names(spark_version))
        say(f"Not loading images into {cluster.context}; it must be able to pull:\n  {names}")
        return
    for image in build_images(spark_version):
        with step(f"Loading {image.name}", usually="20 s at first, 2 s after a code change"):
            load_image(cluster.layout, image.name, image.layers, image.config)
