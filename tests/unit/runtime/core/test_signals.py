"""The order in which a signal is told; in a process of its own, because it changes `signal`."""

import subprocess
import sys

_PROGRAM = """
import os, signal, time
from sparkpoint.runtime import signals
from sparkpoint.runtime.signals import Signals

signals._PATIENCE = 50
order = []

def told(number):
    time.sleep(0.2)
    order.append("we")

Signals(told).install()
signal.signal(signal.SIGTERM, lambda number, frame: order.append("the script"))
for _ in range(2):
    os.kill(os.getpid(), signal.SIGTERM)
    while len(order) % 2 or not order:
        time.sleep(0.01)
print(order)
"""


def test_we_know_of_a_signal_before_the_scripts_handler_can_end_the_script() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "['we', 'the script', 'we', 'the script']"


_NUDGED = """
import sys, threading, time
from sparkpoint.runtime.errors import ScriptOver
from sparkpoint.runtime.signals import Signals

signals = Signals(lambda number: print("told", number))
signals.install()
seen = []

def nudge():
    for name in ("nowhere", "in py4j", "asleep", "again"):
        while name not in seen:
            time.sleep(0.01)
        signals.nudge_script()
        time.sleep(0.2)
        seen.append(f"nudged {name}")

def look(name):
    seen.append(name)
    while f"nudged {name}" not in seen:
        time.sleep(0.01)

threading.Thread(target=nudge, daemon=True).start()
look("nowhere")
signals.runs_script = True
exec(compile("look('in py4j')", "/x/site-packages/py4j/java_gateway.py", "exec"))
try:
    look("asleep")
except ScriptOver:
    print("unwound")
look("again")
print("done")
"""


def test_a_nudge_unwinds_the_script_once_and_not_in_the_midst_of_a_call_into_the_jvm() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _NUDGED], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == ["unwound", "done"]
