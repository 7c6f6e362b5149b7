"""`sparkpoint job …`: jobs in a cluster, thin over their resources. Reference: docs/cli.md.

Only `connection.py` needs the Kubernetes client, which is an extra. Whatever a command changes is
one field of a resource, and the operator does the work: a command that is killed has asked or has
not asked, and may be run again.
"""
