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
#include <alertscaler/model/matcher.h>

struct as_settings;

/*
 * Prometheus' `http_config`.
 */

struct as_header_settings { /* one row of http_headers */
    const char *name;
    const char **values;
    size_t value_count;
    const char **files; /* files of secret values, re-read when they change */
    size_t file_count;
};

struct as_tls_settings { /* Prometheus' `tls_config` */
    const char *ca_file, *cert_file, *key_file, *server_name;
    bool insecure_skip_verify;
};

struct as_form_parameter { /* one row of endpoint_params */
    const char *name, *value;
};

struct as_oauth2_settings { /* the client credentials grant: RFC 6749, section 4.4 */
    const char *client_id, *client_secret_file, *token_url;
    const char **scopes;
    size_t scope_count;
    struct as_form_parameter *endpoint_params;
    size_t endpoint_param_count;
    struct as_tls_settings tls; /* of the token server */
};

struct as_sigv4_settings {
    const char *region;                 /* NULL: from the environment or the profile */
    const char *profile;                /* of the shared configuration files; NULL: AWS_PROFILE */
    const char *role_arn, *external_id; /* the role that is assumed; NULL: none */
};

struct as_azuread_settings { /* exactly one of the three is set */
    const char *cloud;       /* AzurePublic, AzureChina, AzureGovernment */
    struct {
        bool is_set;
        const char *client_id; /* NULL: the identity that the system assigned */
    } managed_identity;
    struct {
        bool is_set;
        const char *client_id, *tenant_id, *token_file_path; /* NULL: from the environment */
    } workload_identity;
    struct {
        bool is_set;
        const char *client_id, *tenant_id, *client_secret_file;
    } oauth;
};

struct as_google_iam_settings {
    const char *credentials_file; /* NULL: the application default credentials */
};

/* The login of an http_config with a cloud or a token server. */
enum as_login_kind {
    AS_LOGIN_NONE,
    AS_LOGIN_OAUTH2,
    AS_LOGIN_SIGV4,
    AS_LOGIN_AZUREAD,
    AS_LOGIN_GOOGLE_IAM
};

struct as_http_settings {
    struct {
        const char *username, *username_file, *password_file;
    } basic_auth;
    struct {
        const char *type; /* "Bearer" if only the file is given */
        const char *credentials_file;
    } authorization;
    enum as_login_kind login; /* which of these is set: at most one */
    struct as_oauth2_settings oauth2;
    struct as_sigv4_settings sigv4;
    struct as_azuread_settings azuread;
    struct as_google_iam_settings google_iam;
    struct as_tls_settings tls;
    struct as_header_settings *headers;
    size_t header_count;
    const char *proxy_url;
};

/*
 * `notify`: the receivers of notices.
 */

struct as_notify_settings { /* one receiver */
    const char *name;
    bool is_webhook; /* CloudEvents; else Alertmanagers, each of which is told */
    const char **urls;
    size_t url_count;
    const char *url; /* the webhook's, also in `urls`; NULL: Alertmanagers */
    struct as_http_settings http;
    unsigned on; /* bits of enum as_notice_kind */
    int64_t max_age_us;
};

/* What alertscaler calls itself: `instance`; else the Lease's name, as all replicas are one; else
 * this host's name, in the caller's memory. */
#define AS_INSTANCE_NAME_SIZE 256
const char *as_settings_get_instance(const struct as_settings *settings,
                                     char host_out[AS_INSTANCE_NAME_SIZE]);

const struct as_notify_settings *as_settings_find_notify(const struct as_settings *settings,
                                                         const char *name);

/*
 * `receiver`: the requests that are accepted, and their credentials.
 */

enum as_permission {
    AS_PERMISSION_NOTIFY, /* send notifications */
    AS_PERMISSION_READ,   /* the API, metrics, the status page */
    AS_PERMISSION_ADMIN,  /* the admin API: changes */
    AS_PERMISSION_COUNT
};
extern const char *const as_permission_words[]; /* "notify", ...; up to a NULL */

struct as_access_settings { /* what a credential may do */
    unsigned permissions;   /* bits 1 << enum as_permission */
    const char **rules; /* patterns of what it may trigger (model/scope.h); count 0: everything */
    size_t rule_count;
    const char **targets; /* as for rules */
    size_t target_count;
};

struct as_token_settings { /* a bearer token that is accepted */
    const char *name;      /* of the credential, in the action log */
    const char *file;      /* re-read when it changes */
    struct as_access_settings access;
};

struct as_user_settings { /* what a user of the web configuration may do */
    const char *name;
    struct as_access_settings access;
};

struct as_certificate_settings { /* a client's certificate, verified by TLS */
    const char *name;
    const char *subject; /* pattern of the certificate's name */
    struct as_access_settings access;
};

struct as_hmac_settings { /* a signature over the body, as Grafana sends it */
    const char *name, *secret_file;
    const char *header;
    const char *timestamp_header; /* NULL: none is signed */
    int64_t max_skew_us;
    struct as_access_settings access; /* at most `notify` */
};

struct as_review_settings { /* the user or group that the API server returns for a token */
    const char *name;
    const char *user, *group; /* exactly one is set */
    struct as_access_settings access;
};

struct as_token_review_settings {
    const char *cluster; /* NULL: no token reviews */
    const char **audiences;
    size_t audience_count;
    struct as_review_settings *allow;
    size_t allow_count;
};

struct as_proxy_group {
    const char *name;     /* "*": every person */
    unsigned permissions; /* bits 1 << enum as_permission; never `notify` */
};

struct as_proxy_settings {
    const char *header; /* with the name */
    const char *groups_header;
    const char *certificate; /* pattern of the name in the proxy's certificate; NULL: none */
    const char **addresses;  /* ranges; without them and a certificate: this machine */
    size_t address_count;
    struct as_proxy_group *groups; /* count 0: there is no proxy */
    size_t group_count;
};

struct as_receiver_settings {
    uint64_t max_body;
    uint64_t max_bodies; /* of all together */
    uint32_t max_connections;
    uint64_t max_incident_memory; /* bytes */
    uint64_t repeat_cache;        /* bytes */
    int64_t incident_expiry_us, stale_window_us;
    struct as_token_settings *tokens; /* count 0: everyone may send */
    size_t token_count;
    struct as_user_settings *users;
    size_t user_count;
    struct as_certificate_settings *certificates;
    size_t certificate_count;
    struct as_hmac_settings *hmac;
    size_t hmac_count;
    struct as_token_review_settings token_review;
    struct as_proxy_settings proxy;
    struct as_matcher *watchdog; /* count 0: none */
    size_t watchdog_count;
    int64_t watchdog_within_us;
};

/*
 * The whole file.
 */

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
    int32_t max_queries; /* under way at a time */
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

struct as_replica_settings { /* whose records the leader copies */
    const char **urls;       /* count 0: of none */
    size_t url_count;
    struct as_http_settings http;
};

struct as_action_log_settings {
    const char *path;
    uint64_t max_size; /* the file is rotated above this size */
    uint32_t keep;     /* rotated files to keep */
    struct as_replica_settings replicas;
};

struct as_kill_switch_settings {
    const char *file; /* NULL: none */
};

/*
 * Scaling policies (rules/policy.h): which ones are used, and what they may do.
 */

struct as_object_kind_settings { /* a kind that policies may scale beside the built-in ones */
    const char *api_version, *kind;
    const char *field; /* of its size; NULL: the `scale` subresource */
};

struct as_object_group_settings {     /* node groups that policies of these namespaces may scale */
    const char **namespaces, **names; /* globs (base/str.h) */
    size_t namespace_count, name_count;
    const char *provider;
};

struct as_admission_settings {        /* the listener that the API server asks */
    const char *address;              /* ":9443"; NULL: none */
    const char *cert_file, *key_file; /* both NULL: the leader makes them */
};

struct as_object_settings {
    bool is_enabled;
    const char **namespaces; /* count 0: all */
    size_t namespace_count;
    const char *selector, *namespace_selector; /* labels, "team=shop,tier=1"; NULL: all */
    uint32_t max_policies, rules_per_policy;
    struct as_object_kind_settings *kinds;
    size_t kind_count;
    struct as_object_group_settings *node_groups;
    size_t node_group_count;
    bool enforces_namespace_label;
    const char *namespace_label;
    struct as_prometheus_settings prometheus; /* no URL: none; may have {{ .Namespace }} */
    bool allows_unrestricted_queries;
    int64_t min_every_us;
    uint32_t queries_per_namespace; /* under way at a time */
    int32_t max_size;               /* of targets of policies; 0: no limit of its own */
    uint32_t actions_max;           /* for each namespace; 0: no limit */
    int64_t actions_per_us;
    struct as_admission_settings admission;
};

struct as_settings {
    const char *
        *rule_files; /* as written: paths and globs relative to the configuration's folder */
    size_t rule_file_count;
    bool allow_empty_rules; /* rule_files may lead to no file */
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
    struct as_object_settings objects;
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
