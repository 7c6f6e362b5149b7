#!/usr/bin/env bash
# Say in one sentence what this machine lacks, before anything is begun.
set -u
missing=()
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    missing+=("Python 3.11 or newer is not on PATH as python3: install it (Debian: apt-get install python3 python3-venv).")
python3 -c 'import venv, ensurepip' 2>/dev/null ||
    missing+=("Python's venv module is missing: install it (Debian: apt-get install python3-venv).")
java -version 2>&1 | grep -Eq 'version "(1[7-9]|2[0-9])' ||
    missing+=("Java 17 or newer is not on PATH; Spark needs it: install it (Debian: apt-get install openjdk-17-jre-headless).")
if [ ${#missing[@]} -gt 0 ]; then
    printf 'error: %s\n' "${missing[@]}" >&2
    exit 1
fi
