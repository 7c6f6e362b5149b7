"""Signals reach us whatever a script does with them. No Spark: the script is all there is."""

import signal
from pathlib import Path

import pytest

from sparkpoint.runtime.model import EndReason
from tests.spark.runtime.driver import Setting, driving
from tests.support.processes import await_end

BLOCKS = """
import time
try:
    print("READY", flush=True)
    time.sleep(600)
finally:
    print("FINALLY", flush=True)
"""
HAS_A_HANDLER = """
import signal, sys, time
def leave(number, frame):
    print("HANDLER", number, flush=True)
    sys.exit(5)
before = signal.signal(signal.SIGTERM, leave)
print(before, signal.getsignal(signal.SIGTERM) is leave)
print("READY", flush=True)
time.sleep(600)
"""
IGNORES = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("READY", flush=True)
while True:
    try:
        time.sleep(600)
    except:
        print("CAUGHT", flush=True)
"""
HAS_A_LOOP = """
import asyncio, signal
async def main():
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    print("READY", flush=True)
    await end.wait()
    print("LOOP", flush=True)
asyncio.run(main())
"""
HAS_CHILDREN = """
import multiprocessing, os, signal, subprocess, time
context = multiprocessing.get_context("fork")
child = context.Process(target=time.sleep, args=(600,))
child.start()
child.terminate()
child.join()
print("CHILD", child.exitcode)
other = subprocess.Popen(["sleep", "600"])
other.terminate()
print("OTHER", other.wait())
time.sleep(1)
print("READY", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (BLOCKS, ["FINALLY"]),
        (HAS_A_HANDLER, ["0 True", "HANDLER 15"]),
        (IGNORES, ["CAUGHT"]),
        (HAS_A_LOOP, ["LOOP"]),
        (HAS_CHILDREN, ["CHILD -15", "OTHER -15"]),
    ],
)
def test_sigterm_ends_a_script(tmp_path: Path, script: str, said: list[str]) -> None:
    (tmp_path / "script.py").write_text(script)
    with driving(Setting(tmp_path), tmp_path / "script.py") as driver:
        driver.await_true(lambda: "READY" in driver.log)
        driver.signal(signal.SIGTERM)
        termination = driver.end(120)

    assert termination.reason is EndReason.TERMINATED
    assert (termination.exit_code, termination.clean) == (0, True)
    for part in said:
        assert part in driver.log


def test_a_jvm_that_is_still_starting_does_not_stay_behind(tmp_path: Path) -> None:
    java, begun = tmp_path / "java" / "bin" / "java", tmp_path / "begun"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho $$ > {begun}.tmp; mv {begun}.tmp {begun}; exec sleep 600\n")
    java.chmod(0o755)
    script = tmp_path / "script.py"
    script.write_text("from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\n")
    setting = Setting(tmp_path, variables={"JAVA_HOME": str(tmp_path / "java")})
    with driving(setting, script) as driver:
        driver.await_true(begun.exists)
        driver.signal(signal.SIGTERM)
        termination = driver.end(120)

    assert termination.reason is EndReason.TERMINATED
    await_end(int(begun.read_text()))
