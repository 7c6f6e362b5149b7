"""Doing what was decided, on a `Cluster`: every effect has a name, and may be asked for twice."""
