{{/* What objects of this release are called. Short enough that a suffix still fits. */}}
{{- define "sparkpoint.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sparkpoint.operator" -}}
{{ include "sparkpoint.fullname" . }}-operator
{{- end -}}

{{- define "sparkpoint.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sparkpoint.operator" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sparkpoint.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* Where jobs run, as JSON: what is said, else the namespaces that are served by name. */}}
{{- define "sparkpoint.jobNamespaces" -}}
{{- default .Values.watch.namespaces .Values.jobs.namespaces | toJson -}}
{{- end -}}

{{/* The address of the operator's pages. */}}
{{- define "sparkpoint.pages" -}}
http://{{ include "sparkpoint.operator" . }}.{{ .Release.Namespace }}.svc:{{ .Values.metrics.port }}
{{- end -}}

{{/* What selects the operator's pods: a Deployment's selector cannot change later. */}}
{{- define "sparkpoint.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* On every object, given (list context component). */}}
{{- define "sparkpoint.labels" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ $component }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}
{{- end -}}
