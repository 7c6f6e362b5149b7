"""What is in our images, seen from inside a pod."""

import json
import time

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from dev.cluster.lifecycle import Cluster
from dev.image.build import SECOND_SPARK_VERSION, operator_image, runtime_image
from dev.image.load import load_images
from dev.jobs import RUNTIME_IMAGE
from dev.sbom import bill_of_materials, components_of
from tests.cluster.namespace import Namespace

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

OPERATOR_IMAGE = "sparkpoint.dev/operator:dev"

_STREAM = """
import pathlib, sys, tempfile
from pyspark.sql import SparkSession
folder = tempfile.mkdtemp()
pathlib.Path(folder, "input").mkdir()
pathlib.Path(folder, "input", "a.txt").write_text("x\\ny\\nx\\n")
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = spark.config("spark.sql.shuffle.partitions", "1").getOrCreate()
lines = spark.readStream.text(folder + "/input")
query = (lines.groupBy("value").count().writeStream.outputMode("complete").format("memory")
    .queryName("counts").option("checkpointLocation", folder + "/ck")
    .trigger(availableNow=True).start())
query.awaitTermination()
print(spark.version, sorted(map(tuple, spark.table("counts").collect())))
"""

_CONTENT = """
import importlib.metadata as m, json, os, pathlib, shutil
caches = [p for p in ("/var/cache", "/var/lib/apt/lists") if any(pathlib.Path(p).glob("*"))]
jars = [p.name for p in pathlib.Path(os.environ["SPARK_HOME"], "jars").glob("*.jar")]
print(json.dumps({
    "user": os.getuid(),
    "compilers": [c for c in ("gcc", "cc", "g++", "javac", "make") if shutil.which(c)],
    "caches": caches,
    "packages": sorted(d.metadata["Name"].lower() for d in m.distributions()),
    "s3a": sorted(j for j in jars if j.startswith(("hadoop-aws", "aws-sdk"))),
}))
"""

_PROGRAMS = """
import json, os
places = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
print(json.dumps(sorted({name for place in places for name in os.listdir(place)})))
"""

# With `on`, a JVM that cannot use the archive refuses to start.
_ARCHIVE = """
import os, subprocess
home = os.environ["SPARK_HOME"]
path = f"{home}/classpath.jar:{os.environ['SPARK_CONF_DIR']}:{home}/jars/*"
options = ["-Xshare:on", *os.environ["SPARK_SUBMIT_OPTS"].split(), "-Xlog:class+load"]
main = "org.apache.spark.deploy.SparkSubmit"
done = subprocess.run(["java", *options, "-cp", path, main, "--version"], capture_output=True)
loaded = [line for line in done.stdout.decode().splitlines() if "source:" in line]
# The JDK's own archive has its classes at the bottom; those on top are of ours.
archived = [line for line in loaded if "shared objects file (top)" in line]
print(done.returncode, len(archived) > 0.5 * len(loaded), len(archived), len(loaded))
"""


def _run(namespace: Namespace, image: str, program: str, *, seconds: int = 240) -> str:
    pod = f"probe-{time.monotonic_ns()}"
    namespace.kubectl(
        *("run", pod, f"--image={image}", "--image-pull-policy=Never", "--restart=Never"),
        *("--", "python3", "-c", program),
    )
    namespace.await_true(
        f"{pod} to end",
        lambda: (
            namespace.kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase}")
            in ("Succeeded", "Failed")
        ),
        seconds=seconds,
        pods=[pod],
    )
    return namespace.kubectl("logs", pod)


def test_the_runtime_image_holds_what_jobs_need_and_nothing_to_build_with(
    namespace: Namespace,
) -> None:
    content = json.loads(_run(namespace, RUNTIME_IMAGE, _CONTENT))

    assert content["user"] == 185
    assert content["compilers"] == []
    assert content["caches"] == []
    assert {"pyspark", "pandas", "pyarrow", "protobuf", "boto3"} <= set(content["packages"])
    assert [jar.split("-")[0] for jar in content["s3a"]] == ["aws", "hadoop"]


def test_the_operators_image_has_no_program_but_python(namespace: Namespace) -> None:
    programs = json.loads(_run(namespace, OPERATOR_IMAGE, _PROGRAMS))

    assert "python3" in programs
    assert {name.split("3")[0] for name in programs} == {"python", "tini"}


def test_jvms_start_from_the_archive_of_sparks_classes(namespace: Namespace) -> None:
    assert _run(namespace, RUNTIME_IMAGE, _ARCHIVE).startswith("0 True")


def test_our_package_imports_in_both_images(namespace: Namespace) -> None:
    program = "import sparkpoint; print(sparkpoint.__version__)"

    for image in (RUNTIME_IMAGE, OPERATOR_IMAGE):
        assert _run(namespace, image, program).strip() == "0.1.0"


def test_what_is_in_the_images_is_listed_as_cyclonedx_says() -> None:
    for image in (operator_image(), runtime_image()):
        document = bill_of_materials(image.name, components_of(image.layers))

        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is None
        named = {component["name"].lower() for component in document["components"]}
        assert {"sparkpoint", "libc6", "pydantic", "tini"} <= named


@pytest.mark.timeout(900)
def test_an_image_of_another_spark_version_runs_a_stream(
    cluster: Cluster, namespace: Namespace
) -> None:
    load_images(cluster, spark_version=SECOND_SPARK_VERSION)

    image = f"sparkpoint.dev/runtime:spark-{SECOND_SPARK_VERSION}"
    printed = _run(namespace, image, _STREAM, seconds=400)

    assert f"{SECOND_SPARK_VERSION} [('x', 2), ('y', 1)]" in printed
