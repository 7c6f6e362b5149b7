"""What is inside of state: reading it, counting and comparing it, moving it to other partitions.

On savepoints, never on the directory of a live query. Knows the files of the HDFS-backed provider,
Spark's default, and needs no Spark for it; what only Spark can do is in `spark/`. See
docs/state.md.
"""

from sparkpoint.state.children import ChildResult
from sparkpoint.state.savepoints import RepartitionRequest, check_repartition, repartition
from sparkpoint.state.survey import StoreSurvey, survey

__all__ = [
    "ChildResult",
    "RepartitionRequest",
    "StoreSurvey",
    "check_repartition",
    "repartition",
    "survey",
]
