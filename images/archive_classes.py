"""Archive Spark's classes as a JVM has loaded them: JVMs that follow need a third less to start.

    python3 archive_classes.py            writes classpath.jar and classes.jsa into SPARK_HOME

The JVM maps an archive (class data sharing) if the class path begins with what it was made from.
Spark's own class path begins with a folder of configuration, and ends with `jars/*` in whatever
order the disk lists them. So a jar without content names all of Spark's jars in a fixed order:
a JVM that has it first on its class path may use the archive, whatever follows. A JVM that does
not fit ignores the archive.
"""

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

_LINE = 70  # a manifest's lines have 72 bytes at most, with their end

# What a query in local mode does not touch, and drivers and executors in pods do.
_IN_PODS = (
    "org.apache.spark.executor.CoarseGrainedExecutorBackend",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesClusterManager",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesClusterSchedulerBackend",
    "org.apache.spark.scheduler.cluster.k8s.ExecutorPodsAllocator",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
)


def main() -> None:
    """Write the jar, run a small stream on it, and keep what the JVM loaded."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    jars = sorted(path.name for path in (home / "jars").glob("*.jar"))
    _write_pathing_jar(home / "classpath.jar", [f"jars/{name}" for name in jars])
    archive = home / "classes.jsa"
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        _train(home, archive, Path(scratch))
    print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB")


def _write_pathing_jar(jar: Path, entries: list[str]) -> None:
    text = "Class-Path: " + " ".join(entries)
    lines = [text[:_LINE]]
    rest = text[_LINE:]
    while rest:
        lines.append(" " + rest[: _LINE - 1])
        rest = rest[_LINE - 1 :]
    manifest = "\r\n".join(["Manifest-Version: 1.0", *lines, "", ""])
    with zipfile.ZipFile(jar, "w") as file:
        # A fixed time: the same jars give the same file.
        file.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), manifest)
    os.utime(jar, (0, 0))


def _train(home: Path, archive: Path, scratch: Path) -> None:
    connection = scratch / "connection"
    java = Path(os.environ["JAVA_HOME"], "bin/java") if "JAVA_HOME" in os.environ else "java"
    log = scratch / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(str(java), "-cp", str(home / "classpath.jar"), "-Xmx1g", "-XX:+UseSerialGC"),
                *(f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"),
                *_module_options(),
                *("org.apache.spark.deploy.SparkSubmit", "pyspark-shell"),
            ],
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "SPARK_CONF_DIR": str(scratch / "conf"),
                # A name of this machine may have no address where images are built.
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_HOSTNAME": "localhost",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
            },
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=scratch,
        )
    try:
        _await(connection, process, log)
        port, secret = _read_connection(connection)
        os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
        _run_queries(scratch)
        process.communicate(timeout=600)  # closes its input, which ends it
    finally:
        process.kill()
    if not archive.exists():
        sys.exit(f"the JVM wrote no archive:\n{log.read_text(errors='replace')[-3000:]}")


def _module_options() -> list[str]:
    """What Spark's launcher opens for Spark; the archive must be made under the same modules."""
    packages = (
        *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
        *("java.util", "java.util.concurrent", "java.util.concurrent.atomic"),
        *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
    )
    return [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in packages]


def _await(connection: Path, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 300
    while not connection.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"Spark's JVM did not start:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.05)
    time.sleep(0.2)


def _read_connection(connection: Path) -> tuple[int, str]:
    data = connection.read_bytes()
    length = int.from_bytes(data[4:8], "big")
    return int.from_bytes(data[:4], "big"), data[8 : 8 + length].decode()


def _run_queries(scratch: Path) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.Builder()
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "200ms")
        .getOrCreate()
    )
    (scratch / "in").mkdir()
    (scratch / "in" / "1.json").write_text('{"url": "/a", "at": "2026-01-01T00:00:00"}\n' * 10)
    package = "org.apache.spark.sql.execution.streaming.state"
    for provider in ("HDFSBacked", "RocksDB"):
        key = "spark.sql.streaming.stateStore.providerClass"
        spark.conf.set(key, f"{package}.{provider}StateStoreProvider")
        lines = spark.readStream.schema("url STRING, at TIMESTAMP").json(str(scratch / "in"))
        counts = lines.withWatermark("at", "1 minute").groupBy("url").count()
        query = (
            counts.writeStream.outputMode("update")
            .foreachBatch(lambda rows, _: rows.write.mode("append").json(str(scratch / "out")))
            .option("checkpointLocation", str(scratch / provider))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(300)
    jvm = spark._jvm
    for name in _IN_PODS:
        _loaded(jvm, name)
    try:
        jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build().close()
    except Exception as error:
        print(f"no Kubernetes client was archived: {error}"[:200])
    spark.stop()


def _loaded(jvm: object, name: str) -> None:
    try:
        jvm.java.lang.Class.forName(name)  # type: ignore[attr-defined]
    except Exception as error:
        print(f"{name} was not archived: {error}"[:200])


if __name__ == "__main__":
    main()
