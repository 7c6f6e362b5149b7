"""The commands: up, down, delete, status, kubectl."""

import argparse
import os
import subprocess
import sys

from dev.cluster import cgroups, layout, lifecycle, node
from dev.cluster.programs import tool_environment
from dev.console import Problem, run_command, say


def main() -> None:
    """Parse the command line and run one command."""
    arguments = _parser().parse_args()
    arguments.run(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dev.cluster",
        description="A real Kubernetes on this machine, without Docker.",
        epilog="example: python -m dev.cluster up --name demo",
    )
    commands = parser.add_subparsers(required=True)
    for name, run, text in (
        ("up", _up, "raise the cluster, or repair it; quick when it runs already"),
        ("down", _down, "end it; its images stay for the next time"),
        ("delete", _delete, "end it and remove its folder"),
        ("status", _status, "show every cluster and its components"),
        ("kubectl", _kubectl, "run kubectl against it"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        command.add_argument("--name", default=os.environ.get("CLUSTER", "demo"))
        command.add_argument("--context", default=os.environ.get("CONTEXT") or None)
        if name == "delete":
            command.add_argument("--all", action="store_true", help="every local cluster")
        if name == "kubectl":
            command.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def _up(arguments: argparse.Namespace) -> None:
    cluster = lifecycle.raise_cluster(arguments.name, context=arguments.context)
    say(f"Kubernetes is ready. Try:\n  {cluster.kubectl_hint} get nodes")


def _down(arguments: argparse.Namespace) -> None:
    _refuse_context(arguments)
    if found := layout.find_layout(arguments.name):
        lifecycle.lower_cluster(found)
    else:
        say(f"There is no cluster {arguments.name}.")


def _delete(arguments: argparse.Namespace) -> None:
    _refuse_context(arguments)
    for found in layout.all_layouts():
        if arguments.all or found.name == arguments.name:
            lifecycle.delete_cluster(found)


def _refuse_context(arguments: argparse.Namespace) -> None:
    if arguments.context:
        raise Problem(
            f"The cluster of context {arguments.context} is not ours to end.",
            remedy="leave CONTEXT out to end a local cluster.",
        )


def _status(arguments: argparse.Namespace) -> None:
    for found in layout.all_layouts():
        running = node.is_running(found)
        memory = f", {cgroups.memory_in_use(found) / 2**20:.0f} MiB in use" if running else ""
        print(f"{found.name}: {'running' if running else 'stopped'}{memory}")
        for name, state in node.component_states(found).items() if running else ():
            print(f"  {name}: {state}")


def _kubectl(arguments: argparse.Namespace) -> None:
    cluster = lifecycle.find_cluster(arguments.name, context=arguments.context)
    command = ["kubectl", *cluster.kubectl_arguments, *arguments.rest]
    environment = tool_environment() if cluster.layout else None
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    run_command(main)
