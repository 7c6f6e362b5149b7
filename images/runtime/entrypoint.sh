#!/bin/sh
# What a pod of the runtime image runs. Spark starts executors with the single argument `executor`.
#   driver OPTION... -- SCRIPT [ARGUMENT...]
#                                 a PySpark script under the runtime; Python is the parent of the JVM
#   executor                      as Spark's own image does, from the SPARK_* environment
#   anything else                 is run as it is, such as `python3 SCRIPT` without the runtime
set -eu

case "${1:-}" in
driver)
    shift
    exec tini -s -- python3 -m sparkpoint.runtime "$@"
    ;;
executor)
    # Spark passes each Java option in a variable of its own: SPARK_JAVA_OPT_0, _1, ...
    set --
    index=0
    while eval "option=\${SPARK_JAVA_OPT_${index}-}" && [ -n "${option}" ]; do
        set -- "$@" "${option}"
        index=$((index + 1))
    done
    if [ -n "${SPARK_EXECUTOR_CORES:-}" ] && [ "${SPARK_EXECUTOR_CORES}" -le 1 ]; then
        # One core gains nothing from a parallel collector.
        set -- -XX:+UseSerialGC "$@"
    fi
    exec tini -s -- java "$@" \
        "-Xms${SPARK_EXECUTOR_MEMORY}" "-Xmx${SPARK_EXECUTOR_MEMORY}" \
        -cp "${SPARK_CONF_DIR:-/opt/spark/conf}:${SPARK_HOME}/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "${SPARK_DRIVER_URL}" \
        --executor-id "${SPARK_EXECUTOR_ID}" \
        --cores "${SPARK_EXECUTOR_CORES}" \
        --app-id "${SPARK_APPLICATION_ID}" \
        --hostname "${SPARK_EXECUTOR_POD_IP}" \
        --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID}" \
        --podName "${SPARK_EXECUTOR_POD_NAME}"
    ;;
*)
    exec tini -s -- "$@"
    ;;
esac
