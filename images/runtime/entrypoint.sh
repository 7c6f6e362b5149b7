#!/bin/sh
# What a pod of the runtime image runs. Spark starts executors with the single argument `executor`.
#   driver OPTION... -- SCRIPT [ARGUMENT...]
#                                 a PySpark script under the runtime; Python is the parent of the JVM
#   driver [--proxy-user USER] --properties-file FILE OPTION...
#                                 as Spark's own image does, for `spark-submit --deploy-mode cluster`
#                                 and for operators that are made of it; without the runtime
#   executor                      as Spark's own image does, from the SPARK_* environment
#   anything else                 is run as it is, such as `python3 SCRIPT` without the runtime
set -eu

case "${1:-}" in
driver)
    shift
    case "${1:-}" in
    # What Spark's driver pods begin with, and no option of the runtime.
    --properties-file | --proxy-user)
        exec tini -s -- "${SPARK_HOME}/bin/spark-submit" \
            --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS}" \
            --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=${SPARK_DRIVER_BIND_ADDRESS}" \
            --deploy-mode client "$@"
        ;;
    esac
    exec tini -s -- python3 -m sparkpoint.runtime "$@"
    ;;
executor)
    # Spark passes each Java option in a variable of its own: SPARK_JAVA_OPT_0, _1, ...
    set --
    index=0
    collector=""
    while eval "option=\${SPARK_JAVA_OPT_${index}-}" && [ -n "${option}" ]; do
        set -- "$@" "${option}"
        case "${option}" in -XX:+Use*GC) collector="${option}" ;; esac
        index=$((index + 1))
    done
    if [ -z "${collector}" ] && [ "${SPARK_EXECUTOR_CORES:-2}" -le 1 ]; then
        # One core gains nothing from a parallel collector; a JVM with two chosen does not start.
        set -- -XX:+UseSerialGC "$@"
    fi
    # The archive of Spark's classes fits a class path that begins with the jar it was made from.
    classpath="${SPARK_HOME}/classpath.jar:${SPARK_CONF_DIR:-/opt/spark/conf}:${SPARK_HOME}/jars/*"
    if [ -n "${SPARK_EXTRA_CLASSPATH:-}" ]; then
        classpath="${SPARK_EXTRA_CLASSPATH}:${classpath}"
    fi
    exec tini -s -- java "$@" \
        "-Xms${SPARK_EXECUTOR_MEMORY}" "-Xmx${SPARK_EXECUTOR_MEMORY}" \
        "-XX:SharedArchiveFile=${SPARK_HOME}/classes.jsa" \
        -cp "${classpath}" \
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
