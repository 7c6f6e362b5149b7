"""RocksDB's own checksums of the files that state is made of.

Spark reads state through iterators, and takes one that damage has ended for one that has seen all:
the rows behind it are missing without a word. So the files are checked before they are read.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["damaged_files"]


def damaged_files(spark: "SparkSession", checkpoint: str) -> list[str]:
    """What is wrong with which file of the state in a copy of a checkpoint on this machine."""
    from py4j.protocol import Py4JJavaError

    root = Path(checkpoint.removeprefix("file:"))
    rocksdb = getattr(spark._jvm, "org").rocksdb  # noqa: B009 - a session that runs has one
    rocksdb.RocksDB.loadLibrary()
    found: list[str] = []
    for path in sorted(root.glob("state/**/*.sst")):
        options = rocksdb.Options()
        reader = rocksdb.SstFileReader(options)
        try:
            reader.open(str(path))
            reader.verifyChecksum()
        except Py4JJavaError as error:
            said = str(error.java_exception.getMessage()).split(" in /")[0].strip()
            found.append(f"{path.relative_to(root)} is damaged: {said}.")
        finally:
            reader.close()
            options.close()
    return found
