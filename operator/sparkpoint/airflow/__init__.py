"""The Airflow provider: savepoints by the calendar, cleanup, restore drills and campaigns.

Tasks create and change resources and wait for them; the work on data is the operator's, and Airflow
holds no credentials for it.

    decisions/   what to do: pure, neither Airflow nor Kubernetes
    work/        doing it, on a `Cluster`: Kubernetes, and still no Airflow
    hooks, triggers, operators, sensors, links   the thin rest, which imports Airflow

Triggers are found by their path in this package: it must be installed wherever Airflow runs.
"""
