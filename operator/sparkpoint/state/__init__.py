"""What is inside of state: reading it without Spark, counting it, moving it to other partitions.

On savepoints, never on the directory of a live query. Knows the files of the HDFS-backed provider,
Spark's default; other providers are refused by name. See docs/state.md.
"""

from sparkpoint.state.savepoints import RepartitionRequest, RepartitionResult, repartition
from sparkpoint.state.survey import StoreSurvey, survey

__all__ = ["RepartitionRequest", "RepartitionResult", "StoreSurvey", "repartition", "survey"]
