"""The ground of the jobs' figures: a cluster of its own, input that grows, and what was committed.

All times are of one kernel: those that this process reads, and those of files on the volume.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dev.cache import exclusive
from dev.cluster.layout import find_layout
from dev.cluster.lifecycle import lower_cluster, raise_cluster
from dev.console import Problem
from dev.image.load import load_images
from dev.jobs import EXAMPLE
from dev.operator import install_operator
from tests.bench.measure import settle
from tests.cluster.namespace import Namespace
from tests.cluster.visits import prepare

__all__ = ["QUERY", "SCRIPT", "Commit", "Trial", "job_namespace", "trying"]

QUERY = "url_visits"
"""Of the example's script; its folder is called so, too."""
SCRIPT = f"/data/{QUERY}.py"
"""On the volume, for whoever takes no ConfigMap."""
_CLUSTER = "bench"
_LINES = 400
_FED_BEFORE = 30
"""Files: enough that the first batches need not wait for input."""
_SECONDS_BETWEEN = 1.0
_PATIENCE = 300
"""Seconds for anything to be committed."""

# Looks in one process, and not often: the processor belongs to what is measured, and the moments
# are those of the files. The folders are those of a plain checkpoint and of an epoch.
_AWAIT_COMMIT = """
import json, pathlib, sys, time
root, asked = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
deadline = time.monotonic() + asked["patience"]

def commits():
    plain, epochs = root.glob("checkpoints/*/commits/*"), root.glob("checkpoints/*/*/*/*/commits/*")
    for path in (*plain, *epochs):
        # A rehearsal runs on a copy, and commits nothing of the job.
        if path.name.isdecimal() and ".rehearsal" not in str(path):
            try:
                yield str(path.parent), int(path.name), path.stat().st_mtime
            except FileNotFoundError:
                pass

while True:
    found = list(commits())
    before = [batch for folder, batch, _ in found if folder in asked["former"]]
    least = max(before, default=-1) + 1 if asked["former"] else asked["batch"]
    if any(
        folder not in asked["former"] and batch >= least and moment > asked["after"]
        for folder, batch, moment in found
    ):
        break
    if time.monotonic() > deadline:
        sys.exit(f"no commit within {asked['patience']} s")
    time.sleep(0.2)
print(json.dumps(found))
"""

_CHECK_COUNTS = """
import json, pathlib, runpy, sys
counts = {}
for file in sorted(pathlib.Path(sys.argv[1], "output").glob("batch=*/part-*.json")):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    counts.update((row["url"], row["count"]) for row in rows)
lines = int(sys.argv[2])
files = sum(counts.values()) // lines
truth = runpy.run_path("/data/make_log.py")["expected_visits"](range(files), lines)
print("right" if counts == truth else f"wrong after {files} files: {counts} is not {truth}"[:3000])
"""

_FEED = """
input="$1/input"
python3 /data/make_log.py "$input" --files="$3" --lines="$2" >&2
setsid python3 /data/make_log.py "$input" --first="$3" --files=1000000 --lines="$2" \
    --seconds-between="$4" </dev/null >/dev/null 2>&1 &
echo $!
"""


@dataclass(frozen=True, slots=True)
class Commit:
    """A batch that was committed."""

    folder: str
    batch: int
    moment: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One life of the job: a folder of its own on the volume, with input that grows."""

    namespace: Namespace
    name: str

    @property
    def folder(self) -> str:
        """As the pods see it."""
        return f"/data/{self.name}"

    @property
    def arguments(self) -> list[str]:
        """Of the script."""
        places = {"input": "input", "output": "output", "checkpoint": "checkpoints"}
        return [f"--{option}={self.folder}/{below}" for option, below in places.items()]

    def await_batch(self, batch: int) -> list[Commit]:
        """All commits, once this one is among them."""
        return self._await(batch=batch)

    def await_commit_after(self, moment: float) -> list[Commit]:
        """All commits, once one is younger than that."""
        return self._await(after=moment)

    def await_successor(self, former: Sequence[str]) -> list[Commit]:
        """All commits, once a batch that is in none of the former folders is in another one."""
        return self._await(former=list(former))

    def _await(self, **asked: Any) -> list[Commit]:
        wish = {"batch": 0, "after": 0, "former": [], "patience": _PATIENCE, **asked}
        arguments = ("exec", "-i", "toolbox", "--", "python3", "-", self.folder, json.dumps(wish))
        try:
            said = self.namespace.kubectl(*arguments, text=_AWAIT_COMMIT, timeout=_PATIENCE + 60)
        except Problem as problem:
            problem.add_note(self.namespace.describe([]))
            raise
        return sorted((Commit(*each) for each in json.loads(said)), key=lambda each: each.moment)

    def check_counts(self) -> None:
        """They are those of the files that were read: every file once, and none left out."""
        said = self.namespace.python("toolbox", _CHECK_COUNTS, self.folder, str(_LINES)).strip()
        if said != "right":
            raise Problem(
                f"The counts of {self.name} are {said}",
                remedy="repair that first: figures of something that is wrong say nothing.",
            )


@contextmanager
def trying(namespace: Namespace, name: str) -> Iterator[Trial]:
    """A folder with input that grows while the body runs; removed at the end."""
    trial = Trial(namespace, name)
    numbers = (str(_LINES), str(_FED_BEFORE), str(_SECONDS_BETWEEN))
    feed = ("exec", "toolbox", "--", "sh", "-c", _FEED, "feed", trial.folder, *numbers)
    feeder = namespace.kubectl(*feed).strip()
    settle()
    try:
        yield trial
    finally:
        tidy = 'kill "$1"; rm -rf "$2"'
        sh = ("exec", "toolbox", "--", "sh", "-c", tidy, "tidy", feeder, trial.folder)
        namespace.kubectl(*sh)


@contextmanager
def job_namespace() -> Iterator[Namespace]:
    """A new cluster with the operator, a volume, and the scripts on it; ended with the body."""
    with exclusive(f"bench-of-{_CLUSTER}"):
        _lower()  # what a run that was killed left
        try:
            yield _prepared()
        finally:
            _lower()


def _prepared() -> Namespace:
    cluster = raise_cluster(_CLUSTER)
    load_images(cluster)
    install_operator(cluster)
    namespace = Namespace(cluster, "bench")
    cluster.kubectl("create", "namespace", namespace.name)
    prepare(namespace)
    for script in (f"{QUERY}.py", "make_log.py"):
        put = ("exec", "-i", "toolbox", "--", "sh", "-c", 'cat > "/data/$1"', "put", script)
        namespace.kubectl(*put, text=(EXAMPLE / script).read_text())
    return namespace


def _lower() -> None:
    if layout := find_layout(_CLUSTER):
        lower_cluster(layout)
