{{/* Values that contradict each other, one sentence each. Types and names are the schema's business. */}}
{{- define "sparkpoint.contradictions" -}}
{{- $values := .Values -}}
{{- $namespaced := eq $values.watch.scope "Namespaces" -}}
{{- $replicas := int $values.replicas -}}
{{- if and $namespaced (not $values.watch.namespaces) }}
- watch.scope is Namespaces, but watch.namespaces is empty: list the namespaces to serve, or set watch.scope=Cluster.
{{- end }}
{{- if and (not $namespaced) $values.watch.namespaces }}
- watch.namespaces lists {{ join ", " $values.watch.namespaces }}, but watch.scope is Cluster, which serves all of them: set watch.scope=Namespaces, or empty the list.
{{- end }}
{{- if and $namespaced $values.watch.namespaces }}
{{- range $values.jobs.namespaces }}
{{- if not (has . $values.watch.namespaces) }}
- jobs.namespaces lists {{ . }}, which watch.namespaces does not: add it there, as jobs in it would not be served.
{{- end }}
{{- end }}
{{- end }}
{{- if and (gt $replicas 1) (not $values.leaderElection.enabled) }}
- replicas is {{ $replicas }}, but leaderElection.enabled is false, and two operators must not act at once: set leaderElection.enabled=true, or replicas=1.
{{- end }}
{{- if and $values.podDisruptionBudget.enabled (gt (int $values.podDisruptionBudget.minAvailable) $replicas) }}
- podDisruptionBudget.minAvailable is {{ $values.podDisruptionBudget.minAvailable }}, but replicas is {{ $replicas }}: it can never be met; lower it, or raise replicas.
{{- end }}
{{- if not $values.metrics.enabled }}
{{- if $values.monitoring.serviceMonitor.enabled }}
- monitoring.serviceMonitor.enabled is true, but metrics.enabled is false, so there is nothing to scrape: set metrics.enabled=true.
{{- end }}
{{- if $values.monitoring.rules.enabled }}
- monitoring.rules.enabled is true, but metrics.enabled is false, so no alert could ever fire: set metrics.enabled=true.
{{- end }}
{{- if $values.monitoring.dashboard.enabled }}
- monitoring.dashboard.enabled is true, but metrics.enabled is false, so it would stay empty: set metrics.enabled=true.
{{- end }}
{{- end }}
{{- if and $values.networkPolicy.enabled (not $values.networkPolicy.monitoring) }}
{{- if $values.monitoring.serviceMonitor.enabled }}
- monitoring.serviceMonitor.enabled is true, but networkPolicy.monitoring is empty, so Prometheus could not reach the operator: list where it runs.
{{- end }}
{{- if and $values.monitoring.podMonitor.enabled $values.networkPolicy.drivers.enabled }}
- monitoring.podMonitor.enabled is true, but networkPolicy.monitoring is empty, so Prometheus could not reach drivers: list where it runs.
{{- end }}
{{- end }}
{{- if and (not $values.serviceAccount.create) (not $values.serviceAccount.name) }}
- serviceAccount.create is false, but serviceAccount.name is empty: name the account that the operator runs as.
{{- end }}
{{- if and $values.rbac.aggregate $namespaced }}
- rbac.aggregate is true, but watch.scope is Namespaces, for which no ClusterRole is made: set watch.scope=Cluster, or rbac.aggregate=false.
{{- end }}
{{- if and $values.rbac.aggregate (not $values.rbac.create) }}
- rbac.aggregate is true, but rbac.create is false, so that no role is made: set rbac.create=true, or rbac.aggregate=false.
{{- end }}
{{- if and $values.airflow.enabled $values.rbac.create (not $values.airflow.serviceAccounts) }}
- airflow.enabled is true, but airflow.serviceAccounts is empty, so its role would be nobody's: name the accounts of Airflow's workers and triggerer.
{{- end }}
{{- if and $values.airflow.configMap.enabled (not $values.airflow.enabled) }}
- airflow.configMap.enabled is true, but airflow.enabled is not, so that no DAGs would be there: set airflow.enabled, too.
{{- end }}
{{- if and $values.airflow.enabled $namespaced $values.watch.namespaces }}
{{- range $values.airflow.namespaces }}
{{- if not (has . $values.watch.namespaces) }}
- airflow.namespaces lists {{ . }}, which watch.namespaces does not: add it there, as nobody would take savepoints in it.
{{- end }}
{{- end }}
{{- end }}
{{- $ours := dict "--namespace" "watch.namespaces" "--lease-namespace" "leaderElection.enabled" "--lease-name" "fullnameOverride" "--health-port" "metrics.port" }}
{{- range $values.extraArgs }}
{{- $option := first (splitList "=" .) }}
{{- with get $ours $option }}
- extraArgs has {{ $option }}, which rights, probes and Services would not know of: set {{ . }} instead.
{{- end }}
{{- end }}
{{- $variables := dict "SPARKPOINT_NAMESPACES" "watch.namespaces" "SPARKPOINT_LEASE_NAMESPACE" "leaderElection.enabled" }}
{{- range $values.extraEnv }}
{{- $variable := .name }}
{{- with get $variables (toString .name) }}
- extraEnv has {{ $variable }}, which the chart's rights would not know of: set {{ . }} instead.
{{- end }}
{{- end }}
{{- if and $values.image.tag $values.image.digest }}
- image.tag and image.digest are both set, and may name different images: empty one of them.
{{- end }}
{{- /* What comes before the last slash may be the port of a registry. */}}
{{- if regexMatch "[:@]" (last (splitList "/" $values.image.repository)) }}
- image.repository is {{ $values.image.repository }}, which has a tag or a digest in it: set image.tag or image.digest instead.
{{- end }}
{{- $here := .Release.Namespace }}
{{- $account := $values.jobs.serviceAccount.name }}
{{- if and (eq $account (include "sparkpoint.serviceAccount" .)) (has $here (include "sparkpoint.jobNamespaces" . | fromJsonArray)) }}
- jobs.serviceAccount.name is {{ $account }}, which is in {{ $here }} the operator's own account, so that jobs could do whatever it may: name another, or keep jobs out of {{ $here }}.
{{- end }}
{{- $labels := include "sparkpoint.labels" (list . "operator") | fromYaml }}
{{- $monitoring := $values.monitoring }}
{{- $free := dict "podLabels" $values.podLabels "monitoring.serviceMonitor.labels" $monitoring.serviceMonitor.labels "monitoring.podMonitor.labels" $monitoring.podMonitor.labels "monitoring.rules.labels" $monitoring.rules.labels "monitoring.dashboard.labels" $monitoring.dashboard.labels }}
{{- range $path, $given := $free }}
{{- range $name, $_ := $given }}
{{- if hasKey $labels $name }}
- {{ $path }} has {{ $name }}, which the chart sets itself: leave it out.
{{- end }}
{{- end }}
{{- end }}
{{- if hasKey (default dict $values.jobs.serviceAccount.annotations) "helm.sh/resource-policy" }}
- jobs.serviceAccount.annotations has helm.sh/resource-policy, which the chart sets itself: leave it out.
{{- end }}
{{- end -}}
