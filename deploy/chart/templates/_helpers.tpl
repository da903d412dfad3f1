{{- define "alertscaler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- /* 52 characters: a StatefulSet adds `-` and a digest of 10 to it in a label. */ -}}
{{- define "alertscaler.fullname" -}}
{{- $name := include "alertscaler.name" . -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if contains $name .Release.Name }}{{ $full = .Release.Name }}{{ end -}}
{{- default $full .Values.fullnameOverride | replace "." "-" | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "alertscaler.selector" -}}
app.kubernetes.io/name: {{ include "alertscaler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "alertscaler.labels" -}}
{{ include "alertscaler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Name and tag are those of deploy/image, unless the values say others. */ -}}
{{- define "alertscaler.image" -}}
{{- $setting := index (.Files.Get "files/image.yaml" | fromYaml).images 0 -}}
{{- $name := default $setting.newName .Values.image.repository -}}
{{- if .Values.image.digest }}{{ $name }}@{{ .Values.image.digest }}
{{- else }}{{ $name }}:{{ default $setting.newTag .Values.image.tag }}{{ end -}}
{{- end }}

{{- define "alertscaler.serviceAccount" -}}
{{- default (ternary (include "alertscaler.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end }}

{{- define "alertscaler.secret" -}}
{{- default (printf "%s-tokens" (include "alertscaler.fullname" .)) .Values.credentials.existingSecret -}}
{{- end }}

{{- define "alertscaler.rulesConfigMap" -}}
{{- default (printf "%s-rules" (include "alertscaler.fullname" .)) .Values.existingRulesConfigMap -}}
{{- end }}

{{- define "alertscaler.hasReplicas" -}}
{{- if gt (int .Values.replicaCount) 1 }}true{{ end -}}
{{- end }}

{{- /* With the token of Prometheus, if it may read everything. */ -}}
{{- define "alertscaler.copiesRecords" -}}
{{- $access := default dict (get .Values.credentials.tokens "prometheus") -}}
{{- $reads := and (has "read" (default list (get $access "permissions"))) (not (hasKey $access "rules")) (not (hasKey $access "targets")) -}}
{{- if and (include "alertscaler.hasReplicas" .) (or (not .Values.credentials.enabled) $reads) }}true{{ end -}}
{{- end }}

{{- define "alertscaler.hasAdmission" -}}
{{- if and .Values.objects.enabled .Values.objects.admission }}true{{ end -}}
{{- end }}

{{- define "alertscaler.admissionPort" -}}
{{- regexFind "[0-9]+$" .Values.objects.admission.address -}}
{{- end }}

{{- /* alertscaler.yaml: what the chart sets, and over it what the values say. */ -}}
{{- define "alertscaler.config" -}}
{{- $data := "/var/lib/alertscaler" -}}
{{- $config := dict
    "rule_files" (list "/etc/alertscaler-rules/*.yaml")
    "action_log" (dict "path" (printf "%s/actions.jsonl" $data) "max_size" "100MiB" "keep" 10) -}}
{{- if not (or .Values.rules .Values.existingRulesConfigMap) -}}
{{- $_ := set $config "allow_empty_rules" true -}}
{{- end -}}
{{- if include "alertscaler.hasReplicas" . -}}
{{- $lease := dict "name" (include "alertscaler.fullname" .) -}}
{{- $_ := set $config "state" (dict "store" "kubernetes" "namespace" .Release.Namespace "lease" $lease) -}}
{{- else -}}
{{- $_ := set $config "state" (dict "store" "sqlite" "path" (printf "%s/state.db" $data)) -}}
{{- $_ := set $config "kill_switch" (dict "file" (printf "%s/stop" $data)) -}}
{{- end -}}
{{- if .Values.credentials.enabled -}}
{{- $tokens := list -}}
{{- range $name, $access := .Values.credentials.tokens -}}
{{- if $access -}}
{{- $file := printf "/etc/alertscaler-tokens/%s" $name -}}
{{- $tokens = append $tokens (merge (dict "name" $name "file" $file) $access) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $config "receiver" (dict "tokens" $tokens) -}}
{{- end -}}
{{- if include "alertscaler.copiesRecords" . -}}
{{- $urls := list -}}
{{- range $n := until (int .Values.replicaCount) -}}
{{- $urls = append $urls (printf "http://%s-%d:9096" (include "alertscaler.fullname" $) $n) -}}
{{- end -}}
{{- $replicas := dict "urls" $urls -}}
{{- if .Values.credentials.enabled -}}
{{- $authorization := dict "credentials_file" "/etc/alertscaler-tokens/prometheus" -}}
{{- $_ := set $replicas "http_config" (dict "authorization" $authorization) -}}
{{- end -}}
{{- $_ := set (get $config "action_log") "replicas" $replicas -}}
{{- end -}}
{{- if .Values.objects.enabled -}}
{{- $_ := set $config "objects" .Values.objects -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy .Values.config) | toYaml -}}
{{- end }}

{{- define "alertscaler.scaleRules" -}}
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale, replicasets/scale]
  verbs: [get, update]
- apiGroups: [""]
  resources: [replicationcontrollers/scale]
  verbs: [get, update]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list]
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list]
- apiGroups: [apps]
  resources: [deployments, statefulsets, replicasets]
  verbs: [get]
- apiGroups: [""]
  resources: [replicationcontrollers]
  verbs: [get]
{{- with .Values.rbac.extraRules }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "alertscaler.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "alertscaler.serviceAccount" . }}
    namespace: {{ .Release.Namespace }}
{{- end }}
