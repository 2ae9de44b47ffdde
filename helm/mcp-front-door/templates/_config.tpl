{{/* The gateway's configuration file: `config` as it is, and what only the chart knows: ports, secrets, the store. */}}
{{- define "door.config" -}}
{{- include "door.checks" . -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "listen" (printf "0.0.0.0:%d" (int .Values.ports.http)) -}}
{{- $_ := set $config "admin" (printf "0.0.0.0:%d" (int .Values.ports.admin)) -}}
{{- $_ := set $config "admin_token" "file:/run/secrets/mcp-front-door/admin/token" -}}
{{- $keys := list -}}
{{- range .Values.keys.secretKeys -}}
{{- $keys = append $keys (printf "file:/run/secrets/mcp-front-door/keys/%s" .) -}}
{{- end -}}
{{- $_ := set $config "keys" $keys -}}
{{- if ne .Values.redis.mode "none" -}}
{{- $_ := set $config "store" (merge (include "door.store" . | fromYaml) (.Values.config.store | default dict)) -}}
{{- end -}}
{{- if not (hasKey $config "grace_s") -}}
{{- $_ := set $config "grace_s" (sub (sub .Values.terminationGracePeriodSeconds .Values.preStopSleepSeconds) 5) -}}
{{- end -}}
{{- if and .Values.inClusterHosts (not (hasKey $config "hosts")) -}}
{{- $_ := set $config "public_url" (concat (include "door.publicUrls" . | fromYamlArray) (include "door.ownUrls" . | fromYamlArray)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "door.store" -}}
{{- if eq .Values.redis.mode "bundled" -}}
url: redis://{{ include "door.fullname" . }}-valkey:6379/0
username: gateway
{{- else -}}
url: {{ .Values.redis.external.url | quote }}
{{- with .Values.redis.external.username }}
username: {{ . | quote }}
{{- end }}
{{- end }}
{{- if include "door.storePassword" . }}
password: file:/run/secrets/mcp-front-door/store/password
{{- end -}}
{{- end -}}

{{/* `config.public_url`, which may be one or a list, as a list. */}}
{{- define "door.publicUrls" -}}
{{- $given := .Values.config.public_url | default list -}}
{{- if kindIs "string" $given }}{{ $given = list $given }}{{ end -}}
{{- toYaml $given -}}
{{- end -}}

{{/* How clients in the cluster reach the Service. */}}
{{- define "door.ownUrls" -}}
{{- $service := printf "%s://%s" (include "door.scheme" .) (include "door.fullname" .) -}}
{{- $inside := printf "%s.%s" $service .Release.Namespace -}}
{{- toYaml (list $service $inside (printf "%s.svc" $inside) (printf "%s.svc.%s" $inside .Values.clusterDomain)) -}}
{{- end -}}

{{/* What would start and then not work, or lose state, is refused here, where the message can name the value. */}}
{{- define "door.checks" -}}
{{- $values := .Values -}}
{{- if not $values.config.upstreams -}}
{{- fail "config.upstreams is empty: name the MCP servers behind the gateway, for example config.upstreams.weather.url=http://weather.tools.svc/mcp" -}}
{{- end -}}
{{- if not $values.config.routes -}}
{{- fail "config.routes is empty: give at least one endpoint, for example config.routes[0].path=/mcp and config.routes[0].upstream=weather" -}}
{{- end -}}
{{- range $key, $instead := dict "listen" "ports.http" "admin" "ports.admin" "admin_token" "adminToken.existingSecret" "keys" "keys.existingSecret" -}}
{{- if hasKey $values.config $key -}}
{{- fail (printf "config.%s is written by the chart: remove it and use %s" $key $instead) -}}
{{- end -}}
{{- end -}}
{{- include "door.checkStore" . -}}
{{- include "door.checkGrace" . -}}
{{- include "door.checkHosts" . -}}
{{- if and $values.autoscaling.enabled $values.keda.enabled -}}
{{- fail "autoscaling.enabled and keda.enabled: two autoscalers would work against each other; enable one" -}}
{{- end -}}
{{- if and $values.keda.enabled (not $values.keda.triggers) (not $values.keda.prometheus.serverAddress) -}}
{{- fail "keda.enabled needs keda.prometheus.serverAddress, for example http://prometheus-operated.monitoring:9090, or keda.triggers" -}}
{{- end -}}
{{- end -}}

{{- define "door.checkStore" -}}
{{- $redis := .Values.redis -}}
{{- if and (eq $redis.mode "none") (include "door.replicasMany" .) -}}
{{- fail "more than one replica shares what it knows of sessions and calls in a store: set redis.mode to external or bundled, or replicaCount to 1 without an autoscaler" -}}
{{- end -}}
{{- if and (eq $redis.mode "none") .Values.config.store -}}
{{- fail "config.store without a store: set redis.mode to external and redis.external.url, or redis.mode to bundled" -}}
{{- end -}}
{{- if and (eq $redis.mode "external") (not $redis.external.url) -}}
{{- fail "redis.mode is external: set redis.external.url, for example rediss://valkey.example.com:6379/0" -}}
{{- end -}}
{{- if and (eq $redis.mode "external") $redis.external.username (not $redis.external.existingSecret) -}}
{{- fail "redis.external.username without a password: set redis.external.existingSecret" -}}
{{- end -}}
{{- range $key, $instead := dict "url" "redis.external.url" "username" "redis.external.username" "password" "redis.external.existingSecret" -}}
{{- if hasKey ($.Values.config.store | default dict) $key -}}
{{- fail (printf "config.store.%s is written by the chart: remove it and use %s" $key $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Kubernetes counts the preStop sleep into the grace period; 5 s are for the gateway's own end after grace_s. */}}
{{- define "door.checkGrace" -}}
{{- $needed := addf (.Values.config.grace_s | default 0) .Values.preStopSleepSeconds 5 -}}
{{- if gt $needed (float64 .Values.terminationGracePeriodSeconds) -}}
{{- fail (printf "terminationGracePeriodSeconds is %v, and a pod needs %v: preStopSleepSeconds, config.grace_s and 5 s to end" .Values.terminationGracePeriodSeconds $needed) -}}
{{- end -}}
{{- end -}}

{{/* A host that is led here and that the gateway does not serve would be answered 403. Variables are not known here. */}}
{{- define "door.checkHosts" -}}
{{- $asked := dict -}}
{{- if .Values.ingress.enabled -}}
{{- if not .Values.ingress.hosts }}{{ fail "ingress.hosts is empty: name the hosts by which clients come" }}{{ end -}}
{{- range .Values.ingress.hosts }}{{ $_ := set $asked . "ingress.hosts" }}{{ end -}}
{{- end -}}
{{- if .Values.httpRoute.enabled -}}
{{- if not .Values.httpRoute.parentRefs }}{{ fail "httpRoute.parentRefs is empty: name the Gateway, for example httpRoute.parentRefs[0].name=public" }}{{ end -}}
{{- range .Values.httpRoute.hostnames }}{{ $_ := set $asked . "httpRoute.hostnames" }}{{ end -}}
{{- end -}}
{{- $served := list -}}
{{- $unknown := hasKey .Values.config "hosts" -}}
{{- range (include "door.publicUrls" . | fromYamlArray) -}}
{{- if contains "${" . }}{{ $unknown = true }}{{ else }}{{ $served = append $served (urlParse .).hostname }}{{ end -}}
{{- end -}}
{{- range .Values.config.routes }}{{ with .host }}
{{- if contains "${" . }}{{ $unknown = true }}{{ else }}{{ $served = append $served . }}{{ end -}}
{{- end }}{{ end -}}
{{- range $host, $place := $asked -}}
{{- $known := $unknown -}}
{{- range $served -}}
{{- if or (eq . $host) (and (hasPrefix "*." .) (hasSuffix (trimPrefix "*" .) $host)) }}{{ $known = true }}{{ end -}}
{{- end -}}
{{- if not $known -}}
{{- fail (printf "%s leads %s here, which the gateway would answer 403: add https://%s to config.public_url, or a route with that host" $place $host $host) -}}
{{- end -}}
{{- end -}}
{{- end -}}
