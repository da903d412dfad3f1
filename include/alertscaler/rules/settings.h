/*
 * The content of alertscaler.yaml, with every default filled in. Texts are never empty: NULL if not
 * given. Paths that are relative in the file are prefixed with the file's folder, so that they can
 * be opened from the working directory.
 */
#ifndef ALERTSCALER_RULES_SETTINGS_H
#define ALERTSCALER_RULES_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/decide/approval.h>
#include <alertscaler/model/bounds.h>
#include <alertscaler/rules/http_settings.h>
#include <alertscaler/rules/notify_settings.h>
#include <alertscaler/rules/receiver_settings.h>

/* Inherited by targets that do not override it. */
struct as_target_defaults {
    struct as_bounds_config bounds; /* without max: 0 */
    struct as_approval_config approval;
    bool dry_run;
    int64_t ready_timeout_us; /* of workloads; 0: none */
};

struct as_alertmanager_settings {
    const char **urls; /* count 0: no resync */
    size_t url_count;
    int64_t resync_interval_us;
    const char **receivers; /* that send to us; count 0: not given */
    size_t receiver_count;
    struct as_http_settings http;
};

struct as_prometheus_settings {
    const char *url; /* NULL: none */
    int64_t timeout_us;
    struct as_http_settings http;
};

struct as_cluster_settings {
    const char *name;
    const char *kubeconfig; /* NULL: in-cluster, else $KUBECONFIG, else ~/.kube/config */
    const char *context;    /* NULL: the kubeconfig's current context */
};

struct as_provider_option {
    const char *key, *value;
};

struct as_provider_settings {
    const char *name;
    const char *type; /* "http", "aws", ... */
    int64_t timeout_us;
    struct as_http_settings http;
    struct as_provider_option *options; /* the keys of the type (not of `http`) */
    size_t option_count;
};

struct as_limit_settings {
    uint32_t actions_max; /* 0: no limit */
    int64_t actions_per_us;
    int64_t scale_down_milli_percent; /* 0: no limit */
    int64_t scale_down_per_us;
};

enum as_store_type { AS_STORE_SQLITE, AS_STORE_KUBERNETES };

struct as_lease_settings { /* of the leader election */
    const char *name;
    int64_t duration_us, renew_deadline_us, retry_period_us;
};

struct as_state_settings {
    enum as_store_type store;
    const char *path; /* sqlite */
    /* kubernetes; in the cluster `default` */
    const char *namespace; /* NULL: the pod's own */
    struct as_lease_settings lease;
};

struct as_action_log_settings {
    const char *path;
    uint64_t max_size; /* the file is rotated above this size */
    uint32_t keep;     /* rotated files to keep */
};

struct as_kill_switch_settings {
    const char *file; /* NULL: none */
};

struct as_settings {
    const char *
        *rule_files; /* as written: paths and globs relative to the configuration's folder */
    size_t rule_file_count;
    struct as_target_defaults defaults;
    struct as_alertmanager_settings alertmanager;
    struct as_prometheus_settings prometheus;
    struct as_cluster_settings *clusters; /* always includes one named `default` */
    size_t cluster_count;
    struct as_provider_settings *providers;
    size_t provider_count;
    struct as_receiver_settings receiver;
    struct as_limit_settings limits;
    struct as_state_settings state;
    struct as_action_log_settings action_log;
    struct as_kill_switch_settings kill_switch;
    struct as_notify_settings *notify;
    size_t notify_count;
    const char *instance; /* what alertscaler calls itself in what it tells; NULL: the default */
    bool dry_run;
};

const struct as_provider_settings *as_settings_find_provider(const struct as_settings *settings,
                                                             const char *name);
const struct as_cluster_settings *as_settings_find_cluster(const struct as_settings *settings,
                                                           const char *name);

#endif
