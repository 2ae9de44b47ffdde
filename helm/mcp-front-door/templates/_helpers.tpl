{{- define "door.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 45 characters at most, so that what is appended (-dashboard-…, -valkey-0) stays within a label's 63. */}}
{{- define "door.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $whole := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $whole | trunc 45 | trimSuffix "-" -}}
{{- end -}}

{{- define "door.selectors" -}}
app.kubernetes.io/name: {{ include "door.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of everything but the store, which is another component. */}}
{{- define "door.labels" -}}
{{ include "door.selectors" . }}
app.kubernetes.io/component: gateway
{{ include "door.commonLabels" . }}
{{- end -}}

{{- define "door.valkeySelectors" -}}
app.kubernetes.io/name: {{ include "door.name" . }}-valkey
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "door.valkeyLabels" -}}
{{ include "door.valkeySelectors" . }}
app.kubernetes.io/component: store
{{ include "door.commonLabels" . }}
{{- end -}}

{{- define "door.testSelectors" -}}
app.kubernetes.io/name: {{ include "door.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "door.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: mcp-front-door
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "door.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "door.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* repository[:tag][@digest] of an `image` value; the tag is the second argument where there is none. */}}
{{- define "door.image" -}}
{{- $image := index . 0 -}}
{{- printf "%s:%s" $image.repository ($image.tag | default (index . 1)) -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "door.keysSecret" -}}
{{- .Values.keys.existingSecret | default (printf "%s-keys" (include "door.fullname" .)) -}}
{{- end -}}

{{- define "door.adminSecret" -}}
{{- .Values.adminToken.existingSecret | default (printf "%s-admin" (include "door.fullname" .)) -}}
{{- end -}}

{{- define "door.valkeySecret" -}}
{{- .Values.redis.bundled.existingSecret | default (printf "%s-valkey" (include "door.fullname" .)) -}}
{{- end -}}

{{/* The Secret and the key in it that hold the store's password, as YAML; empty where there is none. */}}
{{- define "door.storePassword" -}}
{{- if eq .Values.redis.mode "bundled" -}}
name: {{ include "door.valkeySecret" . }}
key: {{ .Values.redis.bundled.secretKey }}
{{- else if and (eq .Values.redis.mode "external") .Values.redis.external.existingSecret -}}
name: {{ .Values.redis.external.existingSecret }}
key: {{ .Values.redis.external.secretKey }}
{{- end -}}
{{- end -}}

{{/* A value of a Secret that this chart made before, decoded; empty at the first installation, and where templates are
rendered without a cluster. */}}
{{- define "door.kept" -}}
{{- $context := index . 0 -}}
{{- $found := lookup "v1" "Secret" $context.Release.Namespace (index . 1) -}}
{{- with $found }}{{ with .data }}{{ index . (index $ 2) | default "" | b64dec }}{{ end }}{{ end -}}
{{- end -}}

{{- define "door.scheme" -}}
{{- ternary "https" "http" (hasKey .Values.config "tls") -}}
{{- end -}}

{{- define "door.replicasMany" -}}
{{- if or .Values.autoscaling.enabled .Values.keda.enabled (gt (int .Values.replicaCount) 1) -}}many{{- end -}}
{{- end -}}
