"""The order in which a signal is told; in a process of its own, because it changes `signal`."""

import subprocess
import sys

_PROGRAM = """
import os, signal, time
from sparkpoint.runtime.signals import Signals

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
