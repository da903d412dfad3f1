/*
 * The exposition: counts come from their series, present values are read now.
 *
 * The formats differ only in a counter's name in HELP and TYPE (OpenMetrics omits _total) and in
 * the end. Both write `le` as OpenMetrics requires ("1.0"), so that a histogram has the same series
 * in either format.
 */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/regex.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/runtime/shell.h>
#include <alertscaler/runtime/version.h>

#include <alertscaler/kube/kube_rivals.h>

#include "metrics_private.h"
#include "process_stats.h"

#define TEMPLATED_TARGETS_MAX 100

struct printing {
    const struct as_metrics *metrics;
    const struct as_view *view;
    struct as_buf *out;
    enum as_metrics_format format;
    enum metric metric; /* being printed */
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

static void print_name(struct printing *p)
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
    print_name(p);
    as_buf_printf(p->out, " %s\n# TYPE ", family->help);
    print_name(p);
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
        for (; family->labels[count]; count++) {
            labels[count] = (struct label){family->labels[count], value};
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

static void print_others(struct printing *p, const char *name, const struct as_target_view *target)
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
static void print_nodes(struct printing *p, const char *name, const struct as_target_view *target)
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

static void print_target(void *context, const struct as_target_view *target)
{
    struct target_printing *targets = context;
    struct printing *p = targets->p;
    double value;
    if (!target->config) /* no rule uses it any more */
        return;
    if (target->config->is_templated && targets->templated++ >= TEMPLATED_TARGETS_MAX)
        return;
    const char *name = target->config->is_templated ? target->id : target->name;
    if (p->metric == METRIC_TARGET_LOCKED_UNTIL)
        print_locks(p, name, target);
    else if (p->metric == METRIC_TARGET_OTHERS)
        print_others(p, name, target);
    else if (p->metric >= METRIC_GROUP_NODES && p->metric <= METRIC_POOL_UNNEEDED)
        print_nodes(p, name, target);
    else if (find_target_value(p->metric, target, &value))
        print_sample(p, "", &(struct label){"target", name}, 1, value);
}

static void print_targets(struct printing *p)
{
    struct target_printing targets = {.p = p};
    if (p->view->engine)
        as_engine_visit_targets(p->view->engine, p->view->mono, p->view->wall, print_target,
                                &targets);
}

static void print_rule(void *context, const struct as_rule_view *view)
{
    struct target_printing *rules = context;
    const bool is_templated = view->target->is_templated;
    const struct as_action *action = &view->rule->action;
    const struct label labels[] = {{"rule", view->rule->name},
                                   {"target", is_templated ? view->ref->id : view->target->name}};
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

static void print_ineffective_rule(void *context, const struct as_ineffective_view *view)
{
    struct target_printing *rules = context;
    const bool is_named = *view->target_name && !view->is_templated;
    const struct label labels[] = {{"rule", view->rule},
                                   {"target", is_named ? view->target_name : view->ref->id}};
    if (is_named || rules->templated++ < TEMPLATED_TARGETS_MAX)
        print_sample(rules->p, "", labels, AS_ARRAY_SIZE(labels), 1);
}

static void print_ineffective(struct printing *p)
{
    struct target_printing rules = {.p = p};
    if (p->view->engine)
        as_engine_visit_ineffective(p->view->engine, p->view->mono, p->view->wall,
                                    print_ineffective_rule, &rules);
}

static void print_approval(void *context, const struct as_approval_view *view)
{
    struct target_printing *rules = context;
    const bool is_named = *view->name && !view->is_templated;
    const struct label labels[] = {{"rule", view->state.rule},
                                   {"target", is_named ? view->name : view->target}};
    if (view->state.answer == AS_APPROVAL_WAITING &&
        (is_named || rules->templated++ < TEMPLATED_TARGETS_MAX))
        print_sample(rules->p, "", labels, AS_ARRAY_SIZE(labels),
                     (double)view->until.us / (double)AS_US_PER_S);
}

static void print_approvals(struct printing *p)
{
    struct target_printing rules = {.p = p};
    if (p->view->engine)
        as_engine_visit_approvals(p->view->engine, p->view->mono, p->view->wall, print_approval,
                                  &rules);
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

static void print_facts(struct printing *p)
{
    if (p->view->targets)
        p->view->visit_facts(p->view->targets, print_facts_of, p);
}

static void print_receiver(void *context, const struct as_tell_view *receiver)
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
    [METRIC_GROUP_NODES] = print_targets,
    [METRIC_GROUP_REQUESTED] = print_targets,
    [METRIC_GROUP_CLOSED] = print_targets,
    [METRIC_POOL_PENDING] = print_targets,
    [METRIC_POOL_UNNEEDED] = print_targets,
    [METRIC_CLUSTER_OBJECTS] = print_facts,
    [METRIC_CLUSTER_FACTS_AGE] = print_facts,
    [METRIC_QUEUE_LENGTH] = print_queues,
    [METRIC_ACTION_LOG_BYTES] = print_action_log_bytes,
    [METRIC_HTTP_CONNECTIONS] = print_connections,
    [METRIC_LEADER] = print_leader,
    [METRIC_PAUSED] = print_paused,
    [METRIC_INCIDENT_MEMORY] = print_incident_memory,
    [METRIC_REPEAT_CACHE_BYTES] = print_repeat_cache_bytes,
    [METRIC_NOTIFY_ENTRIES] = print_receivers,
    [METRIC_NOTIFY_OLDEST] = print_receivers,
    [METRIC_REPEAT_CACHE_HITS] = print_repeat_cache_hits,
    [METRIC_REPEAT_CACHE_MISSES] = print_repeat_cache_misses,
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
    struct printing p = {.metrics = metrics, .view = view, .out = out, .format = format};
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
