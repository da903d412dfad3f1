{{- /* The pod: the same for one replica and for several. */ -}}
{{- define "alertscaler.pod" -}}
metadata:
  labels:
    {{- include "alertscaler.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    {{- if not .Values.serviceMonitor.enabled }}
    prometheus.io/scrape: "true"
    prometheus.io/port: "9096"
    {{- end }}
    # a change of these needs a restart; all else is loaded by itself
    {{- $config := include "alertscaler.config" . | fromYaml }}
    checksum/restart: {{ dict "state" $config.state "action_log" (omit $config.action_log "replicas") | toJson | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "alertscaler.serviceAccount" . }}
  terminationGracePeriodSeconds: 40
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.podSecurityContext }}
  securityContext: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.affinity }}
  affinity: {{- toYaml .Values.affinity | nindent 4 }}
  {{- else if include "alertscaler.hasReplicas" . }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        {{- range $key, $weight := dict "kubernetes.io/hostname" 100 "topology.kubernetes.io/zone" 50 }}
        - weight: {{ $weight }}
          podAffinityTerm:
            topologyKey: {{ $key }}
            labelSelector:
              matchLabels: {{- include "alertscaler.selector" $ | nindent 16 }}
        {{- end }}
  {{- end }}
  containers:
    - name: alertscaler
      image: {{ include "alertscaler.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --config.file=/etc/alertscaler/alertscaler.yaml
        - --config.auto-reload-interval={{ .Values.autoReloadInterval }}
        - --log.level={{ .Values.logLevel }}
        - --log.format={{ .Values.logFormat }}
        {{- if .Values.adminApi }}
        - --web.enable-admin-api
        {{- end }}
        {{- with .Values.extraArgs }}{{ toYaml . | nindent 8 }}{{ end }}
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - name: http
          containerPort: 9096
        {{- if include "alertscaler.hasAdmission" . }}
        - name: admission
          containerPort: {{ include "alertscaler.admissionPort" . }}
        {{- end }}
      livenessProbe:
        httpGet: {path: /-/healthy, port: http}
        periodSeconds: 10
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /-/ready, port: http}
        {{- if include "alertscaler.hasReplicas" . }}
        periodSeconds: 1
        failureThreshold: 1
        {{- else }}
        periodSeconds: 5
        {{- end }}
      {{- with .Values.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.containerSecurityContext }}
      securityContext: {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: config, mountPath: /etc/alertscaler, readOnly: true}
        - {name: rules, mountPath: /etc/alertscaler-rules, readOnly: true}
        {{- if .Values.credentials.enabled }}
        - {name: tokens, mountPath: /etc/alertscaler-tokens, readOnly: true}
        {{- end }}
        - {name: data, mountPath: /var/lib/alertscaler}
        {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - name: config
      configMap: {name: {{ include "alertscaler.fullname" . }}-config}
    - name: rules
      configMap: {name: {{ include "alertscaler.rulesConfigMap" . }}}
    {{- if .Values.credentials.enabled }}
    - name: tokens
      secret: {secretName: {{ include "alertscaler.secret" . }}}
    {{- end }}
    {{- if not .Values.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- else if not (include "alertscaler.hasReplicas" .) }}
    - name: data
      persistentVolumeClaim: {claimName: {{ default (include "alertscaler.fullname" .) .Values.persistence.existingClaim }}}
    {{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{- define "alertscaler.claim" -}}
accessModes: {{- toYaml .Values.persistence.accessModes | nindent 2 }}
{{- with .Values.persistence.storageClass }}
storageClassName: {{ . | quote }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.persistence.size }}
{{- end }}
