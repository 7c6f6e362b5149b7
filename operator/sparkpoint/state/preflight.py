"""What the files of a savepoint tell about going on with a Spark, before anything is started."""

from collections.abc import Mapping

from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.state.compatibility import Finding, findings
from sparkpoint.state.survey import SavepointFiles

__all__ = ["preflight"]


def preflight(
    repository: Repository,
    savepoint: Savepoint,
    *,
    spark_version: str | None,
    conf: Mapping[str, str],
) -> list[Finding]:
    """What to say of every query; nothing about versions if that of Spark is not known."""
    records = repository.files(savepoint).files
    return [
        finding
        for query in savepoint.manifest.queries
        for finding in findings(
            query,
            spark_version=spark_version,
            conf=conf,
            read=SavepointFiles(repository.store, records, prefix=query.prefix).read,
            written_by=savepoint.manifest.spark_version,
        )
    ]
