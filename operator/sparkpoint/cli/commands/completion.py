"""`sparkpoint completion`: a script that teaches the shell our commands."""

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.options import answering_alone, examples

__all__ = ["completion"]

_VARIABLE = "_SPARKPOINT_COMPLETE"


@click.command(
    short_help="Print a completion script for a shell.",
    epilog=examples('eval "$(sparkpoint completion bash)"', "sparkpoint completion fish"),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@answering_alone
def completion(settings: Settings, shell: str) -> Answer:
    """Print a script that lets SHELL complete commands and options.

    For good: put the first example into ~/.bashrc or ~/.zshrc, or write the script for fish to
    ~/.config/fish/completions/sparkpoint.fish.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} is not a shell that click can complete for.")
    command = click.get_current_context().find_root().command
    # Not source(): for bash it would run bash, to find out whether it is older than 2016.
    maker = kind(command, {}, "sparkpoint", _VARIABLE)
    script = maker.source_template % maker.source_vars()
    # Where we know nothing, bash is to complete file names, as it does without us.
    script = script.replace("complete -o nosort -F", "complete -o nosort -o default -F")
    return Answer(document={"shell": shell, "script": script}, text=script)
