/*
 * The metrics of /metrics: the table of families, the series with their counts, the events that are
 * counted, the choice of the format, and the exposition. Present values are read when they are
 * printed: they have no series. Nothing here changes a decision.
 */
#include <alertscaler/runtime/metrics.h>

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/regex.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/kube_rivals.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/runtime/shell.h>
#include <alertscaler/runtime/version.h>

#include "metrics_private.h"

/*
 * The kernel's counts for this process, as all Prometheus clients show them: reads /proc/self. The
 * start time is the boot time plus proc(5)'s starttime.
 */

struct process_stats {
    double cpu_seconds, start_time_seconds;
    double resident_bytes, virtual_bytes;
    double open_fds, max_fds;
};

#define PROC_FILE_MAX ((size_t)1024 * 1024)

/* The fields that we need of /proc/self/stat, counted from the first after the name. */
enum { STAT_UTIME = 11, STAT_STIME = 12, STAT_STARTTIME = 19, STAT_VSIZE = 20, STAT_RSS = 21 };

static int read_stat(int64_t *fields_out, size_t count)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size;
    int status = as_file_read("/proc/self/stat", PROC_FILE_MAX, &text, &size);
    if (status != 0)
        return status;
    const char *at = strrchr(text, ')'); /* the name may contain anything */
    if (!at || at[1] != ' ')
        return -EBADMSG;
    at += 2;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(at, " \n");
        fields_out[i] = 0;
        if (i > 0) { /* the first is a letter */
            status = as_number_parse_i64(at, length, &fields_out[i]);
            if (status != 0)
                return status;
        }
        at += length + (at[length] != '\0');
    }
    return 0;
}

static int read_boot_time(int64_t *seconds_out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size;
    int status = as_file_read("/proc/stat", PROC_FILE_MAX, &text, &size);
    if (status != 0)
        return status;
    static const char key[] = "\nbtime ";
    const char *at = strstr(text, key);
    if (!at)
        return -EBADMSG;
    at += sizeof(key) - 1;
    return as_number_parse_i64(at, strcspn(at, "\n"), seconds_out);
}

static int count_open_fds(double *count_out)
{
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return -errno;
    double count = -1; /* without the descriptor of this folder */
    const struct dirent *entry;
    while ((entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    closedir(directory);
    *count_out = count;
    return 0;
}

/* 0, or a negative errno if /proc is unreadable. */
static int process_stats_read(struct process_stats *stats_out)
{
    int64_t fields[STAT_RSS + 1];
    int64_t boot;
    double open_fds = 0;
    struct rlimit limit;
    int status = read_stat(fields, AS_ARRAY_SIZE(fields));
    if (status == 0)
        status = read_boot_time(&boot);
    if (status == 0)
        status = count_open_fds(&open_fds);
    if (status == 0 && getrlimit(RLIMIT_NOFILE, &limit) != 0)
        status = -errno;
    if (status != 0)
        return status;
    const double ticks = (double)sysconf(_SC_CLK_TCK);
    *stats_out = (struct process_stats){
        .cpu_seconds = (double)(fields[STAT_UTIME] + fields[STAT_STIME]) / ticks,
        .start_time_seconds = (double)boot + (double)fields[STAT_STARTTIME] / ticks,
        .resident_bytes = (double)fields[STAT_RSS] * (double)sysconf(_SC_PAGESIZE),
        .virtual_bytes = (double)fields[STAT_VSIZE],
        .open_fds = open_fds,
        .max_fds = (double)limit.rlim_cur,
    };
    return 0;
}

/*
 * The table of metrics. Names, labels and types are stable for users; a test checks that
 * docs/metrics.md describes each.
 */

static const double commit_buckets[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                        0.05,   0.1,   0.25,   0.5,   1,    2.5};
static const double http_buckets[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                      0.1,    0.25,  0.5,    1,     2.5,  5,     10};
static const double call_buckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                      1,     2.5,  5,     10,   30,  60};
static const double reaction_buckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                          1,     2.5,  5,     10,   30,  60,   300};
static const double alert_buckets[] = {1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600};

#define OF_POLICY "namespace", "policy"

#define BUCKETS(array) .buckets = (array), .bucket_count = AS_ARRAY_SIZE(array)

/* The configuration bounds the number of rules and targets, but reloads with new names could grow
 * it forever. */
#define RULE_SERIES_MAX     100000
#define RECEIVER_SERIES_MAX 101 /* including "other" */
#define NOTIFY_SERIES_MAX   1000
#define HTTP_SERIES_MAX     1000

const struct metric_family metric_families[METRIC_COUNT] = {
    [METRIC_NOTIFICATIONS] = {"alertscaler_notifications_total",
                              "Notifications received, by what they were answered.",
                              METRIC_COUNTER,
                              {"result"}},
    [METRIC_ALERTS] = {"alertscaler_alerts_total",
                       "Alerts in accepted notifications, by what became of them.",
                       METRIC_COUNTER,
                       {"status", "outcome"}},
    [METRIC_TRUNCATED_ALERTS] = {"alertscaler_truncated_alerts_total",
                                 "Alerts that Alertmanager left out of notifications (max_alerts).",
                                 METRIC_COUNTER,
                                 {"receiver"},
                                 .series_max = RECEIVER_SERIES_MAX},
    [METRIC_INCIDENTS_OPEN] = {"alertscaler_incidents_open",
                               "Incidents that are open: firing alerts that a rule matches.",
                               METRIC_GAUGE},
    [METRIC_EVALUATIONS_SKIPPED] = {"alertscaler_evaluations_skipped_total",
                                    "Evaluations of `always` rules that were skipped because the "
                                    "evaluation before had not ended.",
                                    METRIC_COUNTER},
    [METRIC_DECISIONS] = {"alertscaler_decisions_total",
                          "Decisions in the action log, by winning rule and reason.",
                          METRIC_COUNTER,
                          {"rule", "reason", OF_POLICY},
                          .series_max = RULE_SERIES_MAX},
    [METRIC_ACTIONS] = {"alertscaler_actions_total",
                        "Attempts to change a size, or to read one that failed, by outcome.",
                        METRIC_COUNTER,
                        {"target_kind", "direction", "outcome"}},
    [METRIC_ACTION_DURATION] = {"alertscaler_action_duration_seconds",
                                "Time from sending a new size to knowing what became of it.",
                                METRIC_HISTOGRAM,
                                {"target_kind"},
                                BUCKETS(call_buckets)},
    [METRIC_NOTIFICATION_TO_ACTION] =
        {"alertscaler_notification_to_action_seconds",
         "Time from the arrival of a notification to the size being set for it.", METRIC_HISTOGRAM,
         BUCKETS(reaction_buckets)},
    [METRIC_ALERT_TO_ACTION] = {"alertscaler_alert_to_action_seconds",
                                "Time from the start of an alert to the size being set for it.",
                                METRIC_HISTOGRAM, BUCKETS(alert_buckets)},
    [METRIC_EFFECTS] = {"alertscaler_effects_total",
                        "Actions of alerts whose effect is known, by whether the alert ended.",
                        METRIC_COUNTER,
                        {"rule", "ended", OF_POLICY},
                        .series_max = RULE_SERIES_MAX},
    [METRIC_TIME_TO_READY] = {"alertscaler_time_to_ready_seconds",
                              "Time from an increase to as many being ready as were asked for.",
                              METRIC_HISTOGRAM,
                              {"rule", OF_POLICY},
                              RULE_SERIES_MAX,
                              BUCKETS(alert_buckets)},
    [METRIC_TIME_TO_RESOLVE] = {"alertscaler_time_to_resolve_seconds",
                                "Time from an action to its alert being resolved.",
                                METRIC_HISTOGRAM,
                                {"rule", OF_POLICY},
                                RULE_SERIES_MAX,
                                BUCKETS(alert_buckets)},
    [METRIC_DID_NOT_COME] = {"alertscaler_target_did_not_come",
                             "1: an increase was not ready in time; no step up.",
                             METRIC_GAUGE,
                             {"target", OF_POLICY}},
    [METRIC_INEFFECTIVE] = {"alertscaler_rule_ineffective",
                            "1: the rule is held on the target, as its last actions did not help.",
                            METRIC_GAUGE,
                            {"rule", "target", OF_POLICY}},
    [METRIC_APPROVALS] = {"alertscaler_approvals_total",
                          "What has become of requests for approvals.",
                          METRIC_COUNTER,
                          {"event"}},
    [METRIC_APPROVAL_WAITS_UNTIL] = {"alertscaler_approval_waits_until_timestamp_seconds",
                                     "When a request that waits for an answer runs out.",
                                     METRIC_GAUGE,
                                     {"rule", "target", OF_POLICY}},
    [METRIC_TARGET_REPLICAS] = {"alertscaler_target_replicas",
                                "Size of the target when it was last seen.",
                                METRIC_GAUGE,
                                {"target", OF_POLICY}},
    [METRIC_TARGET_DESIRED] = {"alertscaler_target_desired_replicas",
                               "Size that was last decided for the target.",
                               METRIC_GAUGE,
                               {"target", OF_POLICY}},
    [METRIC_TARGET_MIN] = {"alertscaler_target_min_replicas",
                           "Lower bound of the target's size, as configured.",
                           METRIC_GAUGE,
                           {"target", OF_POLICY}},
    [METRIC_TARGET_MAX] = {"alertscaler_target_max_replicas",
                           "Upper bound of the target's size, as configured.",
                           METRIC_GAUGE,
                           {"target", OF_POLICY}},
    [METRIC_TARGET_LOCKED_UNTIL] = {"alertscaler_target_locked_until_timestamp_seconds",
                                    "End of the target's lock (cooldown); 0 where there is none.",
                                    METRIC_GAUGE,
                                    {"target", "direction", OF_POLICY}},
    [METRIC_TARGET_CONTENDED] = {"alertscaler_target_contended",
                                 "Whether the target is left alone, as others set its size back.",
                                 METRIC_GAUGE,
                                 {"target", OF_POLICY}},
    [METRIC_TARGET_OTHERS] = {"alertscaler_target_others",
                              "Always 1, for each HPA or ScaledObject that aims at the target too.",
                              METRIC_GAUGE,
                              {"target", "kind", "name", OF_POLICY}},
    [METRIC_RULE_VALUE] = {"alertscaler_rule_value",
                           "Value that the rule saw at the last decision, while its alert fires.",
                           METRIC_GAUGE,
                           {"rule", "target"}},
    [METRIC_RULE_GOAL] = {"alertscaler_rule_goal",
                          "Goal that a rule with track holds its value at, while its alert fires.",
                          METRIC_GAUGE,
                          {"rule", "target"}},
    [METRIC_RULE_QUERY_ERROR] = {"alertscaler_rule_query_error",
                                 "1: the server refuses a query of the rule.",
                                 METRIC_GAUGE,
                                 {"rule", OF_POLICY}},
    [METRIC_GROUP_NODES] = {"alertscaler_group_nodes",
                            "Nodes of a node group by the last look, by state.",
                            METRIC_GAUGE,
                            {"target", "state", OF_POLICY}},
    [METRIC_GROUP_REQUESTED] = {"alertscaler_group_requested_ratio",
                                "What pods request, over what the open nodes of a group have.",
                                METRIC_GAUGE,
                                {"target", "resource", OF_POLICY}},
    [METRIC_GROUP_CLOSED] = {"alertscaler_group_closed",
                             "1: the node group is closed for growth, for this reason.",
                             METRIC_GAUGE,
                             {"target", "reason", OF_POLICY}},
    [METRIC_POOL_PENDING] = {"alertscaler_pool_pending_pods",
                             "Pods that wait, by the last look for this target.",
                             METRIC_GAUGE,
                             {"target", OF_POLICY}},
    [METRIC_POOL_UNNEEDED] = {"alertscaler_pool_unneeded_nodes",
                              "Nodes of the target that are unneeded, by the last look.",
                              METRIC_GAUGE,
                              {"target", OF_POLICY}},
    [METRIC_CLUSTER_OBJECTS] = {"alertscaler_cluster_objects",
                                "Objects that are known of a cluster that is watched.",
                                METRIC_GAUGE,
                                {"cluster", "kind"}},
    [METRIC_CLUSTER_FACTS_AGE] = {"alertscaler_cluster_facts_age_seconds",
                                  "Time since the last sign of life of the watches of a cluster.",
                                  METRIC_GAUGE,
                                  {"cluster"}},
    [METRIC_CLUSTER_REACHABLE] = {"alertscaler_cluster_reachable",
                                  "0: the API server of the cluster does not answer.",
                                  METRIC_GAUGE,
                                  {"cluster"}},
    [METRIC_LISTED_OBJECTS] = {"alertscaler_listed_objects",
                               "Objects that `allow.list` makes targets of an entry.",
                               METRIC_GAUGE,
                               {"target"}},
    [METRIC_LIST_AGE] = {"alertscaler_list_age_seconds",
                         "Time since the last complete list of `allow.list`.",
                         METRIC_GAUGE,
                         {"target"}},
    [METRIC_SOURCE_REQUESTS] = {"alertscaler_source_requests_total",
                                "Requests sent to monitoring, by what came of them.",
                                METRIC_COUNTER,
                                {"source", "outcome"}},
    [METRIC_SOURCE_DURATION] = {"alertscaler_source_duration_seconds",
                                "Duration of requests sent to monitoring.",
                                METRIC_HISTOGRAM,
                                {"source"},
                                BUCKETS(call_buckets)},
    [METRIC_PROVIDER_REQUESTS] = {"alertscaler_provider_requests_total",
                                  "Requests sent to what is scaled, by HTTP status or failure.",
                                  METRIC_COUNTER,
                                  {"provider", "operation", "code"},
                                  .series_max = HTTP_SERIES_MAX},
    [METRIC_PROVIDER_DURATION] = {"alertscaler_provider_duration_seconds",
                                  "Duration of requests sent to what is scaled.",
                                  METRIC_HISTOGRAM,
                                  {"provider", "operation", "code"},
                                  HTTP_SERIES_MAX,
                                  BUCKETS(call_buckets)},
    [METRIC_NOTIFY_SENT] = {"alertscaler_notify_sent_total",
                            "Notices that a receiver has taken.",
                            METRIC_COUNTER,
                            {"receiver"},
                            .series_max = NOTIFY_SERIES_MAX},
    [METRIC_NOTIFY_FAILED] = {"alertscaler_notify_failed_total",
                              "Failed attempts to tell a receiver; notices are sent again.",
                              METRIC_COUNTER,
                              {"receiver"},
                              .series_max = NOTIFY_SERIES_MAX},
    [METRIC_NOTIFY_DROPPED] = {"alertscaler_notify_dropped_total",
                               "Notices that a receiver will never get.",
                               METRIC_COUNTER,
                               {"receiver"},
                               .series_max = NOTIFY_SERIES_MAX},
    [METRIC_NOTIFY_ENTRIES] = {"alertscaler_notify_entries",
                               "Notices that wait for a receiver.",
                               METRIC_GAUGE,
                               {"receiver"}},
    [METRIC_NOTIFY_OLDEST] = {"alertscaler_notify_oldest_age_seconds",
                              "Age of the oldest notice that waits for a receiver; 0: none waits.",
                              METRIC_GAUGE,
                              {"receiver"}},
    [METRIC_STORE_COMMITS] = {"alertscaler_store_commits_total", "Transactions of the state store.",
                              METRIC_COUNTER},
    [METRIC_STORE_COMMIT_DURATION] = {"alertscaler_store_commit_duration_seconds",
                                      "Duration of transactions of the state store.",
                                      METRIC_HISTOGRAM, BUCKETS(commit_buckets)},
    [METRIC_QUEUE_LENGTH] = {"alertscaler_queue_length",
                             "What waits: changes for the store, notifications for their answer, "
                             "targets for the other side, locks for being shown.",
                             METRIC_GAUGE,
                             {"queue"}},
    [METRIC_ACTION_LOG_RECORDS] = {"alertscaler_action_log_records_total",
                                   "Records appended to the action log.", METRIC_COUNTER},
    [METRIC_ACTION_LOG_BYTES] = {"alertscaler_action_log_bytes",
                                 "Size of the action log's present file.", METRIC_GAUGE},
    [METRIC_ACTION_LOG_LAST] = {"alertscaler_action_log_last_record_timestamp_seconds",
                                "When a record was last appended to the action log.", METRIC_GAUGE},
    [METRIC_HTTP_REQUESTS] = {"alertscaler_http_requests_total",
                              "HTTP requests answered.",
                              METRIC_COUNTER,
                              {"handler", "code"},
                              .series_max = HTTP_SERIES_MAX},
    [METRIC_HTTP_DURATION] = {"alertscaler_http_request_duration_seconds",
                              "Time from a request's first byte to its answer.",
                              METRIC_HISTOGRAM,
                              {"handler"},
                              HTTP_SERIES_MAX,
                              BUCKETS(http_buckets)},
    [METRIC_HTTP_CONNECTIONS] = {"alertscaler_http_connections", "Open HTTP connections.",
                                 METRIC_GAUGE},
    [METRIC_HTTP_DROPPED] = {"alertscaler_http_connections_dropped_total",
                             "HTTP connections closed without an answer.",
                             METRIC_COUNTER,
                             {"reason"}},
    [METRIC_PROXY_IGNORED] = {"alertscaler_proxy_headers_ignored_total",
                              "Requests with headers of receiver.proxy that are not of the proxy.",
                              METRIC_COUNTER},
    [METRIC_ADMISSION_REVIEWS] = {"alertscaler_admission_reviews_total",
                                  "Reviews of policies for the API server, by outcome.",
                                  METRIC_COUNTER,
                                  {"outcome"}},
    [METRIC_ADMISSION_CERTIFICATE] =
        {"alertscaler_admission_certificate_expiration_timestamp_seconds",
         "When the certificate of the admission webhook expires.", METRIC_GAUGE},
    [METRIC_POLICY_DEFINITION_OUTDATED] =
        {"alertscaler_policy_definition_outdated",
         "1: the CustomResourceDefinition of policies is older than this program.", METRIC_GAUGE},
    [METRIC_POLICY_PAUSED] = {"alertscaler_policy_paused",
                              "Always 1, for each policy with an annotation that pauses it.",
                              METRIC_GAUGE,
                              {"namespace", "policy"}},
    [METRIC_RELOAD_SUCCESSFUL] = {"alertscaler_config_last_reload_successful",
                                  "Whether the last attempt to load the configuration succeeded.",
                                  METRIC_GAUGE},
    [METRIC_RELOAD_TIMESTAMP] = {"alertscaler_config_last_reload_success_timestamp_seconds",
                                 "When the configuration was last loaded successfully.",
                                 METRIC_GAUGE},
    [METRIC_LEADER] = {"alertscaler_leader", "Whether this instance decides and acts.",
                       METRIC_GAUGE},
    [METRIC_PAUSED] = {"alertscaler_paused",
                       "Whether everything is paused, by an operator or the kill switch.",
                       METRIC_GAUGE},
    [METRIC_INCIDENT_MEMORY] = {"alertscaler_incident_memory_bytes",
                                "Memory that incidents and their targets take, as counted for "
                                "receiver.max_incident_memory.",
                                METRIC_GAUGE},
    [METRIC_INCIDENT_MEMORY_LIMIT] = {"alertscaler_incident_memory_limit_bytes",
                                      "Limit of alertscaler_incident_memory_bytes, as configured.",
                                      METRIC_GAUGE},
    [METRIC_REPEAT_CACHE_BYTES] = {"alertscaler_repeat_cache_bytes",
                                   "Memory that decoded notifications take, as counted for "
                                   "receiver.repeat_cache.",
                                   METRIC_GAUGE},
    [METRIC_REPEAT_CACHE_HITS] = {"alertscaler_repeat_cache_hits_total",
                                  "Notifications whose bytes were known, and not decoded again.",
                                  METRIC_COUNTER},
    [METRIC_REPEAT_CACHE_MISSES] = {"alertscaler_repeat_cache_misses_total",
                                    "Notifications that had to be decoded.", METRIC_COUNTER},
    [METRIC_TARGETS_PAUSED] = {"alertscaler_targets_paused",
                               "Targets that operators have paused one by one.", METRIC_GAUGE},
    [METRIC_REGEX_LIMIT_EXCEEDED] = {"alertscaler_regex_limit_exceeded_total",
                                     "Regular expression matches given up at a limit; they count "
                                     "as no match.",
                                     METRIC_COUNTER},
    [METRIC_BUILD_INFO] = {"alertscaler_build_info",
                           "Always 1; the labels are versions of the program and its libraries.",
                           METRIC_GAUGE},
    [METRIC_PROCESS_CPU] = {"process_cpu_seconds_total",
                            "Total user and system CPU time spent in seconds.", METRIC_COUNTER},
    [METRIC_PROCESS_RESIDENT] = {"process_resident_memory_bytes", "Resident memory size in bytes.",
                                 METRIC_GAUGE},
    [METRIC_PROCESS_VIRTUAL] = {"process_virtual_memory_bytes", "Virtual memory size in bytes.",
                                METRIC_GAUGE},
    [METRIC_PROCESS_OPEN_FDS] = {"process_open_fds", "Number of open file descriptors.",
                                 METRIC_GAUGE},
    [METRIC_PROCESS_MAX_FDS] = {"process_max_fds", "Maximum number of open file descriptors.",
                                METRIC_GAUGE},
    [METRIC_PROCESS_START] = {"process_start_time_seconds",
                              "Start time of the process since unix epoch in seconds.",
                              METRIC_GAUGE},
};

/*
 * Series by their label values. A series stays forever: a counter must not restart.
 */

static bool is_policy_label(const char *label)
{
    static const char *const labels[] = {OF_POLICY};
    return strcmp(label, labels[0]) == 0 || strcmp(label, labels[1]) == 0;
}

#define KEY_MAX (1 + METRIC_LABELS_MAX * (METRIC_VALUE_MAX + 1))

static size_t metrics_make_key(enum metric metric, const char *const *values, char key_out[KEY_MAX])
{
    const struct metric_family *family = &metric_families[metric];
    size_t size = 0;
    key_out[size++] = (char)metric;
    for (size_t i = 0; family->labels[i]; i++) {
        size_t value_size = strlen(values[i]);
        if (value_size > METRIC_VALUE_MAX)
            value_size = as_str_cut_utf8(values[i], value_size, METRIC_VALUE_MAX);
        memcpy(key_out + size, values[i], value_size);
        size += value_size;
        key_out[size++] = '\0';
    }
    return size;
}

static struct series *metrics_find(struct as_metrics *metrics, const char *key, size_t size)
{
    struct series *series;
    HASH_FIND(hh, metrics->by_key, key, size, series);
    return series;
}

static struct series *metrics_make(struct as_metrics *metrics, enum metric metric, const char *key,
                                   size_t key_size)
{
    const struct metric_family *family = &metric_families[metric];
    const size_t size = sizeof(struct series) + (family->bucket_count + 1) * sizeof(uint64_t);
    struct series *series = as_xcalloc(1, size + key_size);
    series->key = memcpy((char *)series + size, key, key_size);
    HASH_ADD_KEYPTR(hh, metrics->by_key, series->key, key_size, series);
    TAILQ_INSERT_TAIL(&metrics->families[metric].list, series, in_family);
    metrics->families[metric].count++;
    return series;
}

/* The series with these label values, created if new. */
static struct series *series_get(struct as_metrics *metrics, enum metric metric,
                                 const char *const *values)
{
    const struct metric_family *family = &metric_families[metric];
    struct series *series = TAILQ_FIRST(&metrics->families[metric].list);
    if (series && !family->labels[0])
        return series;
    char key[KEY_MAX];
    size_t size = metrics_make_key(metric, values, key);
    series = metrics_find(metrics, key, size);
    if (series)
        return series;
    /* The last free place is reserved for the series of "other". */
    if (family->series_max > 0 && metrics->families[metric].count + 1 >= family->series_max) {
        const char *others[METRIC_LABELS_MAX];
        for (size_t i = 0; family->labels[i]; i++)
            others[i] = is_policy_label(family->labels[i]) ? "" : METRIC_OTHER;
        size = metrics_make_key(metric, others, key);
        series = metrics_find(metrics, key, size);
    }
    return series ? series : metrics_make(metrics, metric, key, size);
}

static void series_add(struct series *series, double amount)
{
    series->value += amount;
}

static void series_observe(struct series *series, enum metric metric, int64_t us)
{
    const struct metric_family *family = &metric_families[metric];
    assert(family->type == METRIC_HISTOGRAM);
    const double duration_us = us > 0 ? (double)us : 0; /* sums of whole numbers are exact */
    size_t bucket = 0;
    while (bucket < family->bucket_count && duration_us > family->buckets[bucket] * 1e6)
        bucket++;
    series->buckets[bucket]++;
    series->count++;
    series->value += duration_us;
}

static void series_free_all(struct as_metrics *metrics)
{
    struct series *series, *next;
    HASH_ITER (hh, metrics->by_key, series, next) {
        HASH_DEL(metrics->by_key, series);
        free(series);
    }
}

/*
 * Chooses the format by the Accept header (RFC 9110, section 12.5.1): text, unless OpenMetrics is
 * named with at least the same weight.
 */

#define SPACES " \t"

static bool span_is(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && strncasecmp(text, word, size) == 0;
}

/* The next part of *text_io up to `separator`, without spaces around it. False: at the end. */
static bool metrics_take_part(const char **text_io, const char *end, char separator,
                              const char **part_out, size_t *size_out)
{
    const char *at = *text_io;
    if (at >= end)
        return false;
    const char *stop = memchr(at, separator, (size_t)(end - at));
    *text_io = stop ? stop + 1 : end;
    if (!stop)
        stop = end;
    while (at < stop && strchr(SPACES, *at))
        at++;
    while (stop > at && strchr(SPACES, stop[-1]))
        stop--;
    *part_out = at;
    *size_out = (size_t)(stop - at);
    return true;
}

struct range { /* "text/plain;version=0.0.4;q=0.5" */
    const char *type;
    size_t type_size;
    const char *version;
    size_t version_size; /* 0: any */
    double quality;
};

static struct range parse_range(const char *text, size_t size)
{
    struct range range = {.quality = 1};
    const char *end = text + size, *part;
    size_t part_size;
    if (!metrics_take_part(&text, end, ';', &range.type, &range.type_size))
        return range;
    while (metrics_take_part(&text, end, ';', &part, &part_size)) {
        if (part_size > 2 && strncasecmp(part, "q=", 2) == 0) {
            if (as_number_parse_double(part + 2, part_size - 2, &range.quality) != 0)
                range.quality = 0;
        } else if (part_size > 8 && strncasecmp(part, "version=", 8) == 0) {
            range.version = part + 8;
            range.version_size = part_size - 8;
        }
    }
    return range;
}

enum as_metrics_format as_metrics_choose_format(const char *accept)
{
    double text = 0, openmetrics = 0;
    const char *end = accept ? accept + strlen(accept) : NULL, *part;
    size_t size;
    while (accept && metrics_take_part(&accept, end, ',', &part, &size)) {
        const struct range range = parse_range(part, size);
        if (span_is(range.type, range.type_size, "application/openmetrics-text") &&
            (range.version_size == 0 || span_is(range.version, range.version_size, "1.0.0")))
            openmetrics = range.quality > openmetrics ? range.quality : openmetrics;
        else if (span_is(range.type, range.type_size, "text/plain") ||
                 span_is(range.type, range.type_size, "text/*") ||
                 span_is(range.type, range.type_size, "*/*"))
            text = range.quality > text ? range.quality : text;
    }
    return openmetrics > 0 && openmetrics >= text ? AS_METRICS_OPENMETRICS : AS_METRICS_TEXT;
}

/*
 * Counts events. Series that change thousands of times a second (alerts, notifications, HTTP
 * answers) are looked up once; others by their labels each time.
 */

#define VALUES(...)    ((const char *const[]){__VA_ARGS__})
#define QUEUED_INDEX   AS_REASON_COUNT
#define WATCHDOG_INDEX (AS_REASON_COUNT + 1)

static const char *const result_words[AS_NOTIFICATION_RESULT_COUNT] = {
    [AS_NOTIFICATION_OK] = "ok",
    [AS_NOTIFICATION_INVALID] = "invalid",
    [AS_NOTIFICATION_DENIED] = "denied",
    [AS_NOTIFICATION_UNAVAILABLE] = "unavailable",
};
static const char *const status_words[] = {
    [AS_ALERT_FIRING] = "firing",
    [AS_ALERT_RESOLVED] = "resolved",
};

struct as_metrics *as_metrics_new(void)
{
    struct as_metrics *metrics = as_xcalloc(1, sizeof(*metrics));
    for (size_t i = 0; i < METRIC_COUNT; i++)
        TAILQ_INIT(&metrics->families[i].list);
    /* Present from the start: else the first increase would not be visible as one. */
    for (size_t i = 0; i < AS_NOTIFICATION_RESULT_COUNT; i++)
        metrics->notifications[i] =
            series_get(metrics, METRIC_NOTIFICATIONS, VALUES(result_words[i]));
    static const enum metric unlabelled[] = {
        METRIC_NOTIFICATION_TO_ACTION, METRIC_ALERT_TO_ACTION,    METRIC_STORE_COMMITS,
        METRIC_STORE_COMMIT_DURATION,  METRIC_ACTION_LOG_RECORDS, METRIC_PROXY_IGNORED,
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(unlabelled); i++)
        (void)series_get(metrics, unlabelled[i], NULL);
    for (int i = 0; i < AS_APPROVAL_EVENT_COUNT; i++)
        (void)series_get(metrics, METRIC_APPROVALS,
                         VALUES(as_approval_event_get_word((enum as_approval_event)i)));
    return metrics;
}

struct as_metrics *as_metrics_free(struct as_metrics *metrics)
{
    if (!metrics)
        return NULL;
    series_free_all(metrics);
    free(metrics);
    return NULL;
}

static void metrics_add(struct as_metrics *metrics, enum metric metric, const char *const *values,
                        double amount)
{
    series_add(series_get(metrics, metric, values), amount);
}

static void metrics_observe(struct as_metrics *metrics, enum metric metric,
                            const char *const *values, int64_t us)
{
    series_observe(series_get(metrics, metric, values), metric, us);
}

static void count_alert(struct as_metrics *metrics, enum as_alert_status status,
                        const struct as_alert_outcome *outcome)
{
    const size_t index = outcome->is_queued     ? QUEUED_INDEX
                         : outcome->is_watchdog ? WATCHDOG_INDEX
                                                : (size_t)outcome->reason;
    struct series **series = &metrics->alerts[status][index];
    if (!*series) {
        const char *word = outcome->is_queued     ? "queued"
                           : outcome->is_watchdog ? "watchdog"
                                                  : as_reason_get_word(outcome->reason);
        *series = series_get(metrics, METRIC_ALERTS, VALUES(status_words[status], word));
    }
    series_add(*series, 1);
}

static void count_notification(struct as_metrics *metrics,
                               const struct as_notification_record *record)
{
    const struct as_notification *notification = record->notification;
    for (size_t i = 0; i < notification->alert_count; i++)
        count_alert(metrics, notification->alerts[i].status, &record->outcomes[i]);
    if (notification->truncated > 0)
        metrics_add(metrics, METRIC_TRUNCATED_ALERTS, VALUES(notification->receiver),
                    (double)notification->truncated);
}

/* The parts of "NAMESPACE/POLICY", and of "NAMESPACE/POLICY/RULE"; "": the name is one of a rule
 * file. */
struct policy_words {
    char id[2 * METRIC_VALUE_MAX + 2], namespace[METRIC_VALUE_MAX + 1];
    const char *policy;
};

static void policy_words_read(const char *name, struct policy_words *words_out)
{
    const char *slash = strchr(name, '/');
    *words_out = (struct policy_words){.policy = ""};
    if (!slash)
        return;
    const size_t size = (size_t)(slash - name) + 1 + strcspn(slash + 1, "/");
    (void)snprintf(words_out->id, sizeof(words_out->id), "%.*s", (int)size, name);
    (void)snprintf(words_out->namespace, sizeof(words_out->namespace), "%.*s", (int)(slash - name),
                   name);
    words_out->policy = words_out->id + (slash - name) + 1;
}

/* A single rule of a policy has no counts: its policy has. */
static void count_decision(struct as_metrics *metrics, const struct as_decision_record *record)
{
    const char *rule = record->output->rule ? record->output->rule : "";
    struct policy_words words;
    policy_words_read(record->target_name ? record->target_name : "", &words);
    metrics_add(metrics, METRIC_DECISIONS,
                VALUES(*words.policy && *rule ? words.id : rule,
                       as_reason_get_word(record->output->reason), words.namespace, words.policy),
                1);
}

static enum as_direction metrics_get_direction(const struct as_action_record *record)
{
    if (record->to == record->from || record->from < 0)
        return AS_DIRECTION_NONE;
    return record->to > record->from ? AS_DIRECTION_UP : AS_DIRECTION_DOWN;
}

static void count_action(struct as_metrics *metrics, const struct as_action_record *record)
{
    const char *kind = record->target_kind->word;
    const char *direction = as_direction_get_word(metrics_get_direction(record));
    metrics_add(metrics, METRIC_ACTIONS,
                VALUES(kind, direction, as_reason_get_word(record->outcome)), 1);
    if (record->to >= 0 && record->attempts > 0 && !record->is_late)
        metrics_observe(metrics, METRIC_ACTION_DURATION, VALUES(kind), record->duration_us);
    if (record->outcome != AS_REASON_APPLIED)
        return;
    if (record->since_notification_us >= 0)
        metrics_observe(metrics, METRIC_NOTIFICATION_TO_ACTION, NULL,
                        record->since_notification_us);
    if (record->since_alert_us >= 0)
        metrics_observe(metrics, METRIC_ALERT_TO_ACTION, NULL, record->since_alert_us);
}

static void count_effect_evaluation(struct as_metrics *metrics,
                                    const struct as_effect_record *record)
{
    struct policy_words words;
    policy_words_read(record->rule, &words);
    const char *rule = *words.policy ? words.id : record->rule;
    const char *const *values = VALUES(rule, words.namespace, words.policy);
    metrics_add(metrics, METRIC_EFFECTS,
                VALUES(rule, as_effect_end_get_word(record->end), words.namespace, words.policy),
                1);
    if (record->ready_us >= 0)
        metrics_observe(metrics, METRIC_TIME_TO_READY, values, record->ready_us);
    if (record->resolved_us >= 0)
        metrics_observe(metrics, METRIC_TIME_TO_RESOLVE, values, record->resolved_us);
}

static void count_approval(struct as_metrics *metrics, const struct as_approval_record *record)
{
    metrics_add(metrics, METRIC_APPROVALS, VALUES(as_approval_event_get_word(record->event)), 1);
}

void as_metrics_on_effect(struct as_metrics *metrics, const struct as_effect *effect)
{
    if (effect->kind == AS_EFFECT_RECORD_NOTIFICATION)
        count_notification(metrics, effect->notification);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION)
        count_decision(metrics, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION)
        count_action(metrics, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_EVALUATION)
        count_effect_evaluation(metrics, effect->evaluation);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        count_approval(metrics, effect->approval);
}

void as_metrics_on_notification(struct as_metrics *metrics, enum as_notification_result result)
{
    series_add(metrics->notifications[result], 1);
}

static void find_http(struct as_metrics *metrics, struct http_cache *entry, const char *handler,
                      int status)
{
    const char *name = as_str_is_empty(handler) ? METRIC_OTHER : handler;
    AS_CLEANUP(as_free_p) char *code = as_xasprintf("%d", status);
    *entry = (struct http_cache){
        .handler = handler,
        .status = status,
        .requests = series_get(metrics, METRIC_HTTP_REQUESTS, VALUES(name, code)),
        .duration = series_get(metrics, METRIC_HTTP_DURATION, VALUES(name)),
    };
}

void as_metrics_on_http(struct as_metrics *metrics, const char *handler, int status,
                        int64_t duration_us)
{
    const size_t slot = ((uintptr_t)handler / 8 + (unsigned)status) % HTTP_CACHE_SIZE;
    struct http_cache *entry = &metrics->http[slot];
    if (entry->handler != handler || entry->status != status)
        find_http(metrics, entry, handler, status);
    series_add(entry->requests, 1);
    series_observe(entry->duration, METRIC_HTTP_DURATION, duration_us);
}

void as_metrics_on_http_drop(struct as_metrics *metrics, const char *reason)
{
    metrics_add(metrics, METRIC_HTTP_DROPPED, VALUES(reason), 1);
}

void as_metrics_on_admission(struct as_metrics *metrics, const char *outcome, uint64_t count)
{
    metrics_add(metrics, METRIC_ADMISSION_REVIEWS, VALUES(outcome), (double)count);
}

void as_metrics_on_admission_certificate(struct as_metrics *metrics, int64_t expiry)
{
    series_get(metrics, METRIC_ADMISSION_CERTIFICATE, NULL)->value = (double)expiry;
}

void as_metrics_on_policy_definition(struct as_metrics *metrics, bool is_older)
{
    series_get(metrics, METRIC_POLICY_DEFINITION_OUTDATED, NULL)->value = is_older ? 1 : 0;
}

void as_metrics_on_client(struct as_metrics *metrics, const char *client_name,
                          const char *operation, const char *code, int64_t duration_us)
{
    const char *const *values = VALUES(client_name, operation, code);
    metrics_add(metrics, METRIC_PROVIDER_REQUESTS, values, 1);
    metrics_observe(metrics, METRIC_PROVIDER_DURATION, values, duration_us);
}

void as_metrics_on_source(struct as_metrics *metrics, const char *source, const char *outcome,
                          int64_t duration_us)
{
    metrics_add(metrics, METRIC_SOURCE_REQUESTS, VALUES(source, outcome), 1);
    metrics_observe(metrics, METRIC_SOURCE_DURATION, VALUES(source), duration_us);
}

void as_metrics_on_notice(struct as_metrics *metrics, const char *receiver,
                          enum as_notifier_count what, uint64_t count)
{
    static const enum metric families[AS_NOTIFIER_COUNT_COUNT] = {
        [AS_NOTIFIER_SENT] = METRIC_NOTIFY_SENT,
        [AS_NOTIFIER_FAILED] = METRIC_NOTIFY_FAILED,
        [AS_NOTIFIER_DROPPED] = METRIC_NOTIFY_DROPPED,
    };
    metrics_add(metrics, families[what], VALUES(receiver), (double)count);
}

void as_metrics_on_commit(struct as_metrics *metrics, int64_t duration_us, size_t batches,
                          size_t records, size_t log_bytes, as_wall_time now)
{
    metrics_add(metrics, METRIC_STORE_COMMITS, NULL, 1);
    metrics_observe(metrics, METRIC_STORE_COMMIT_DURATION, NULL, duration_us);
    metrics_add(metrics, METRIC_ACTION_LOG_RECORDS, NULL, (double)records);
    if (records > 0)
        series_get(metrics, METRIC_ACTION_LOG_LAST, NULL)->value =
            (double)now.us / (double)AS_US_PER_S;
}

void as_metrics_on_proxy_ignored(struct as_metrics *metrics)
{
    metrics_add(metrics, METRIC_PROXY_IGNORED, NULL, 1);
}

void as_metrics_on_reload(struct as_metrics *metrics, bool ok, as_wall_time now)
{
    series_get(metrics, METRIC_RELOAD_SUCCESSFUL, NULL)->value = ok ? 1 : 0;
    if (ok)
        series_get(metrics, METRIC_RELOAD_TIMESTAMP, NULL)->value =
            (double)now.us / (double)AS_US_PER_S;
}

/*
 * The exposition: counts come from their series, present values are read now.
 *
 * The formats differ only in a counter's name in HELP and TYPE (OpenMetrics omits _total) and in
 * the end. Both write `le` as OpenMetrics requires ("1.0"), so that a histogram has the same series
 * in either format.
 */

#define TEMPLATED_TARGETS_MAX 100

struct printing {
    const struct as_metrics *metrics;
    const struct as_view *view;
    struct as_buf *out;
    enum as_metrics_format format;
    enum metric metric;     /* being printed */
    struct policy_words of; /* of the target whose samples are printed */
    bool has_head;
    bool has_process;
    struct process_stats process;
};

struct label {
    const char *name, *value;
};

static void print_double(struct as_buf *out, double value)
{
    char text[AS_NUMBER_SIZE];
    as_number_print_double(value, text);
    as_buf_append_str(out, text);
}

static void metrics_print_name(struct printing *p)
{
    static const char total[] = "_total";
    const struct metric_family *family = &metric_families[p->metric];
    size_t size = strlen(family->name);
    if (p->format == AS_METRICS_OPENMETRICS && family->type == METRIC_COUNTER)
        size -= sizeof(total) - 1;
    as_buf_append(p->out, family->name, size);
}

/* With the first sample: a family without samples is omitted. */
static void print_head(struct printing *p)
{
    static const char *const type_words[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
    const struct metric_family *family = &metric_families[p->metric];
    if (p->has_head)
        return;
    p->has_head = true;
    as_buf_append_str(p->out, "# HELP ");
    metrics_print_name(p);
    as_buf_printf(p->out, " %s\n# TYPE ", family->help);
    metrics_print_name(p);
    as_buf_printf(p->out, " %s\n", type_words[family->type]);
}

/* Whether a backslash of the value begins what print_label writes for unsafe characters. */
static bool is_like_escape(const char *at)
{
    static const char digits[] = "0123456789abcdef";
    return at[0] == '\\' && ((at[1] == 'u' && strspn(at + 2, digits) >= 4) ||
                             (at[1] == 'x' && strspn(at + 2, digits) >= 2));
}

/* Two values never have the same text: Prometheus refuses a page with a series twice. */
static void print_label(struct as_buf *out, const struct label *label, bool is_first)
{
    as_buf_append_char(out, is_first ? '{' : ',');
    as_buf_append_str(out, label->name);
    as_buf_append_str(out, "=\"");
    const size_t size = strlen(label->value);
    struct as_safe_char read;
    for (size_t i = 0; i < size; i += read.size) {
        const char *at = label->value + i;
        read = as_safe_char_read(at, size - i);
        if (*at == '\n')
            as_buf_append_str(out, "\\n");
        else if (!read.is_valid) /* the value has one backslash, as in JSON */
            as_buf_printf(out, "\\\\x%02x", (unsigned)read.code);
        else if (read.is_unsafe || is_like_escape(at))
            as_buf_printf(out, "\\\\u%04x", (unsigned)read.code);
        else if (*at == '"' || *at == '\\')
            as_buf_printf(out, "\\%c", *at);
        else
            as_buf_append(out, at, read.size);
    }
    as_buf_append_char(out, '"');
}

static void print_sample(struct printing *p, const char *suffix, const struct label *labels,
                         size_t label_count, double value)
{
    print_head(p);
    as_buf_append_str(p->out, metric_families[p->metric].name);
    as_buf_append_str(p->out, suffix);
    for (size_t i = 0; i < label_count; i++)
        print_label(p->out, &labels[i], i == 0);
    if (*p->of.policy) {
        print_label(p->out, &(struct label){"namespace", p->of.namespace}, label_count == 0);
        print_label(p->out, &(struct label){"policy", p->of.policy}, false);
    }
    as_buf_append_str(p->out, label_count > 0 ? "} " : " ");
    print_double(p->out, value);
    as_buf_append_char(p->out, '\n');
}

/* A sample without labels. */
static void print_value(struct printing *p, double value)
{
    print_sample(p, "", NULL, 0, value);
}

static void print_bound(double bound, char text_out[AS_NUMBER_SIZE + sizeof(".0")])
{
    as_number_print_double(bound, text_out);
    if (!strpbrk(text_out, ".e"))
        memcpy(text_out + strlen(text_out), ".0", sizeof(".0"));
}

static void print_histogram(struct printing *p, const struct series *series, struct label *labels,
                            size_t label_count)
{
    const struct metric_family *family = &metric_families[p->metric];
    uint64_t cumulated = 0;
    for (size_t i = 0; i <= family->bucket_count; i++) {
        char bound[AS_NUMBER_SIZE + sizeof(".0")] = "+Inf";
        if (i < family->bucket_count)
            print_bound(family->buckets[i], bound);
        labels[label_count] = (struct label){"le", bound};
        cumulated += series->buckets[i];
        print_sample(p, "_bucket", labels, label_count + 1, (double)cumulated);
    }
    print_sample(p, "_sum", labels, label_count, series->value / 1e6);
    print_sample(p, "_count", labels, label_count, (double)series->count);
}

static void print_series(struct printing *p)
{
    const struct metric_family *family = &metric_families[p->metric];
    const struct series *series;
    TAILQ_FOREACH (series, &p->metrics->families[p->metric].list, in_family) {
        struct label labels[METRIC_LABELS_MAX + 1]; /* including `le` */
        size_t count = 0;
        const char *value = series->key + 1;
        for (size_t i = 0; family->labels[i]; i++) {
            if (*value || !is_policy_label(family->labels[i]))
                labels[count++] = (struct label){family->labels[i], value};
            value += strlen(value) + 1;
        }
        if (family->type == METRIC_HISTOGRAM)
            print_histogram(p, series, labels, count);
        else
            print_sample(p, "", labels, count, series->value);
    }
}

struct target_printing {
    struct printing *p;
    size_t templated;
};

static double get_seconds(struct as_moment moment)
{
    return as_moment_is_set(moment) ? (double)moment.wall.us / (double)AS_US_PER_S : 0;
}

static void print_locks(struct printing *p, const char *name, const struct as_target_view *target)
{
    struct label labels[] = {{"target", name}, {"direction", "up"}};
    print_sample(p, "", labels, AS_ARRAY_SIZE(labels), get_seconds(target->up_locked_until));
    labels[1].value = "down";
    print_sample(p, "", labels, AS_ARRAY_SIZE(labels), get_seconds(target->down_locked_until));
}

static void metrics_print_others(struct printing *p, const char *name,
                                 const struct as_target_view *target)
{
    size_t count;
    const struct as_other *others = as_others_find(p->view->others, target->id, &count);
    for (size_t i = 0; i < count; i++)
        print_sample(
            p, "",
            (struct label[]){{"target", name}, {"kind", others[i].kind}, {"name", others[i].name}},
            3, 1);
}

/* A workload whose pods are waited for, or a container's resource. */
static bool may_not_come(const struct as_target_view *target)
{
    struct as_sized sized;
    as_sized_read(target->ref, &sized);
    return sized.what == AS_SIZED_RESOURCE ||
           (target->config->kind->has_pods && target->config->ready_timeout_us > 0);
}

/* A target's value in the present family. False: it has none. */
static bool find_target_value(enum metric metric, const struct as_target_view *target,
                              double *value_out)
{
    if (metric == METRIC_TARGET_MIN || metric == METRIC_TARGET_MAX) {
        *value_out = metric == METRIC_TARGET_MIN ? target->bounds.min : target->bounds.max;
        return true;
    }
    if (metric == METRIC_DID_NOT_COME) {
        *value_out = target->did_not_come;
        return may_not_come(target);
    }
    if (metric == METRIC_TARGET_CONTENDED) {
        *value_out = as_moment_is_set(target->contended_until);
        return true;
    }
    if (target->has_size)
        *value_out = metric == METRIC_TARGET_REPLICAS ? target->replicas : target->desired;
    return target->has_size;
}

static void print_state(struct printing *p, const char *name, const char *state, int64_t nodes)
{
    if (nodes >= 0)
        print_sample(p, "", (struct label[]){{"target", name}, {"state", state}}, 2, (double)nodes);
}

static void print_ratio(struct printing *p, const char *name, const struct as_group_sums *sums,
                        enum as_resource resource)
{
    static const char *const words[] = {[AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory"};
    const struct label labels[] = {{"target", name}, {"resource", words[resource]}};
    if (sums->allocatable[resource] > 0)
        print_sample(p, "", labels, AS_ARRAY_SIZE(labels),
                     (double)sums->requests[resource] / (double)sums->allocatable[resource]);
}

static void print_group(struct printing *p, const char *name, const struct as_group_seen *group)
{
    if (p->metric == METRIC_GROUP_NODES) {
        print_state(p, name, "open", group->sums.open);
        print_state(p, name, "ready", group->sums.ready);
        print_state(p, name, "leaving", group->sums.leaving);
        print_state(p, name, "coming", group->coming);
        print_state(p, name, "overdue", group->overdue);
    } else if (p->metric == METRIC_GROUP_REQUESTED) {
        print_ratio(p, name, &group->sums, AS_RESOURCE_CPU);
        print_ratio(p, name, &group->sums, AS_RESOURCE_MEMORY);
    } else if (group->closed != AS_REASON_SCALED) {
        const struct label labels[] = {{"target", name},
                                       {"reason", as_reason_get_word(group->closed)}};
        print_sample(p, "", labels, AS_ARRAY_SIZE(labels), 1);
    }
}

/* What the last look at a pool, or at a node group without one, has seen. */
static void metrics_print_nodes(struct printing *p, const char *name,
                                const struct as_target_view *target)
{
    const struct as_pool_seen *seen = target->nodes;
    const bool is_of_pods = p->metric == METRIC_POOL_PENDING || p->metric == METRIC_POOL_UNNEEDED;
    if (seen && is_of_pods && seen->has_pods)
        print_sample(
            p, "", &(struct label){"target", name}, 1,
            (double)(p->metric == METRIC_POOL_PENDING ? seen->pending_pods : seen->unneeded_nodes));
    for (size_t i = 0; seen && !is_of_pods && i < seen->group_count; i++)
        print_group(p, target->config->pool ? seen->groups[i].name : name, &seen->groups[i]);
}

static void metrics_print_target(void *context, const struct as_target_view *target)
{
    struct target_printing *targets = context;
    struct printing *p = targets->p;
    double value;
    if (!target->config) /* no rule uses it any more */
        return;
    if (target->config->is_templated && targets->templated++ >= TEMPLATED_TARGETS_MAX)
        return;
    const char *name = target->config->is_templated ? target->id : target->name;
    policy_words_read(target->config->name, &p->of);
    if (p->metric == METRIC_TARGET_LOCKED_UNTIL)
        print_locks(p, name, target);
    else if (p->metric == METRIC_TARGET_OTHERS)
        metrics_print_others(p, name, target);
    else if (p->metric >= METRIC_GROUP_NODES && p->metric <= METRIC_POOL_UNNEEDED)
        metrics_print_nodes(p, name, target);
    else if (find_target_value(p->metric, target, &value))
        print_sample(p, "", &(struct label){"target", name}, 1, value);
    policy_words_read("", &p->of);
}

static void print_targets(struct printing *p)
{
    struct target_printing targets = {.p = p};
    if (p->view->engine)
        as_engine_visit_targets(p->view->engine, p->view->mono, p->view->wall, metrics_print_target,
                                &targets);
}

static void print_rule(void *context, const struct as_rule_view *view)
{
    struct target_printing *rules = context;
    const bool is_templated = view->target->is_templated;
    const struct as_action *action = &view->rule->action;
    const struct label labels[] = {{"rule", view->rule->name},
                                   {"target", is_templated ? view->ref->id : view->target->name}};
    if (strchr(view->rule->name,
               '/')) /* its status has them: a series is of a rule in error only */
        return;
    if (is_templated && rules->templated++ >= TEMPLATED_TARGETS_MAX)
        return;
    if (rules->p->metric == METRIC_RULE_VALUE && view->has_value)
        print_sample(rules->p, "", labels, AS_ARRAY_SIZE(labels), view->value);
    else if (rules->p->metric == METRIC_RULE_GOAL && action->kind == AS_ACTION_TRACK)
        print_sample(rules->p, "", labels, AS_ARRAY_SIZE(labels), action->track.value);
}

static void print_rules(struct printing *p)
{
    struct target_printing rules = {.p = p};
    if (p->view->engine)
        as_engine_visit_rules(p->view->engine, print_rule, &rules);
}

/* Rules without a query have no series; rules of policies only if the server refuses the query. */
static void print_query_errors(struct printing *p)
{
    const struct as_ruleset *ruleset = p->view->ruleset;
    for (size_t i = 0; p->view->engine && ruleset && i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        const bool is_failing = as_query_checks_find_error(p->view->query_checks, rule) != NULL;
        policy_words_read(rule->name, &p->of);
        if ((rule->source.query || rule->guard) && (is_failing || !*p->of.policy))
            print_sample(p, "", &(struct label){"rule", rule->name}, 1, is_failing);
    }
    policy_words_read("", &p->of);
}

static void print_ineffective_rule(void *context, const struct as_ineffective_view *view)
{
    struct target_printing *rules = context;
    const bool is_named = *view->target_name && !view->is_templated;
    const struct label labels[] = {{"rule", view->rule},
                                   {"target", is_named ? view->target_name : view->ref->id}};
    policy_words_read(view->rule, &rules->p->of);
    if (is_named || rules->templated++ < TEMPLATED_TARGETS_MAX)
        print_sample(rules->p, "", labels, AS_ARRAY_SIZE(labels), 1);
    policy_words_read("", &rules->p->of);
}

static void print_ineffective(struct printing *p)
{
    struct target_printing rules = {.p = p};
    if (p->view->engine)
        as_engine_visit_ineffective(p->view->engine, NULL, p->view->mono, p->view->wall,
                                    print_ineffective_rule, &rules);
}

static void metrics_print_approval(void *context, const struct as_approval_view *view)
{
    struct target_printing *rules = context;
    const bool is_named = *view->name && !view->is_templated;
    const struct label labels[] = {{"rule", view->state.rule},
                                   {"target", is_named ? view->name : view->target}};
    policy_words_read(view->state.rule, &rules->p->of);
    if (view->state.answer == AS_APPROVAL_WAITING &&
        (is_named || rules->templated++ < TEMPLATED_TARGETS_MAX))
        print_sample(rules->p, "", labels, AS_ARRAY_SIZE(labels),
                     (double)view->until.us / (double)AS_US_PER_S);
    policy_words_read("", &rules->p->of);
}

static void print_approvals(struct printing *p)
{
    struct target_printing rules = {.p = p};
    if (p->view->engine)
        as_engine_visit_approvals(p->view->engine, p->view->mono, p->view->wall,
                                  metrics_print_approval, &rules);
}

static void print_evaluations_skipped(struct printing *p)
{
    if (p->view->engine)
        print_value(p, (double)as_engine_get_counts(p->view->engine).evaluations_skipped);
}

static void print_incidents_open(struct printing *p)
{
    if (p->view->engine)
        print_value(p, (double)as_engine_get_counts(p->view->engine).incidents_open);
}

static void print_queue(struct printing *p, const char *queue, size_t length)
{
    print_sample(p, "", &(struct label){"queue", queue}, 1, (double)length);
}

static void print_queues(struct printing *p)
{
    print_queue(p, "notifications", p->view->unanswered);
    if (p->view->storage)
        print_queue(p, "storage", as_storage_get_counts(p->view->storage).waiting_batches);
    if (p->view->engine)
        print_queue(p, "targets", as_engine_get_counts(p->view->engine).targets_busy);
}

static void print_facts_of(void *context, const struct as_facts_view *facts)
{
    static const char *const kinds[] = {
        [AS_CLUSTER_NODES] = "node", [AS_CLUSTER_PODS] = "pod", [AS_CLUSTER_BUDGETS] = "budget"};
    struct printing *p = context;
    const struct label cluster = {"cluster", facts->cluster};
    if (p->metric == METRIC_CLUSTER_FACTS_AGE) {
        print_sample(p, "", &cluster, 1,
                     (double)(p->view->mono.us - facts->fresh_at.us) / AS_US_PER_S);
        return;
    }
    for (size_t i = 0; i < AS_CLUSTER_KIND_COUNT; i++)
        print_sample(p, "", (struct label[]){cluster, {"kind", kinds[i]}}, 2,
                     (double)facts->objects[i]);
}

static void metrics_print_facts(struct printing *p)
{
    if (p->view->targets)
        p->view->visit_facts(p->view->targets, print_facts_of, p);
}

static void print_cluster(void *context, const struct as_cluster_view *cluster)
{
    struct target_printing *clusters = context;
    if (clusters->templated++ < TEMPLATED_TARGETS_MAX) /* alerts may name the clusters */
        print_sample(clusters->p, "", &(struct label){"cluster", cluster->cluster}, 1,
                     !as_moment_is_set(cluster->unreachable_since));
}

static void print_clusters(struct printing *p)
{
    struct target_printing clusters = {.p = p};
    if (p->view->engine)
        as_engine_visit_clusters(p->view->engine, print_cluster, &clusters);
}

static void print_list(void *context, const struct as_list_view *list)
{
    struct printing *p = context;
    const double value = p->metric == METRIC_LISTED_OBJECTS
                             ? (double)list->objects
                             : (double)(p->view->mono.us - list->complete.us) / AS_US_PER_S;
    print_sample(p, "", &(struct label){"target", list->entry}, 1, value);
}

static void print_lists(struct printing *p)
{
    if (p->view->engine)
        as_engine_visit_lists(p->view->engine, print_list, p);
}

static void print_receiver(void *context, const struct as_notifier_view *receiver)
{
    struct printing *p = context;
    const double value = p->metric == METRIC_NOTIFY_ENTRIES
                             ? (double)receiver->entries
                             : (double)receiver->oldest_us / AS_US_PER_S;
    print_sample(p, "", &(struct label){"receiver", receiver->receiver}, 1, value);
}

static void print_receivers(struct printing *p)
{
    if (p->view->shell)
        as_shell_visit_receivers(p->view->shell, print_receiver, p);
}

static void print_action_log_bytes(struct printing *p)
{
    struct stat status;
    if (p->view->action_log_path && stat(p->view->action_log_path, &status) == 0)
        print_value(p, (double)status.st_size);
}

static void print_connections(struct printing *p)
{
    print_value(p, p->view->connections);
}

static void print_leader(struct printing *p)
{
    print_value(p, p->view->leader.is_leader ? 1 : 0);
}

static void print_paused(struct printing *p)
{
    const struct as_view *view = p->view;
    print_value(p,
                view->engine && as_engine_get_pause(view->engine, view->mono, view->wall).is_set);
}

static void print_incident_memory(struct printing *p)
{
    if (p->view->engine)
        print_value(p, (double)as_engine_get_counts(p->view->engine).incident_bytes);
}

static void print_incident_memory_limit(struct printing *p)
{
    const uint64_t limit =
        p->view->engine ? as_engine_get_counts(p->view->engine).incident_bytes_max : 0;
    if (limit > 0)
        print_value(p, (double)limit);
}

static void print_repeat_cache_bytes(struct printing *p)
{
    print_value(p, (double)p->view->cache_bytes);
}

static void print_repeat_cache_hits(struct printing *p)
{
    print_value(p, (double)p->view->cache_hits);
}

static void print_repeat_cache_misses(struct printing *p)
{
    print_value(p, (double)p->view->cache_misses);
}

static void print_targets_paused(struct printing *p)
{
    if (p->view->engine)
        print_value(p, (double)as_engine_get_counts(p->view->engine).targets_paused);
}

static bool print_paused_policy(void *context, const struct as_scaling_policy *policy)
{
    const struct label labels[] = {{"namespace", policy->namespace}, {"policy", policy->name}};
    if (policy->paused || policy->paused_up || policy->paused_down)
        print_sample(context, "", labels, AS_ARRAY_SIZE(labels), 1);
    return false;
}

static void print_paused_policies(struct printing *p)
{
    if (p->view->policies)
        as_policy_set_visit(p->view->policies, print_paused_policy, p);
}

static void print_regex_exceeded(struct printing *p)
{
    print_value(p, (double)as_regex_get_exceeded());
}

static void print_build_info(struct printing *p)
{
    struct label labels[16] = {{"version", as_version_get()},
                               {"revision", as_version_get_revision()}};
    size_t count = 2;
    const struct as_library *libraries;
    const size_t library_count = as_version_get_libraries(&libraries);
    for (size_t i = 0; i < library_count && count < AS_ARRAY_SIZE(labels); i++)
        labels[count++] = (struct label){libraries[i].name, libraries[i].version};
    print_sample(p, "", labels, count, 1);
}

static void print_process(struct printing *p)
{
    const double values[] = {
        [METRIC_PROCESS_CPU - METRIC_PROCESS_CPU] = p->process.cpu_seconds,
        [METRIC_PROCESS_RESIDENT - METRIC_PROCESS_CPU] = p->process.resident_bytes,
        [METRIC_PROCESS_VIRTUAL - METRIC_PROCESS_CPU] = p->process.virtual_bytes,
        [METRIC_PROCESS_OPEN_FDS - METRIC_PROCESS_CPU] = p->process.open_fds,
        [METRIC_PROCESS_MAX_FDS - METRIC_PROCESS_CPU] = p->process.max_fds,
        [METRIC_PROCESS_START - METRIC_PROCESS_CPU] = p->process.start_time_seconds,
    };
    if (p->has_process)
        print_value(p, values[p->metric - METRIC_PROCESS_CPU]);
}

typedef void print_fn(struct printing *p);

/* Families that are read, not counted. */
static print_fn *const readers[METRIC_COUNT] = {
    [METRIC_INCIDENTS_OPEN] = print_incidents_open,
    [METRIC_EVALUATIONS_SKIPPED] = print_evaluations_skipped,
    [METRIC_TARGET_REPLICAS] = print_targets,
    [METRIC_TARGET_DESIRED] = print_targets,
    [METRIC_TARGET_MIN] = print_targets,
    [METRIC_TARGET_MAX] = print_targets,
    [METRIC_TARGET_LOCKED_UNTIL] = print_targets,
    [METRIC_DID_NOT_COME] = print_targets,
    [METRIC_INEFFECTIVE] = print_ineffective,
    [METRIC_APPROVAL_WAITS_UNTIL] = print_approvals,
    [METRIC_TARGET_CONTENDED] = print_targets,
    [METRIC_TARGET_OTHERS] = print_targets,
    [METRIC_RULE_VALUE] = print_rules,
    [METRIC_RULE_GOAL] = print_rules,
    [METRIC_RULE_QUERY_ERROR] = print_query_errors,
    [METRIC_GROUP_NODES] = print_targets,
    [METRIC_GROUP_REQUESTED] = print_targets,
    [METRIC_GROUP_CLOSED] = print_targets,
    [METRIC_POOL_PENDING] = print_targets,
    [METRIC_POOL_UNNEEDED] = print_targets,
    [METRIC_CLUSTER_OBJECTS] = metrics_print_facts,
    [METRIC_CLUSTER_FACTS_AGE] = metrics_print_facts,
    [METRIC_CLUSTER_REACHABLE] = print_clusters,
    [METRIC_LISTED_OBJECTS] = print_lists,
    [METRIC_LIST_AGE] = print_lists,
    [METRIC_QUEUE_LENGTH] = print_queues,
    [METRIC_ACTION_LOG_BYTES] = print_action_log_bytes,
    [METRIC_HTTP_CONNECTIONS] = print_connections,
    [METRIC_LEADER] = print_leader,
    [METRIC_PAUSED] = print_paused,
    [METRIC_INCIDENT_MEMORY] = print_incident_memory,
    [METRIC_INCIDENT_MEMORY_LIMIT] = print_incident_memory_limit,
    [METRIC_REPEAT_CACHE_BYTES] = print_repeat_cache_bytes,
    [METRIC_NOTIFY_ENTRIES] = print_receivers,
    [METRIC_NOTIFY_OLDEST] = print_receivers,
    [METRIC_REPEAT_CACHE_HITS] = print_repeat_cache_hits,
    [METRIC_REPEAT_CACHE_MISSES] = print_repeat_cache_misses,
    [METRIC_POLICY_PAUSED] = print_paused_policies,
    [METRIC_TARGETS_PAUSED] = print_targets_paused,
    [METRIC_REGEX_LIMIT_EXCEEDED] = print_regex_exceeded,
    [METRIC_BUILD_INFO] = print_build_info,
    [METRIC_PROCESS_CPU] = print_process,
    [METRIC_PROCESS_RESIDENT] = print_process,
    [METRIC_PROCESS_VIRTUAL] = print_process,
    [METRIC_PROCESS_OPEN_FDS] = print_process,
    [METRIC_PROCESS_MAX_FDS] = print_process,
    [METRIC_PROCESS_START] = print_process,
};

void as_metrics_print(struct as_metrics *metrics, const struct as_view *view,
                      enum as_metrics_format format, struct as_buf *out)
{
    struct printing p = {
        .metrics = metrics, .view = view, .out = out, .format = format, .of = {.policy = ""}};
    p.has_process = process_stats_read(&p.process) == 0;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        p.metric = (enum metric)i;
        p.has_head = false;
        if (readers[i])
            readers[i](&p);
        else
            print_series(&p);
    }
    if (format == AS_METRICS_OPENMETRICS)
        as_buf_append_str(out, "# EOF\n");
}

const char *as_metrics_get_content_type(enum as_metrics_format format)
{
    static const char *const types[] = {
        [AS_METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
        [AS_METRICS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
    };
    return types[format];
}
