"""python -m sparkpoint.worker"""

import sys

from sparkpoint.worker.process import run

if __name__ == "__main__":
    run(sys.argv[1:])
