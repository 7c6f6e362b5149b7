"""Which Spark goes on from whose checkpoint: measured, pair by pair. `make spark-versions`.

Queries of every kind read half of their input on one version, are captured, and read the rest on
another from the restored savepoint; the truth about all of it is computed in plain Python.
"""
