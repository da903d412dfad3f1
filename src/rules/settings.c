/*
 * The tables of alertscaler.yaml. A key's default is its `fallback` and nowhere else.
 */
#include <alertscaler/rules/settings.h>

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#include <alertscaler/rules/tables.h>

#define IN(type, member) offsetof(struct type, member)

static const struct schema_field alertmanager_fields[] = {
    SCHEMA_FIELD("urls", URLS, as_alertmanager_settings, urls, .is_required = true,
                 .count_offset = IN(as_alertmanager_settings, url_count)),
    SCHEMA_FIELD("resync_interval", DURATION, as_alertmanager_settings, resync_interval_us,
                 .min = AS_US_PER_S, .fallback = "1m"),
    SCHEMA_FIELD("receivers", STRINGS, as_alertmanager_settings, receivers,
                 .count_offset = IN(as_alertmanager_settings, receiver_count), .max = 100),
    SCHEMA_FIELD("http_config", MAP, as_alertmanager_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema alertmanager =
    SCHEMA("alertmanager", as_alertmanager_settings, alertmanager_fields);

static const struct schema_field prometheus_fields[] = {
    SCHEMA_FIELD("url", URL, as_prometheus_settings, url, .is_required = true),
    SCHEMA_FIELD("timeout", DURATION, as_prometheus_settings, timeout_us, .min = AS_US_PER_MS,
                 .fallback = "5s"),
    SCHEMA_FIELD("http_config", MAP, as_prometheus_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema prometheus =
    SCHEMA("prometheus", as_prometheus_settings, prometheus_fields);

static const struct schema_field cluster_fields[] = {
    SCHEMA_FIELD("kubeconfig", PATH, as_cluster_settings, kubeconfig),
    SCHEMA_FIELD("context", STRING, as_cluster_settings, context),
    {0},
};

static const struct schema cluster = SCHEMA("clusters", as_cluster_settings, cluster_fields);

static const struct schema_field action_limit_fields[] = {
    SCHEMA_FIELD("max", INT, as_limit_settings, actions_max, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX),
    SCHEMA_FIELD("per", DURATION, as_limit_settings, actions_per_us, .is_required = true,
                 .min = AS_US_PER_S),
    {0},
};

static const struct schema action_limit =
    SCHEMA("limits.actions", as_limit_settings, action_limit_fields);

static const struct schema_field scale_down_limit_fields[] = {
    SCHEMA_FIELD("max", PERCENT, as_limit_settings, scale_down_milli_percent, .is_required = true,
                 .min = 1, .max = 100000),
    SCHEMA_FIELD("per", DURATION, as_limit_settings, scale_down_per_us, .is_required = true,
                 .min = AS_US_PER_S),
    {0},
};

static const struct schema scale_down_limit =
    SCHEMA("limits.scale_down", as_limit_settings, scale_down_limit_fields);

static const struct schema_field limit_fields[] = {
    {.key = "actions", .type = SCHEMA_MAP, .map = &action_limit},
    {.key = "scale_down", .type = SCHEMA_MAP, .map = &scale_down_limit},
    {0},
};

static const struct schema limits = SCHEMA("limits", as_limit_settings, limit_fields);

static const struct schema_field lease_fields[] = {
    SCHEMA_FIELD("name", NAME, as_lease_settings, name, .fallback = "alertscaler"),
    SCHEMA_FIELD("duration", DURATION, as_lease_settings, duration_us, .min = AS_US_PER_S,
                 .max = AS_US_PER_H, .fallback = "15s"),
    SCHEMA_FIELD("renew_deadline", DURATION, as_lease_settings, renew_deadline_us,
                 .min = AS_US_PER_S / 2, .max = AS_US_PER_H, .fallback = "10s"),
    SCHEMA_FIELD("retry_period", DURATION, as_lease_settings, retry_period_us,
                 .min = AS_US_PER_S / 10, .max = AS_US_PER_H, .fallback = "2s"),
    {0},
};

/* RFC 1123 subdomain, as the API requires. */
static bool is_object_name(const char *text)
{
    static const char inside[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    const size_t size = strlen(text);
    return strspn(text, inside) == size && !strchr("-.", text[0]) && !strchr("-.", text[size - 1]);
}

/* client-go's rule: a term ends before its lease, and can be renewed before it ends. */
static void finish_lease(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct as_lease_settings *lease = object;
    const struct as_yaml_node *deadline = as_yaml_find(node, "renew_deadline");
    const struct as_yaml_node *retry = as_yaml_find(node, "retry_period");
    const struct as_yaml_node *name = as_yaml_find(node, "name");
    if (name && name->kind == AS_YAML_SCALAR && lease->name && !is_object_name(lease->name))
        loader_report(
            loader, name,
            "an object's name has lower-case letters, digits, `-` and `.`, and begins and "
            "ends with a letter or digit");
    if (lease->renew_deadline_us >= lease->duration_us)
        loader_report(loader, deadline ? deadline : at,
                      "`renew_deadline` must be shorter than `duration`");
    else if (lease->retry_period_us > lease->renew_deadline_us / 12 * 10)
        loader_report(loader, retry ? retry : at,
                      "`retry_period` must be shorter than `renew_deadline` / 1.2");
}

static const struct schema lease =
    SCHEMA("state.lease", as_lease_settings, lease_fields, .finish = finish_lease);

static const struct schema_field state_fields[] = {
    SCHEMA_FIELD("store", WORD, as_state_settings, store,
                 .words = (const char *const[]){"sqlite", "kubernetes", NULL},
                 .fallback = "sqlite"),
    SCHEMA_FIELD("path", PATH, as_state_settings, path,
                 .fallback = "/var/lib/alertscaler/state.db"),
    SCHEMA_FIELD("namespace", NAME, as_state_settings, namespace),
    SCHEMA_FIELD("lease", MAP, as_state_settings, lease, .map = &lease),
    {0},
};

static void finish_state(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    static const struct {
        const char *key;
        enum as_store_type store;
    } rows[] = {{"path", AS_STORE_SQLITE},
                {"namespace", AS_STORE_KUBERNETES},
                {"lease", AS_STORE_KUBERNETES}};
    const struct as_state_settings *settings = object;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_yaml_node *key = schema_find_key(node, rows[i].key);
        if (key && settings->store != rows[i].store)
            loader_report(loader, key, "`%s` goes with `store: %s`", key->text,
                          rows[i].store == AS_STORE_SQLITE ? "sqlite" : "kubernetes");
    }
}

static const struct schema state =
    SCHEMA("state", as_state_settings, state_fields, .finish = finish_state);

static const struct schema_field action_log_fields[] = {
    SCHEMA_FIELD("path", PATH, as_action_log_settings, path,
                 .fallback = "/var/lib/alertscaler/actions.jsonl"),
    SCHEMA_FIELD("max_size", SIZE, as_action_log_settings, max_size, .min = 1024,
                 .max = INT64_C(1) << 40, .fallback = "100MiB"),
    SCHEMA_FIELD("keep", INT, as_action_log_settings, keep, .min = 1, .max = 10000,
                 .fallback = "10"),
    {0},
};

static const struct schema action_log =
    SCHEMA("action_log", as_action_log_settings, action_log_fields);

static const struct schema_field kill_switch_fields[] = {
    SCHEMA_FIELD("file", PATH, as_kill_switch_settings, file, .is_required = true),
    {0},
};

static const struct schema kill_switch =
    SCHEMA("kill_switch", as_kill_switch_settings, kill_switch_fields);

static const struct schema_field settings_fields[] = {
    SCHEMA_FIELD("rule_files", STRINGS, as_settings, rule_files,
                 .count_offset = IN(as_settings, rule_file_count)),
    SCHEMA_FIELD("defaults", MAP, as_settings, defaults, .map = &schema_policy),
    SCHEMA_FIELD("alertmanager", MAP, as_settings, alertmanager, .map = &alertmanager),
    SCHEMA_FIELD("prometheus", MAP, as_settings, prometheus, .map = &prometheus),
    SCHEMA_FIELD("clusters", NAMED, as_settings, clusters,
                 .count_offset = IN(as_settings, cluster_count), .max = 1000, .map = &cluster),
    SCHEMA_FIELD("providers", NAMED, as_settings, providers,
                 .count_offset = IN(as_settings, provider_count), .max = 1000,
                 .map = &schema_provider),
    SCHEMA_FIELD("receiver", MAP, as_settings, receiver, .map = &schema_receiver),
    SCHEMA_FIELD("limits", MAP, as_settings, limits, .map = &limits),
    SCHEMA_FIELD("state", MAP, as_settings, state, .map = &state),
    SCHEMA_FIELD("action_log", MAP, as_settings, action_log, .map = &action_log),
    SCHEMA_FIELD("kill_switch", MAP, as_settings, kill_switch, .map = &kill_switch),
    SCHEMA_FIELD("notify", MAPS, as_settings, notify, .count_offset = IN(as_settings, notify_count),
                 .max = 100, .map = &schema_notify),
    SCHEMA_FIELD("instance", NAME, as_settings, instance),
    SCHEMA_FIELD("dry_run", BOOL, as_settings, dry_run, .fallback = "false"),
    {0},
};

/* Records and metrics name receivers; two with one name could not be told apart. */
static void finish_settings(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    const struct as_settings *settings = object;
    const struct as_yaml_node *list = as_yaml_find(node, "notify");
    for (size_t i = 0; i < settings->notify_count; i++) {
        const char *name = settings->notify[i].name;
        if (name && as_settings_find_notify(settings, name) != &settings->notify[i])
            loader_report(loader, as_yaml_find(list->items[i], "name"),
                          "there already is a receiver `%s`", name);
    }
}

const struct schema schema_settings = {
    .name = "configuration",
    .size = sizeof(struct as_settings),
    .fields = settings_fields,
    .finish = finish_settings,
    .refusals =
        (const struct schema_refusal[]){
            {"rules", "rules stand in files of their own: name them under `rule_files`", false},
            {"targets", "targets stand in rule files: name them under `rule_files`", false},
            {"tests", "this is a file of tests: run it with `alertscaler test`", false},
            {"groups",
             "this looks like a file of Prometheus' alerting rules. To compare it with rules: "
             "check --prometheus-rules FILE",
             false},
            {"route",
             "this looks like Alertmanager's configuration. To compare rules with it: "
             "check --alertmanager FILE",
             false},
            {0},
        },
};

const struct schema *const schema_settings_parts[] = {
    &alertmanager, &prometheus, &cluster,    &limits,      &action_limit, &scale_down_limit,
    &state,        &lease,      &action_log, &kill_switch, NULL,
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
