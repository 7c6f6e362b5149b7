"""What a person types: `sparkpoint …`, `kubectl sparkpoint …`. Reference: docs/cli.md.

Three layers, each importing only those below it, so that `--help` and completion stay quick:
`commands/` declares options and imports click only; `work/` does things with repositories and
checkpoints, and is imported when a command runs; `render/` turns values into text and JSON, purely.
`jobs/` holds both for `sparkpoint job`, which is about resources of a cluster.
"""
