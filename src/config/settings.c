/*
 * The tables of alertscaler.yaml. A key with a fallback has its default there and nowhere else.
 */
#include <alertscaler/config/settings.h>

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#include "tables.h"

#define IN(type, member) offsetof(struct type, member)

static const struct schema_field alertmanager_fields[] = {
    {.key = "urls",
     .type = SCHEMA_URLS,
     .is_required = true,
     .offset = IN(as_alertmanager_settings, urls),
     .count_offset = IN(as_alertmanager_settings, url_count)},
    {.key = "resync_interval",
     .type = SCHEMA_DURATION,
     .offset = IN(as_alertmanager_settings, resync_interval_us),
     .min = AS_US_PER_S,
     .fallback = "1m"},
    {.key = "http_config",
     .type = SCHEMA_MAP,
     .offset = IN(as_alertmanager_settings, http),
     .map = &schema_http_config},
    {0},
};

static const struct schema alertmanager = {
    .name = "alertmanager",
    .size = sizeof(struct as_alertmanager_settings),
    .fields = alertmanager_fields,
};

static const struct schema_field prometheus_fields[] = {
    {.key = "url",
     .type = SCHEMA_URL,
     .is_required = true,
     .offset = IN(as_prometheus_settings, url)},
    {.key = "timeout",
     .type = SCHEMA_DURATION,
     .offset = IN(as_prometheus_settings, timeout_us),
     .min = AS_US_PER_MS,
     .fallback = "5s"},
    {.key = "http_config",
     .type = SCHEMA_MAP,
     .offset = IN(as_prometheus_settings, http),
     .map = &schema_http_config},
    {0},
};

static const struct schema prometheus = {
    .name = "prometheus",
    .size = sizeof(struct as_prometheus_settings),
    .fields = prometheus_fields,
};

static const struct schema_field cluster_fields[] = {
    {.key = "kubeconfig", .type = SCHEMA_PATH, .offset = IN(as_cluster_settings, kubeconfig)},
    {.key = "context", .type = SCHEMA_STRING, .offset = IN(as_cluster_settings, context)},
    {0},
};

static const struct schema cluster = {
    .name = "clusters",
    .size = sizeof(struct as_cluster_settings),
    .fields = cluster_fields,
};

static const struct schema_field action_limit_fields[] = {
    {.key = "max",
     .type = SCHEMA_INT,
     .is_required = true,
     .offset = IN(as_limit_settings, actions_max),
     .min = 1,
     .max = AS_SIZE_MAX},
    {.key = "per",
     .type = SCHEMA_DURATION,
     .is_required = true,
     .offset = IN(as_limit_settings, actions_per_us),
     .min = AS_US_PER_S},
    {0},
};

static const struct schema action_limit = {
    .name = "limits.actions",
    .size = sizeof(struct as_limit_settings),
    .fields = action_limit_fields,
};

static const struct schema_field scale_down_limit_fields[] = {
    {.key = "max",
     .type = SCHEMA_PERCENT,
     .is_required = true,
     .offset = IN(as_limit_settings, scale_down_milli_percent),
     .min = 1,
     .max = 100000},
    {.key = "per",
     .type = SCHEMA_DURATION,
     .is_required = true,
     .offset = IN(as_limit_settings, scale_down_per_us),
     .min = AS_US_PER_S},
    {0},
};

static const struct schema scale_down_limit = {
    .name = "limits.scale_down",
    .size = sizeof(struct as_limit_settings),
    .fields = scale_down_limit_fields,
};

static const struct schema_field limit_fields[] = {
    {.key = "actions", .type = SCHEMA_MAP, .map = &action_limit},
    {.key = "scale_down", .type = SCHEMA_MAP, .map = &scale_down_limit},
    {0},
};

static const struct schema limits = {
    .name = "limits",
    .size = sizeof(struct as_limit_settings),
    .fields = limit_fields,
};

static const struct schema_field state_fields[] = {
    {.key = "store",
     .type = SCHEMA_WORD,
     .offset = IN(as_state_settings, store),
     .words = (const char *const[]){"sqlite", "kubernetes", NULL},
     .fallback = "sqlite"},
    {.key = "path",
     .type = SCHEMA_PATH,
     .offset = IN(as_state_settings, path),
     .fallback = "/var/lib/alertscaler/state.db"},
    {.key = "namespace", .type = SCHEMA_STRING, .offset = IN(as_state_settings, namespace)},
    {0},
};

static void finish_state(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct as_state_settings *settings = object;
    bool is_sqlite = settings->store == AS_STORE_SQLITE;
    const struct as_yaml_node *other = schema_find_key(node, is_sqlite ? "namespace" : "path");
    if (other)
        loader_report(loader, other, "`%s` goes with `store: %s`", other->text,
                      is_sqlite ? "kubernetes" : "sqlite");
    const struct as_yaml_node *store = as_yaml_find(node, "store");
    if (store && store->kind == AS_YAML_SCALAR && is_unsupported("state", "store", store->text))
        loader_report(loader, store, "`store: %s` is not supported yet", store->text);
}

static const struct schema state = {
    .name = "state",
    .size = sizeof(struct as_state_settings),
    .fields = state_fields,
    .finish = finish_state,
};

static const struct schema_field action_log_fields[] = {
    {.key = "path",
     .type = SCHEMA_PATH,
     .offset = IN(as_action_log_settings, path),
     .fallback = "/var/lib/alertscaler/actions.jsonl"},
    {.key = "max_size",
     .type = SCHEMA_SIZE,
     .offset = IN(as_action_log_settings, max_size),
     .min = 1024,
     .max = INT64_C(1) << 40,
     .fallback = "100MiB"},
    {.key = "keep",
     .type = SCHEMA_INT,
     .offset = IN(as_action_log_settings, keep),
     .min = 1,
     .max = 10000,
     .fallback = "10"},
    {0},
};

static const struct schema action_log = {
    .name = "action_log",
    .size = sizeof(struct as_action_log_settings),
    .fields = action_log_fields,
};

static const struct schema_field settings_fields[] = {
    {.key = "rule_files",
     .type = SCHEMA_STRINGS,
     .offset = IN(as_settings, rule_files),
     .count_offset = IN(as_settings, rule_file_count)},
    {.key = "defaults",
     .type = SCHEMA_MAP,
     .offset = IN(as_settings, defaults),
     .map = &schema_policy},
    {.key = "alertmanager",
     .type = SCHEMA_MAP,
     .offset = IN(as_settings, alertmanager),
     .map = &alertmanager},
    {.key = "prometheus",
     .type = SCHEMA_MAP,
     .offset = IN(as_settings, prometheus),
     .map = &prometheus},
    {.key = "clusters",
     .type = SCHEMA_NAMED,
     .offset = IN(as_settings, clusters),
     .count_offset = IN(as_settings, cluster_count),
     .max = 1000,
     .map = &cluster},
    {.key = "providers",
     .type = SCHEMA_NAMED,
     .offset = IN(as_settings, providers),
     .count_offset = IN(as_settings, provider_count),
     .max = 1000,
     .map = &schema_provider},
    {.key = "receiver",
     .type = SCHEMA_MAP,
     .offset = IN(as_settings, receiver),
     .map = &schema_receiver},
    {.key = "limits", .type = SCHEMA_MAP, .offset = IN(as_settings, limits), .map = &limits},
    {.key = "state", .type = SCHEMA_MAP, .offset = IN(as_settings, state), .map = &state},
    {.key = "action_log",
     .type = SCHEMA_MAP,
     .offset = IN(as_settings, action_log),
     .map = &action_log},
    {.key = "dry_run",
     .type = SCHEMA_BOOL,
     .offset = IN(as_settings, dry_run),
     .fallback = "false"},
    {0},
};

const struct schema schema_settings = {
    .name = "configuration",
    .size = sizeof(struct as_settings),
    .fields = settings_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"rules", "rules stand in files of their own: name them under `rule_files`", false},
            {"targets", "targets stand in rule files: name them under `rule_files`", false},
            {"tests", "this is a file of tests: run it with `alertscaler test`", false},
            {0},
        },
};

const struct schema *const schema_settings_parts[] = {
    &alertmanager,     &prometheus, &cluster,    &limits, &action_limit,
    &scale_down_limit, &state,      &action_log, NULL,
};

const struct as_provider_settings *as_settings_find_provider(const struct as_settings *settings,
                                                             const char *name)
{
    for (size_t i = 0; i < settings->provider_count; i++) {
        if (strcmp(settings->providers[i].name, name) == 0)
            return &settings->providers[i];
    }
    return NULL;
}

const struct as_cluster_settings *as_settings_find_cluster(const struct as_settings *settings,
                                                           const char *name)
{
    for (size_t i = 0; i < settings->cluster_count; i++) {
        if (strcmp(settings->clusters[i].name, name) == 0)
            return &settings->clusters[i];
    }
    return NULL;
}
