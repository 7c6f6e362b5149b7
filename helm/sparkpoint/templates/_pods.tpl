{{/* The `restricted` level of pod security, and no user of our own: some clusters choose it. */}}
{{- define "sparkpoint.podSecurity" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "sparkpoint.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Where the short pods of `helm test` and `helm uninstall` run: as the operator does. */}}
{{- define "sparkpoint.hookPod" -}}
securityContext:
  {{- include "sparkpoint.podSecurity" . | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "sparkpoint.hookContainer" -}}
image: {{ include "sparkpoint.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources:
  requests:
    cpu: 10m
    memory: 32Mi
  limits:
    memory: 128Mi
securityContext:
  {{- include "sparkpoint.containerSecurity" . | nindent 2 }}
{{- end -}}
