"""Help pages and the reference: every example in them is run."""

import json
import shlex
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from mypy_boto3_s3 import S3Client

from sparkpoint.cli.main import root
from tests.support.s3 import S3Server
from tests.unit.cli.running import file_sink, run, run_well

REFERENCE = Path(__file__).parents[3] / "docs/cli.md"
COMMANDS = [
    *("savepoint create", "savepoint list", "savepoint show", "savepoint verify"),
    *("savepoint delete", "savepoint tag", "savepoint restore", "savepoint copy"),
    *("log", "retain", "collect", "checkpoint show", "completion"),
    *("state show", "state repartition", "state query", "state diff", "state migrate"),
    "state check",
    *("run", "local status", "local savepoint", "local stop"),
    *("job list", "job status", "job wait", "job logs", "job savepoint", "job suspend"),
    *("job resume", "job restore", "job rollback", "job fork", "job compare"),
]


def leaves(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        full = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            yield from leaves(command, full)
        else:
            yield full, command


def examples_of(command: click.Command) -> list[str]:
    lines = (command.epilog or "").splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


def examples_in_reference() -> list[tuple[str, int]]:
    """Command lines of the reference, and the exit code that a comment may announce."""
    found = []
    for line in REFERENCE.read_text().splitlines():
        if line.startswith("$ "):
            command, _, comment = line[2:].partition("  # exits with ")
            found.append((command, int(comment.partition(":")[0] or 0)))
    return found


# Those of `run` and `local` need a run: test_run_local.py has one. Those of `job` need a cluster:
# jobs/test_reaching.py has one. Those of `state` need state that can be read: test_state.py has it,
# and tests/spark/state for what needs Spark.
EXAMPLES = [
    line
    for name, command in leaves(root)
    for line in examples_of(command)
    if name.split()[0] not in ("run", "local", "job")
    and (name == "state show" or "state" not in name)
]


@pytest.fixture
def perform(repository: Path) -> Callable[[str], int]:
    """Run a command line of the documentation where its files are."""
    file_sink(Path("out").resolve(), newest=5)

    def act(line: str) -> int:
        if not line.startswith("sparkpoint "):
            script = f"PATH={Path(sys.executable).parent}:$PATH; {line}"
            return subprocess.run(["bash", "-c", script], check=False, stdout=-3).returncode
        outcome = run(*shlex.split(line)[1:])
        print(outcome.out, outcome.err)
        return outcome.code

    return act


@pytest.fixture
def perform_s3(
    s3: S3Server, s3_client: S3Client, perform: Callable[[str], int]
) -> Callable[[str], int]:
    """The same with a bucket that holds the checkpoint too; each test has its corner of it."""
    corner = uuid.uuid4().hex
    for path in Path("checkpoints/visits").rglob("*"):
        if path.is_file():
            s3_client.put_object(Bucket="lake", Key=f"{corner}/{path}", Body=path.read_bytes())

    def act(line: str) -> int:
        line = line.replace("s3://lake/", f"s3://lake/{corner}/")
        return perform(line.replace("http://localhost:8333", s3.endpoint_url))

    return act


def test_there_are_exactly_the_promised_commands() -> None:
    assert sorted(name for name, _ in leaves(root)) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_page_has_an_example_and_the_common_options(name: str) -> None:
    page = run_well(*name.split(), "--help").out

    assert (
        f"\n    sparkpoint {name} " in page or f"sparkpoint {name} " in page.split("Examples:")[1]
    )
    where = ["--context", "--namespace"] if name.startswith("job ") else ["--endpoint-url"]
    if name == "completion":
        where = []
    for option in ("--json", "--quiet", *where):
        assert option in page


@pytest.mark.parametrize("line", [line for line in EXAMPLES if "s3:" not in line])
def test_every_example_of_a_help_page_works(perform: Callable[[str], int], line: str) -> None:
    assert perform(line) == 0


@pytest.mark.s3
def test_every_example_with_s3_works(perform_s3: Callable[[str], int]) -> None:
    lines = [line for line in EXAMPLES if "s3:" in line]

    assert [line for line in lines if perform_s3(line) != 0] == []


@pytest.mark.s3
def test_the_examples_of_the_reference_work_one_after_the_other(
    perform_s3: Callable[[str], int],
) -> None:
    lines = examples_in_reference()

    results = [(line, expected, perform_s3(line)) for line, expected in lines]

    assert len(lines) > 15
    assert [each for each in results if each[1] != each[2]] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_describes_every_command_and_option(name: str) -> None:
    command = dict(leaves(root))[name]
    text = REFERENCE.read_text()

    assert f"`sparkpoint {name}" in text
    options = [param for param in command.params if isinstance(param, click.Option)]
    missing = [o for param in options for o in param.opts if o.startswith("--") and o not in text]
    assert missing == []


@pytest.mark.usefixtures("repository")
def test_the_reference_has_the_shape_of_a_savepoint() -> None:
    _, _, rest = REFERENCE.read_text().partition("```json\n")
    told = json.loads(rest.partition("```")[0])

    (made,) = run_well("savepoint", "list", "--json").document["savepoints"]

    assert list(told) == list(made)
    assert list(told["queries"][0]) == list(made["queries"][0])
