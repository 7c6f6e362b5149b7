"""python -m sparkpoint.runtime"""

import sys

from sparkpoint.runtime.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
