{{/* In every namespace that is served. The table is operator/sparkpoint/controller/rights.py; a unit
     test keeps both the same. */}}
{{- define "sparkpoint.rights.served" -}}
- apiGroups: [sparkpoint.dev]
  resources: [statefulsparkjobs]
  verbs: [get, list, watch, patch]
- apiGroups: [sparkpoint.dev]
  resources: [sparksavepoints]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [sparkpoint.dev]
  resources: [statefulsparkjobs/status, sparksavepoints/status]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [get, list, create, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, create, delete]
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, create, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, create, update]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# claims.CLAIM_NAME of the operator's code: who serves the namespace. Other Leases are others'.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [sparkpoint-served-by]
  verbs: [get, update]
# What is not there yet cannot be allowed by its name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- end -}}

{{/* What a Spark driver does with its executors, and how it tidies up after them. */}}
{{- define "sparkpoint.rights.driver" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, deletecollection, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, deletecollection]
- apiGroups: [""]
  resources: [services]
  verbs: [deletecollection]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list, create, delete, deletecollection, patch]
{{- end -}}

{{/* What Airflow's accounts may do, for the DAGs that are named. The table is
     operator/sparkpoint/airflow/rights.py; a unit test keeps both the same. */}}
{{- define "sparkpoint.rights.airflow" -}}
{{- range .Values.airflow.dags }}
{{- if eq . "savepoints" }}
- apiGroups: [sparkpoint.dev]
  resources: [statefulsparkjobs]
  verbs: [get, list]
- apiGroups: [sparkpoint.dev]
  resources: [sparksavepoints]
  verbs: [get, list, watch, create]
{{- else if eq . "cleanup" }}
- apiGroups: [sparkpoint.dev]
  resources: [statefulsparkjobs]
  verbs: [get, list]
- apiGroups: [sparkpoint.dev]
  resources: [sparksavepoints]
  verbs: [get, list, watch, patch, delete]
{{- else if eq . "drills" }}
- apiGroups: [sparkpoint.dev]
  resources: [statefulsparkjobs]
  verbs: [get, list, watch, create, delete]
- apiGroups: [sparkpoint.dev]
  resources: [sparksavepoints]
  verbs: [get, list, watch, create, patch, delete]
{{- else if eq . "campaigns" }}
- apiGroups: [sparkpoint.dev]
  resources: [statefulsparkjobs]
  verbs: [get, list, watch, patch]
- apiGroups: [sparkpoint.dev]
  resources: [sparksavepoints]
  verbs: [list]
{{- end }}
{{- end }}
{{- end -}}

{{/* Airflow's accounts, as subjects of a binding. */}}
{{- define "sparkpoint.airflowAccounts" -}}
{{- range .Values.airflow.serviceAccounts }}
- kind: ServiceAccount
  name: {{ .name | quote }}
  namespace: {{ .namespace | quote }}
{{- end }}
{{- end -}}
