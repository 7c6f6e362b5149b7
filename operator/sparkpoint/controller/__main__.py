"""python -m sparkpoint.controller"""

from sparkpoint.controller.main import main

if __name__ == "__main__":
    main(prog_name="python -m sparkpoint.controller")
