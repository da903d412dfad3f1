/*
 * The status of scaling policies: see the header.
 *
 * The engine does not store its last decisions and the sizes that it has observed. Until it knows
 * them again, after a restart or as a new leader, the status has those that the API server shows.
 *
 * A status is compared by digests that do not depend on the order of members. The time and the id
 * of the last decision, and the times of conditions, are in no digest: they alone are no reason to
 * write.
 */
#include <alertscaler/runtime/policy_report.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/rules/policy.h>

#define TEXT_MAX    ((size_t)1000) /* bytes of a message; of conditions: */
#define MESSAGE_MAX ((size_t)32000)
#define TEXT_SIZE   1000            /* of the meaning of a reason */
#define FORMER_MAX  ((size_t)16384) /* bytes of a part that is kept of the API server's status */
#define TREE_MEMORY ((size_t)16 * 1024 * 1024)

enum condition_kind {
    CONDITION_READY,
    CONDITION_STALLED,
    CONDITION_SCALING_ACTIVE,
    CONDITION_SCALING_LIMITED,
    CONDITION_BLOCKED,
    CONDITION_COUNT
};

static const char *const condition_words[CONDITION_COUNT] = {
    [CONDITION_READY] = "Ready",
    [CONDITION_STALLED] = "Stalled",
    [CONDITION_SCALING_ACTIVE] = "ScalingActive",
    [CONDITION_SCALING_LIMITED] = "ScalingLimited",
    [CONDITION_BLOCKED] = "Blocked",
};

struct condition {
    bool is_true;
    char reason[AS_POLICY_WORD_SIZE];
    char *message; /* owned; NULL: "" */
};

struct former_condition {
    bool is_set, is_true;
    as_wall_time since; /* lastTransitionTime */
};

struct status_digest {
    uint64_t all;        /* 0: no status */
    uint64_t key;        /* whose change is written at once */
    uint64_t conditions; /* types and statuses: whose change is urgent */
};

struct former_status {
    int64_t generation;            /* observedGeneration */
    int64_t size, desired;         /* -1: not known */
    char *rule, *reason, *message; /* of the last decision; NULL: none */
    char *value;
    char *decision, *rules, *unmatched; /* JSON; NULL: none */
    uint64_t alerts;                    /* digest of the rules' numbers of alerts */
};

struct policy_entry {
    UT_hash_handle hh; /* by id */
    TAILQ_ENTRY(policy_entry) in_round, in_due;
    bool is_due; /* in the list of those that had an effect */
    char *uid;
    struct status_digest shown; /* what the API server has */
    struct former_condition shown_conditions[CONDITION_COUNT];
    struct status_digest sent; /* in this term */
    struct former_condition sent_conditions[CONDITION_COUNT];
    as_mono_time sent_at;    /* INT64_MIN: never */
    bool is_confirmed;       /* the API server has accepted `sent` */
    as_maybe_time scaled_at; /* lastScaleTime */
    /* The id of its target: */
    char *target;
    const struct as_ruleset *target_of;
    int64_t target_generation;
    struct former_status former; /* by the API server */
    char id[];
};

TAILQ_HEAD(entry_list, policy_entry);

struct as_policy_reports {
    struct policy_entry *entries;
    struct entry_list round; /* the first: for the longest time not looked at */
    struct entry_list due;
    as_mono_time stepped; /* INT64_MIN: never */
    int64_t owed_us;      /* of the round, by all entries */
};

struct as_policy_reports *as_policy_reports_new(void)
{
    struct as_policy_reports *reports = as_xcalloc(1, sizeof(*reports));
    TAILQ_INIT(&reports->round);
    TAILQ_INIT(&reports->due);
    reports->stepped.us = INT64_MIN;
    return reports;
}

static void entry_set_due(struct as_policy_reports *reports, struct policy_entry *entry,
                          bool is_due)
{
    if (entry->is_due && !is_due)
        TAILQ_REMOVE(&reports->due, entry, in_due);
    else if (!entry->is_due && is_due)
        TAILQ_INSERT_TAIL(&reports->due, entry, in_due);
    entry->is_due = is_due;
}

static void former_status_clear(struct former_status *former)
{
    char *const texts[] = {former->rule,     former->reason, former->message,  former->value,
                           former->decision, former->rules,  former->unmatched};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        free(texts[i]);
    *former = (struct former_status){.size = -1, .desired = -1};
}

static void entry_forget(struct as_policy_reports *reports, struct policy_entry *entry)
{
    entry_set_due(reports, entry, false);
    TAILQ_REMOVE(&reports->round, entry, in_round);
    HASH_DEL(reports->entries, entry);
    former_status_clear(&entry->former);
    free(entry->uid);
    free(entry->target);
    free(entry);
}

struct as_policy_reports *as_policy_reports_free(struct as_policy_reports *reports)
{
    struct policy_entry *entry, *next;
    if (!reports)
        return NULL;
    HASH_ITER (hh, reports->entries, entry, next)
        entry_forget(reports, entry);
    free(reports);
    return NULL;
}

static struct policy_entry *report_find(const struct as_policy_reports *reports, const char *id)
{
    struct policy_entry *entry;
    HASH_FIND_STR(reports->entries, id, entry);
    return entry;
}

/* ---- digests ---- */

#define FNV_OFFSET UINT64_C(14695981039346656037)
#define FNV_PRIME  UINT64_C(1099511628211)

static uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const unsigned char *)bytes)[i]) * FNV_PRIME;
    return digest;
}

static uint64_t digest_text(uint64_t digest, const char *text)
{
    return text ? digest_bytes(digest, text, strlen(text) + 1) : digest_bytes(digest, "", 1);
}

static bool is_untold(const char *parent, const char *name)
{
    return strcmp(name, "lastTransitionTime") == 0 ||
           (parent && strcmp(parent, "lastDecision") == 0 &&
            (strcmp(name, "time") == 0 || strcmp(name, "id") == 0));
}

/* Sums, so that the order of members and elements does not matter. */
static uint64_t digest_value(const char *name, const struct tree_value *value)
{
    uint64_t sum = 0;
    switch (value->kind) {
    case TREE_NULL: return 1;
    case TREE_BOOLEAN: return 2 + value->boolean;
    case TREE_INTEGER: return digest_bytes(FNV_OFFSET, &value->integer, sizeof(value->integer));
    case TREE_REAL: return digest_bytes(FNV_OFFSET, &value->real, sizeof(value->real));
    case TREE_TEXT: return digest_bytes(FNV_OFFSET, value->text, value->size);
    case TREE_ARRAY:
    case TREE_OBJECT: break;
    }
    for (const struct tree_value *item = value->first; item; item = item->next) {
        if (value->kind == TREE_OBJECT && is_untold(name, item->name))
            continue;
        const uint64_t own = digest_value(item->name, item);
        const uint64_t named = digest_text(FNV_OFFSET, item->name);
        sum += digest_bytes(named, &own, sizeof(own));
    }
    return digest_bytes(FNV_OFFSET + value->kind, &sum, sizeof(sum));
}

static uint64_t digest_i64(uint64_t digest, const struct tree_value *value)
{
    int64_t number = INT64_MIN;
    (void)tree_get_i64(value, INT64_MIN, INT64_MAX, &number);
    return digest_bytes(digest, &number, sizeof(number));
}

static struct status_digest digest_status(const struct tree_value *status)
{
    uint64_t key = digest_i64(FNV_OFFSET, tree_find(status, "observedGeneration"));
    uint64_t sum = 0, conditions = 0;
    const struct tree_value *item = tree_get_first(tree_find(status, "conditions"));
    key = digest_i64(key, tree_find(status, "desired"));
    key = digest_text(key, tree_find_text(tree_find(status, "lastDecision"), "reason"));
    for (; item; item = item->next) {
        const uint64_t said = digest_text(digest_text(FNV_OFFSET, tree_find_text(item, "type")),
                                          tree_find_text(item, "status"));
        conditions += said;
        sum += digest_text(said, tree_find_text(item, "reason"));
    }
    return (struct status_digest){.all = digest_value(NULL, status),
                                  .key = digest_bytes(key, &sum, sizeof(sum)),
                                  .conditions = conditions};
}

/* ---- the object ---- */

static bool read_time(const char *text, as_wall_time *time_out)
{
    return text && as_wall_time_parse(text, strlen(text), time_out) == 0;
}

static void read_conditions(const struct tree_value *status,
                            struct former_condition conditions_out[CONDITION_COUNT])
{
    const struct tree_value *item = tree_get_first(tree_find(status, "conditions"));
    memset(conditions_out, 0, CONDITION_COUNT * sizeof(*conditions_out));
    for (; item; item = item->next) {
        const char *type = tree_find_text(item, "type");
        for (size_t i = 0; type && i < CONDITION_COUNT; i++) {
            struct former_condition *condition = &conditions_out[i];
            if (strcmp(type, condition_words[i]) != 0)
                continue;
            condition->is_set =
                read_time(tree_find_text(item, "lastTransitionTime"), &condition->since);
            condition->is_true = as_str_equal(tree_find_text(item, "status"), "True");
        }
    }
}

/* An object of the status, as it is; NULL: none, or too large. */
static char *former_copy_member(const char *status, size_t size, const char *name)
{
    const char *value;
    size_t value_size;
    if (!json_scan_find_member(status, size, name, &value, &value_size) || value_size > FORMER_MAX)
        return NULL;
    return as_xstrndup(value, value_size);
}

static char *former_copy_text(const struct tree_value *object, const char *name)
{
    const char *text = tree_find_text(object, name);
    return text ? as_xstrdup(text) : NULL;
}

static uint64_t digest_alerts(uint64_t sum, const char *rule, int64_t alerts)
{
    return sum + digest_bytes(digest_text(FNV_OFFSET, rule), &alerts, sizeof(alerts));
}

static void former_status_read(const char *text, size_t size, const struct tree_value *status,
                               struct former_status *former)
{
    const struct tree_value *decision = tree_find(status, "lastDecision");
    const struct tree_value *rule = tree_get_first(tree_find(status, "rules"));
    const char *at;
    size_t at_size;
    former_status_clear(former);
    (void)tree_get_i64(tree_find(status, "observedGeneration"), -1, INT64_MAX, &former->generation);
    (void)tree_get_i64(tree_find(status, "size"), 0, INT32_MAX, &former->size);
    (void)tree_get_i64(tree_find(status, "desired"), 0, INT32_MAX, &former->desired);
    if (!json_scan_find_member(text, size, "status", &at, &at_size))
        return;
    if (tree_is(decision, TREE_OBJECT))
        former->decision = former_copy_member(at, at_size, "lastDecision");
    if (former->decision) {
        former->rule = former_copy_text(decision, "rule");
        former->reason = former_copy_text(decision, "reason");
        former->message = former_copy_text(decision, "message");
        former->value = former_copy_text(status, "value");
        former->rules = former_copy_member(at, at_size, "rules");
    }
    for (; rule; rule = rule->next) {
        const char *name = tree_find_text(rule, "name");
        int64_t alerts = 0;
        (void)tree_get_i64(tree_find(rule, "alerts"), 0, INT64_MAX, &alerts);
        former->alerts = digest_alerts(former->alerts, name ? name : "", alerts);
    }
    if (tree_is(tree_find(status, "unmatched"), TREE_OBJECT))
        former->unmatched = former_copy_member(at, at_size, "unmatched");
}

static struct policy_entry *report_new(struct as_policy_reports *reports, const char *id)
{
    const size_t size = strlen(id) + 1;
    struct policy_entry *entry = as_xcalloc(1, sizeof(*entry) + size);
    memcpy(entry->id, id, size);
    former_status_clear(&entry->former);
    HASH_ADD_STR(reports->entries, id, entry);
    TAILQ_INSERT_HEAD(&reports->round, entry, in_round);
    return entry;
}

/* Another object has the name. */
static void entry_begin(struct policy_entry *entry, const char *uid)
{
    free(entry->uid);
    free(entry->target);
    entry->uid = as_xstrdup(uid);
    entry->target = NULL;
    entry->target_of = NULL;
    entry->sent = (struct status_digest){0};
    entry->sent_at.us = INT64_MIN;
    entry->is_confirmed = false;
    entry->scaled_at.set = false;
}

void as_policy_reports_on_object(struct as_policy_reports *reports, const char *text, size_t size)
{
    static const struct tree_part names[] = {
        {.name = "namespace"}, {.name = "name"}, {.name = "uid"}, {0}};
    static const struct tree_part parts[] = {
        {.name = "metadata", .parts = names}, {.name = "status"}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_MEMORY);
    if (tree_parse(&tree, text, size, parts, NULL) != 0)
        return;
    const struct tree_value *metadata = tree_find(tree.root, "metadata");
    const struct tree_value *status = tree_find(tree.root, "status");
    const char *namespace = tree_find_text(metadata, "namespace");
    const char *name = tree_find_text(metadata, "name");
    const char *uid = tree_find_text(metadata, "uid");
    if (!namespace || !name || !uid)
        return;
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("%s/%s", namespace, name);
    struct policy_entry *entry = report_find(reports, id);
    entry = entry ? entry : report_new(reports, id);
    if (!as_str_equal(entry->uid, uid))
        entry_begin(entry, uid);
    entry->shown = (struct status_digest){0};
    if (tree_is(status, TREE_OBJECT))
        entry->shown = digest_status(status);
    read_conditions(status, entry->shown_conditions);
    former_status_read(text, size, status, &entry->former);
    as_wall_time scaled_at;
    if (read_time(tree_find_text(status, "lastScaleTime"), &scaled_at) &&
        (!entry->scaled_at.set || scaled_at.us > entry->scaled_at.at.us))
        entry->scaled_at = (as_maybe_time){true, scaled_at};
    entry_set_due(reports, entry, true);
}

void as_policy_reports_on_removed(struct as_policy_reports *reports, const char *id)
{
    struct policy_entry *entry = report_find(reports, id);
    if (entry)
        entry_forget(reports, entry);
}

void as_policy_reports_on_written(struct as_policy_reports *reports, const char *namespace,
                                  const char *name, const char *uid)
{
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("%s/%s", namespace, name);
    struct policy_entry *entry = report_find(reports, id);
    if (entry && as_str_equal(entry->uid, uid))
        entry->is_confirmed = true;
}

void as_policy_reports_on_judged(struct as_policy_reports *reports, const char *id)
{
    struct policy_entry *entry = report_find(reports, id);
    if (entry)
        entry_set_due(reports, entry, true);
}

/* What differs in value and size alone is written within AS_POLICY_MINOR_US, not all at once. */
void as_policy_reports_begin_term(struct as_policy_reports *reports, as_mono_time now)
{
    struct policy_entry *entry, *next;
    HASH_ITER (hh, reports->entries, entry, next) {
        const uint64_t place = digest_text(FNV_OFFSET, entry->id) % (uint64_t)AS_POLICY_MINOR_US;
        entry->sent = (struct status_digest){0};
        entry->sent_at.us = now.us - (int64_t)place;
        entry->is_confirmed = false;
        entry_set_due(reports, entry, true);
    }
    reports->stepped.us = INT64_MIN;
}

void as_policy_reports_on_effect(struct as_policy_reports *reports, const struct as_effect *effect,
                                 as_wall_time now)
{
    const struct as_action_record *action =
        effect->kind == AS_EFFECT_RECORD_ACTION ? effect->action : NULL;
    const char *name = action                                      ? action->target_name
                       : effect->kind == AS_EFFECT_RECORD_DECISION ? effect->decision->target_name
                       : effect->kind == AS_EFFECT_RECORD_OTHERS   ? effect->others->target_name
                       : effect->kind == AS_EFFECT_RECORD_APPROVAL ? effect->approval->target_name
                                                                   : NULL;
    struct policy_entry *entry = name ? report_find(reports, name) : NULL;
    if (!entry)
        return;
    if (action && action->outcome == AS_REASON_APPLIED && action->from != action->to)
        entry->scaled_at = (as_maybe_time){true, now};
    entry_set_due(reports, entry, true);
}

/* ---- the parts of a status ---- */

struct rule_status {
    const struct as_rule *rule;
    struct as_rule_view seen; /* of it; without `rule`: nothing */
    const char *error;        /* the server's, about its query; NULL: none */
};

struct policy_status {
    const struct as_scaling_policy *policy;
    const struct as_view *view;
    const struct as_target_config *config; /* NULL: Invalid */
    bool has_target;                       /* the engine knows it, by this policy */
    struct as_target_view target;
    struct rule_status *rules;
    size_t rule_count;
    struct condition conditions[CONDITION_COUNT];
    const struct former_condition *former;
    const struct former_status *shown;
    as_maybe_time scaled_at;
    const struct as_policy_reader *reader; /* NULL: the API server, which gets all names */
};

static void policy_status_deinit(struct policy_status *status)
{
    for (size_t i = 0; i < CONDITION_COUNT; i++)
        free(status->conditions[i].message);
    free(status->rules);
}

static void keep_target(void *context, const struct as_target_view *view)
{
    struct policy_status *status = context;
    status->has_target = view->config && strcmp(view->config->name, status->policy->id) == 0;
    status->target = *view;
}

static void keep_rule(void *context, const struct as_rule_view *view)
{
    struct policy_status *status = context;
    for (size_t i = 0; i < status->rule_count; i++)
        if (strcmp(status->rules[i].rule->name, view->rule->name) == 0)
            status->rules[i].seen = *view;
}

/* NULL: it has none. */
static const char *entry_find_target(struct policy_entry *entry,
                                     const struct as_scaling_policy *policy)
{
    const struct as_ruleset *ruleset = policy->ruleset;
    if (entry->target_of == ruleset && entry->target_generation == policy->generation)
        return entry->target;
    free(entry->target);
    entry->target = NULL;
    entry->target_of = ruleset;
    entry->target_generation = policy->generation;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    AS_CLEANUP(as_labels_free_p) struct as_labels *none = NULL;
    if (ruleset && ruleset->target_count > 0 && as_labels_new(NULL, 0, &none) == 0 &&
        as_target_ref_new(ruleset->targets[0], none, none, &ref, NULL) == AS_TARGET_OK)
        entry->target = as_xstrdup(ref->id);
    return entry->target;
}

static void find_parts(struct policy_status *status, struct policy_entry *entry)
{
    const struct as_view *view = status->view;
    const struct as_ruleset *ruleset = status->policy->ruleset;
    const char *target = entry_find_target(entry, status->policy);
    if (!ruleset || ruleset->target_count == 0)
        return;
    status->config = ruleset->targets[0];
    status->rule_count = ruleset->rule_count;
    status->rules = as_xcalloc(ruleset->rule_count + 1, sizeof(*status->rules));
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        status->rules[i].rule = ruleset->rules[i];
        status->rules[i].error = as_query_checks_find_error(view->query_checks, ruleset->rules[i]);
    }
    if (!view->engine || !target)
        return;
    (void)as_engine_visit_target(view->engine, target, view->mono, view->wall, keep_target, status);
    if (status->has_target)
        as_engine_visit_target_rules(view->engine, target, keep_rule, status);
}

static const char *get_rule_name(const struct policy_status *status, const char *rule)
{
    const size_t size = strlen(status->policy->id);
    const bool is_own = strncmp(rule, status->policy->id, size) == 0 && rule[size] == '/';
    return is_own ? rule + size + 1 : rule;
}

static bool report_is_decided(const struct policy_status *status)
{
    return status->has_target && status->target.last_decision;
}

/* The engine has not decided, and the rules have the alerts that the API server shows: values and
 * reasons of rules are as before. */
static bool report_has_former_rules(const struct policy_status *status)
{
    uint64_t alerts = 0;
    if (report_is_decided(status) || !status->shown->rules ||
        status->shown->generation != status->policy->generation || status->rule_count == 0)
        return false;
    for (size_t i = 0; i < status->rule_count; i++) {
        const struct rule_status *rule = &status->rules[i];
        if (rule->error)
            return false;
        alerts = digest_alerts(alerts, get_rule_name(status, rule->rule->name),
                               (int64_t)rule->seen.alerts);
    }
    return alerts == status->shown->alerts;
}

static const struct rule_status *report_find_last_rule(const struct policy_status *status)
{
    const char *rule = report_is_decided(status) ? status->target.last_rule : status->shown->rule;
    const char *name = rule ? get_rule_name(status, rule) : NULL;
    for (size_t i = 0; name && i < status->rule_count; i++)
        if (strcmp(get_rule_name(status, status->rules[i].rule->name), name) == 0)
            return &status->rules[i];
    return status->rule_count > 0 ? &status->rules[0] : NULL;
}

/* Three digits, or a whole number: the rest is noise, and each change is a write. */
static void report_print_value(double value, const char *unit, char text_out[AS_NUMBER_SIZE])
{
    char number[AS_NUMBER_SIZE];
    if (fabs(value) >= 1e15)
        as_number_print_double(value, number);
    else if (fabs(value) >= 999.5)
        (void)snprintf(number, sizeof(number), "%.0f", value);
    else
        (void)snprintf(number, sizeof(number), "%.3g", value);
    (void)snprintf(text_out, AS_NUMBER_SIZE, "%.*s%s", AS_NUMBER_SIZE - 2, number, unit);
}

static const char *get_value_unit(const struct as_rule *rule)
{
    const bool is_percent =
        rule->action.kind == AS_ACTION_TRACK && rule->action.track.goal == AS_GOAL_UTILIZATION;
    return is_percent ? "%" : "";
}

static bool rule_print_value(const struct rule_status *rule, char text_out[AS_NUMBER_SIZE])
{
    if (!rule || !rule->seen.rule || !rule->seen.has_value)
        return false;
    report_print_value(rule->seen.value, get_value_unit(rule->rule), text_out);
    return true;
}

static bool rule_print_goal(const struct rule_status *rule, char text_out[AS_NUMBER_SIZE])
{
    if (!rule || rule->rule->action.kind != AS_ACTION_TRACK)
        return false;
    char number[AS_NUMBER_SIZE];
    as_number_print_double(rule->rule->action.track.value, number);
    (void)snprintf(text_out, AS_NUMBER_SIZE, "%.*s%s", AS_NUMBER_SIZE - 2, number,
                   get_value_unit(rule->rule));
    return true;
}

/* Whole seconds: the end of a lock is computed anew each time. */
static void print_seconds(as_wall_time time, char text_out[AS_RFC3339_SIZE])
{
    time.us = (time.us + AS_US_PER_S / 2) / AS_US_PER_S * AS_US_PER_S;
    as_wall_time_print_short(time, text_out);
}

/* "14:04:12Z"; of another day with the date. */
static void print_clock(as_wall_time time, as_wall_time now, char text_out[AS_RFC3339_SIZE])
{
    char today[AS_RFC3339_SIZE], text[AS_RFC3339_SIZE];
    print_seconds(now, today);
    print_seconds(time, text);
    const size_t date = (size_t)(strchr(text, 'T') + 1 - text);
    const char *shown = strncmp(text, today, date) == 0 ? text + date : text;
    memcpy(text_out, shown, strlen(shown) + 1);
}

static bool report_print_locks(const struct policy_status *status,
                               char text_out[2 * AS_RFC3339_SIZE + 32])
{
    const struct as_moment ends[] = {status->target.up_locked_until,
                                     status->target.down_locked_until};
    const bool is_up = status->has_target && as_moment_is_set(ends[0]);
    const bool is_down = status->has_target && as_moment_is_set(ends[1]);
    char up[AS_RFC3339_SIZE] = "", down[AS_RFC3339_SIZE] = "";
    if (is_up)
        print_clock(ends[0].wall, status->view->wall, up);
    if (is_down)
        print_clock(ends[1].wall, status->view->wall, down);
    if (is_up && is_down && strcmp(up, down) == 0)
        (void)snprintf(text_out, 2 * AS_RFC3339_SIZE + 32, "until %s", up);
    else
        (void)snprintf(text_out, 2 * AS_RFC3339_SIZE + 32, "%s%s%s%s%s", is_up ? "up until " : "",
                       up, is_up && is_down ? ", " : "", is_down ? "down until " : "", down);
    return is_up || is_down;
}

/* ---- conditions ---- */

static void set_condition(struct policy_status *status, enum condition_kind kind, bool is_true,
                          const char *reason, const char *message)
{
    struct condition *condition = &status->conditions[kind];
    (void)snprintf(condition->reason, sizeof(condition->reason), "%s", reason);
    condition->is_true = is_true;
    free(condition->message);
    condition->message = as_xstrdup(message);
}

/* With a reason code. */
static void set_by_code(struct policy_status *status, enum condition_kind kind, bool is_true,
                        enum as_reason code, const char *message)
{
    char reason[AS_POLICY_WORD_SIZE];
    set_condition(status, kind, is_true, as_policy_spell(as_reason_get_word(code), reason),
                  message ? message : as_reason_get_meaning(code));
}

static bool is_in_force(const struct as_scaling_policy *policy)
{
    return policy->reason == AS_POLICY_READY || policy->reason == AS_POLICY_SHADOW;
}

static void judge_ready(struct policy_status *status)
{
    const struct as_scaling_policy *policy = status->policy;
    const char *word = as_policy_reason_get_word(policy->reason);
    const char *message = policy->message ? policy->message : "";
    set_condition(status, CONDITION_READY, is_in_force(policy), word, message);
    if (is_in_force(policy))
        set_condition(status, CONDITION_STALLED, false, word, "");
    else
        set_condition(status, CONDITION_STALLED, true, word, message);
}

static const struct rule_status *report_find_refused(const struct policy_status *status)
{
    for (size_t i = 0; i < status->rule_count; i++)
        if (status->rules[i].error)
            return &status->rules[i];
    return NULL;
}

/* The rule whose value is missing for the longest time, if that is long enough. */
static const struct rule_status *find_gap(const struct policy_status *status)
{
    const struct rule_status *found = NULL;
    for (size_t i = 0; i < status->rule_count; i++) {
        const struct rule_status *rule = &status->rules[i];
        if (!rule->seen.rule || !as_moment_is_set(rule->seen.missing_since) ||
            status->view->mono.us - rule->seen.missing_since.mono.us < AS_POLICY_METRIC_GAP_US)
            continue;
        if (!found || rule->seen.missing_since.mono.us < found->seen.missing_since.mono.us)
            found = rule;
    }
    return found;
}

static bool report_is_failing(const struct policy_status *status)
{
    const struct as_target_view *target = &status->target;
    return status->has_target && target->last_failure != AS_REASON_APPLIED &&
           as_moment_is_set(target->failing_since) &&
           status->view->mono.us - target->failing_since.mono.us >= AS_POLICY_METRIC_GAP_US;
}

static void judge_active(struct policy_status *status)
{
    const enum condition_kind kind = CONDITION_SCALING_ACTIVE;
    const struct rule_status *refused = report_find_refused(status), *gap = find_gap(status);
    if (!is_in_force(status->policy)) {
        set_condition(status, kind, false, as_policy_reason_get_word(status->policy->reason),
                      "The policy is not in force.");
    } else if (refused) {
        AS_CLEANUP(as_free_p)
        char *message =
            as_xasprintf("rule %s: %s", get_rule_name(status, refused->rule->name), refused->error);
        set_condition(status, kind, false, "QueryRefused", message);
    } else if (report_is_failing(status)) {
        set_by_code(status, kind, false, status->target.last_failure, NULL);
    } else if (gap) {
        AS_CLEANUP(as_free_p)
        char *message = as_xasprintf("rule %s has no value: without it, the size does not go down",
                                     get_rule_name(status, gap->rule->name));
        set_by_code(status, kind, false, AS_REASON_METRIC_UNAVAILABLE, message);
    } else if (status->has_target && status->target.last_decision &&
               status->target.last_reason == AS_REASON_DISABLED) {
        set_by_code(status, kind, false, AS_REASON_DISABLED, NULL);
    } else {
        set_condition(status, kind, true, "Active", "The rules decide the size of the target.");
    }
}

/* The reasons for which a decision gets less than a rule wants, until something changes. */
static bool is_limit(enum as_reason reason)
{
    return reason == AS_REASON_AT_MAX || reason == AS_REASON_AT_MIN ||
           reason == AS_REASON_ABOVE_MAX || reason == AS_REASON_BELOW_MIN ||
           reason == AS_REASON_RATE_LIMITED || reason == AS_REASON_BUDGET;
}

/* The meaning of a reason; of `budget` with the limit, if it is that of the namespace. */
static const char *report_explain(const struct policy_status *status, enum as_reason code,
                                  char text_out[TEXT_SIZE])
{
    const struct as_namespace_limit_view *limit = &status->target.namespace_limit;
    char per[AS_DURATION_SIZE];
    if (code != AS_REASON_BUDGET || !limit->namespace)
        return as_reason_get_meaning(code);
    as_duration_print(limit->per_us, per);
    (void)snprintf(text_out, TEXT_SIZE,
                   "The limit of namespace %s is used up: %" PRIu32 " action%s in %s "
                   "(`objects.limits`).",
                   limit->namespace, limit->actions, limit->actions == 1 ? "" : "s", per);
    return text_out;
}

static void judge_limited(struct policy_status *status)
{
    const struct as_target_view *target = &status->target;
    char text[TEXT_SIZE];
    if (is_in_force(status->policy) && status->has_target && target->last_decision &&
        is_limit(target->last_reason))
        set_by_code(status, CONDITION_SCALING_LIMITED, true, target->last_reason,
                    report_explain(status, target->last_reason, text));
    else if (is_in_force(status->policy) && report_has_former_rules(status) &&
             status->former[CONDITION_SCALING_LIMITED].is_true && status->shown->reason)
        set_condition(status, CONDITION_SCALING_LIMITED, true, status->shown->reason,
                      status->shown->message ? status->shown->message : "");
    else
        set_condition(status, CONDITION_SCALING_LIMITED, false, "NotLimited", "");
}

/* True: it is set. */
static bool judge_pause(struct policy_status *status, const struct as_pause_view *pause,
                        const char *what)
{
    if (!pause->is_set)
        return false;
    const struct as_policy_reader *reader = status->reader;
    const char *who = as_str_is_empty(pause->who) ? "an operator"
                      : reader                    ? reader->show_name(reader->context, pause->who)
                                                  : pause->who;
    AS_CLEANUP(as_free_p)
    char *message =
        pause->is_halt
            ? as_xasprintf("%s", as_str_is_empty(pause->reason) ? "the kill switch is set"
                                                                : pause->reason)
            : as_xasprintf("%s%s is paused by %s: %s", what,
                           pause->ways == AS_WAYS_UP     ? " (up)"
                           : pause->ways == AS_WAYS_DOWN ? " (down)"
                                                         : "",
                           who, as_str_is_empty(pause->reason) ? "no reason given" : pause->reason);
    set_condition(status, CONDITION_BLOCKED, true, pause->is_halt ? "KillSwitch" : "Paused",
                  message);
    return true;
}

static bool judge_annotations(struct policy_status *status)
{
    const struct as_scaling_policy *policy = status->policy;
    const struct {
        const char *key, *value;
    } rows[] = {{"alertscaler.io/paused", policy->paused},
                {"alertscaler.io/paused-up", policy->paused_up},
                {"alertscaler.io/paused-down", policy->paused_down}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (!rows[i].value)
            continue;
        AS_CLEANUP(as_free_p)
        char *message = as_xasprintf("annotation %s: %s", rows[i].key, rows[i].value);
        set_condition(status, CONDITION_BLOCKED, true, "Paused", message);
        return true;
    }
    return false;
}

static void judge_blocked(struct policy_status *status)
{
    const struct as_view *view = status->view;
    const struct as_scaling_policy *policy = status->policy;
    struct as_pause_view all = {0};
    if (view->engine)
        all = as_engine_get_pause(view->engine, view->mono, view->wall);
    if ((all.is_halt && judge_pause(status, &all, "")) || judge_annotations(status) ||
        judge_pause(status, &all, "everything"))
        return;
    if (policy->rival && !policy->allows_hpa) {
        AS_CLEANUP(as_free_p)
        char *message = as_xasprintf("%s scales the same object. Annotate the policy with "
                                     "alertscaler.io/allow-hpa: \"true\" to act beside it.",
                                     policy->rival);
        set_condition(status, CONDITION_BLOCKED, true, "HPAFound", message);
    } else if (status->has_target && is_in_force(policy) &&
               judge_pause(status, &status->target.pause, "the target")) {
        return;
    } else if (status->has_target && as_moment_is_set(status->target.contended_until)) {
        set_by_code(status, CONDITION_BLOCKED, true, AS_REASON_CONTENDED, NULL);
    } else if (view->dry_run) {
        set_by_code(status, CONDITION_BLOCKED, true, AS_REASON_DRY_RUN, NULL);
    } else {
        set_condition(status, CONDITION_BLOCKED, false, "NotBlocked", "");
    }
}

/* ---- the document ---- */

static void report_write_text(struct as_json_writer *json, const char *key, const char *text,
                              size_t max)
{
    if (as_str_is_empty(text))
        return; /* the schema wants one character */
    as_json_write_key(json, key);
    as_json_write_string_size(json, text, as_str_cut_utf8(text, strlen(text), max));
}

static as_wall_time get_since(const struct policy_status *status, size_t kind)
{
    const struct former_condition *former = &status->former[kind];
    const bool is_same = former->is_set && former->is_true == status->conditions[kind].is_true;
    return is_same ? former->since : status->view->wall;
}

static void report_write_conditions(struct as_json_writer *json, const struct policy_status *status)
{
    as_json_write_key(json, "conditions");
    as_json_begin_array(json);
    for (size_t i = 0; i < CONDITION_COUNT; i++) {
        const struct condition *condition = &status->conditions[i];
        char since[AS_RFC3339_SIZE];
        print_seconds(get_since(status, i), since);
        as_json_begin_object(json);
        as_json_write_member(json, "lastTransitionTime", since);
        as_json_write_key(json, "message");
        as_json_write_string_size(
            json, condition->message,
            as_str_cut_utf8(condition->message, strlen(condition->message), MESSAGE_MAX));
        as_json_write_member_i64(json, "observedGeneration", status->policy->generation);
        as_json_write_member(json, "reason", condition->reason);
        as_json_write_member(json, "status", condition->is_true ? "True" : "False");
        as_json_write_member(json, "type", condition_words[i]);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_decision(struct as_json_writer *json, const struct policy_status *status)
{
    const struct as_target_view *target = &status->target;
    char text[AS_RFC3339_SIZE], reason[AS_POLICY_WORD_SIZE], meaning[TEXT_SIZE];
    if (!report_is_decided(status) && !status->shown->decision)
        return;
    as_json_write_key(json, "lastDecision");
    if (!report_is_decided(status)) {
        as_json_write_raw(json, status->shown->decision, strlen(status->shown->decision));
        return;
    }
    as_json_begin_object(json);
    as_json_write_member(json, "id", target->last_decision);
    as_json_write_member(json, "message", report_explain(status, target->last_reason, meaning));
    as_json_write_member(json, "reason",
                         as_policy_spell(as_reason_get_word(target->last_reason), reason));
    if (target->last_rule)
        report_write_text(json, "rule", get_rule_name(status, target->last_rule), TEXT_MAX);
    print_seconds(target->last_at, text);
    as_json_write_member(json, "time", text);
    as_json_end_object(json);
}

static void write_locks(struct as_json_writer *json, const struct policy_status *status)
{
    const struct {
        const char *key;
        struct as_moment end;
    } rows[] = {{"down", status->target.down_locked_until}, {"up", status->target.up_locked_until}};
    char text[2 * AS_RFC3339_SIZE + 32];
    if (!report_print_locks(status, text))
        return;
    as_json_write_member(json, "locked", text);
    as_json_write_key(json, "lockedUntil");
    as_json_begin_object(json);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char end[AS_RFC3339_SIZE];
        if (!as_moment_is_set(rows[i].end))
            continue;
        print_seconds(rows[i].end.wall, end);
        as_json_write_member(json, rows[i].key, end);
    }
    as_json_end_object(json);
}

static void write_rule(struct as_json_writer *json, const struct policy_status *status,
                       const struct rule_status *rule)
{
    const struct as_rule_view *seen = &rule->seen;
    const bool is_winner =
        status->target.last_rule && strcmp(status->target.last_rule, rule->rule->name) == 0;
    char text[AS_NUMBER_SIZE], reason[AS_POLICY_WORD_SIZE], meaning[TEXT_SIZE];
    const bool has_decision = seen->rule && status->target.last_decision;
    /* `scaled` is the reason of the decision: it is known of the rule that won. */
    const enum as_reason code =
        seen->reason == AS_REASON_SCALED && is_winner ? status->target.last_reason : seen->reason;
    const bool has_reason = has_decision && (seen->reason != AS_REASON_SCALED || is_winner);
    as_json_begin_object(json);
    as_json_write_member_i64(json, "alerts", (int64_t)seen->alerts);
    if (has_decision && seen->has_desired)
        as_json_write_member_i64(json, "desired", seen->desired);
    if (rule_print_goal(rule, text))
        as_json_write_member(json, "goal", text);
    if (rule->error)
        report_write_text(json, "message", rule->error, TEXT_MAX);
    else if (has_reason)
        as_json_write_member(json, "message", report_explain(status, code, meaning));
    as_json_write_member(json, "name", get_rule_name(status, rule->rule->name));
    if (rule->error)
        as_json_write_member(json, "reason", "QueryRefused");
    else if (has_reason)
        as_json_write_member(json, "reason", as_policy_spell(as_reason_get_word(code), reason));
    if (rule_print_value(rule, text))
        as_json_write_member(json, "value", text);
    as_json_end_object(json);
}

/* "Deployment/checkout", "aws/batch-1"; for free(), or NULL */
static char *report_make_address(const struct as_target_config *config)
{
    const char *kind = as_target_config_find_plain(config, "kind");
    const char *provider = as_target_config_find_plain(config, "provider");
    const char *name = as_target_config_find_plain(config, "name");
    const char *first = kind ? kind : provider;
    return first && name ? as_xasprintf("%s/%s", first, name) : NULL;
}

/* Alerts that the namespace alone keeps from the rules: authors miss the label, or its value. */
static void write_unmatched(struct as_json_writer *json, const struct policy_status *status)
{
    const struct as_unmatched_view *unmatched = &status->target.unmatched;
    const bool is_known = status->has_target && unmatched->alerts > 0;
    const bool is_shown = status->shown->generation == status->policy->generation;
    if (!is_known && (!is_shown || !status->shown->unmatched))
        return;
    as_json_write_key(json, "unmatched");
    if (!is_known) {
        as_json_write_raw(json, status->shown->unmatched, strlen(status->shown->unmatched));
        return;
    }
    as_json_begin_object(json);
    as_json_write_member_i64(json, "alerts", unmatched->alerts);
    report_write_text(json, "lastAlert", unmatched->last_alert, TEXT_MAX);
    as_json_write_member(json, "message",
                         "Alerts match a rule, but they do not have the label of this namespace.");
    report_write_text(json, "rule", get_rule_name(status, unmatched->rule), TEXT_MAX);
    as_json_end_object(json);
}

static int64_t report_get_size(const struct policy_status *status)
{
    return status->has_target && status->target.has_size ? status->target.replicas
                                                         : status->shown->size;
}

static int64_t report_get_desired(const struct policy_status *status)
{
    return status->has_target && status->target.has_size ? status->target.desired
                                                         : status->shown->desired;
}

/* Of the rule that decided; NULL: none. */
static const char *report_find_value(const struct policy_status *status,
                                     char text_out[AS_NUMBER_SIZE])
{
    if (report_has_former_rules(status) && status->shown->value)
        return status->shown->value;
    return rule_print_value(report_find_last_rule(status), text_out) ? text_out : NULL;
}

/* Ascending keys, as the writer wants them. */
static void report_write_status(struct as_json_writer *json, const struct policy_status *status)
{
    const int64_t size = report_get_size(status);
    const int64_t desired = report_get_desired(status);
    const bool has_former_rules = report_has_former_rules(status);
    char text[AS_RFC3339_SIZE > AS_NUMBER_SIZE ? AS_RFC3339_SIZE : AS_NUMBER_SIZE];
    struct as_schedule_bounds bounds = {0};
    AS_CLEANUP(as_free_p)
    char *address = status->config ? report_make_address(status->config) : NULL;
    if (status->config)
        bounds = as_target_config_get_bounds(status->config, status->view->wall);
    as_json_begin_object(json);
    report_write_conditions(json, status);
    if (desired >= 0)
        as_json_write_member_i64(json, "desired", desired);
    if (rule_print_goal(report_find_last_rule(status), text))
        as_json_write_member(json, "goal", text);
    write_decision(json, status);
    if (status->scaled_at.set) {
        print_seconds(status->scaled_at.at, text);
        as_json_write_member(json, "lastScaleTime", text);
    }
    write_locks(json, status);
    if (status->config)
        as_json_write_member_i64(json, "max", bounds.max);
    if (status->config)
        as_json_write_member_i64(json, "min", bounds.min);
    as_json_write_member_i64(json, "observedGeneration", status->policy->generation);
    if (has_former_rules) {
        as_json_write_key(json, "rules");
        as_json_write_raw(json, status->shown->rules, strlen(status->shown->rules));
    } else if (status->rule_count > 0) {
        as_json_write_key(json, "rules");
        as_json_begin_array(json);
        for (size_t i = 0; i < status->rule_count; i++)
            write_rule(json, status, &status->rules[i]);
        as_json_end_array(json);
    }
    if (size >= 0)
        as_json_write_member_i64(json, "size", size);
    report_write_text(json, "target", address, TEXT_MAX);
    write_unmatched(json, status);
    report_write_text(json, "value", report_find_value(status, text), TEXT_MAX);
    as_json_end_object(json);
}

/* ---- when it is written ---- */

static bool is_write_due(const struct policy_entry *entry, const struct status_digest *now,
                         as_mono_time mono)
{
    const bool is_sent = entry->sent_at.us != INT64_MIN;
    const int64_t age_us = is_sent ? mono.us - entry->sent_at.us : INT64_MAX;
    if (now->all == entry->shown.all)
        return false;
    if (now->key != entry->sent.key && now->key != entry->shown.key)
        return true;
    if (now->key != entry->sent.key && entry->sent.all)
        return true; /* back to what the server shows until it shows what was sent */
    const bool is_accepted = now->all == entry->sent.all && entry->is_confirmed;
    return age_us >= (is_accepted ? AS_POLICY_UNSHOWN_US : AS_POLICY_MINOR_US);
}

static void entry_note_sent(struct policy_entry *entry, const struct policy_status *status,
                            const struct status_digest *digest)
{
    for (size_t i = 0; i < CONDITION_COUNT; i++)
        entry->sent_conditions[i] =
            (struct former_condition){true, status->conditions[i].is_true, get_since(status, i)};
    entry->sent = *digest;
    entry->sent_at = status->view->mono;
    entry->is_confirmed = false;
}

static void entry_judge(struct policy_entry *entry, const struct as_scaling_policy *policy,
                        const struct as_view *view, const struct as_policy_reader *reader,
                        struct policy_status *status_out)
{
    *status_out = (struct policy_status){.policy = policy,
                                         .view = view,
                                         .former = entry->sent.all ? entry->sent_conditions
                                                                   : entry->shown_conditions,
                                         .shown = &entry->former,
                                         .scaled_at = entry->scaled_at,
                                         .reader = reader};
    find_parts(status_out, entry);
    judge_ready(status_out);
    judge_active(status_out);
    judge_limited(status_out);
    judge_blocked(status_out);
}

static void entry_report(struct policy_entry *entry, const struct as_scaling_policy *policy,
                         const struct as_view *view, as_policy_report_fn *write, void *context)
{
    AS_CLEANUP(policy_status_deinit) struct policy_status status = {0};
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_POLICY_STATUS_MAX);
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_MEMORY);
    struct as_json_writer json;
    entry_judge(entry, policy, view, NULL, &status);
    as_json_init(&json, &text, 0);
    report_write_status(&json, &status);
    if (as_buf_check(&text) != 0 || tree_load(&tree, text.data, text.size, NULL) != 0)
        return;
    const struct status_digest digest = digest_status(tree.root);
    if (!is_write_due(entry, &digest, view->mono))
        return;
    const bool is_urgent =
        digest.conditions != (entry->sent.all ? entry->sent.conditions : entry->shown.conditions);
    const struct condition *blocked = &status.conditions[CONDITION_BLOCKED];
    const bool is_same = status.former[CONDITION_BLOCKED].is_true == blocked->is_true;
    entry_note_sent(entry, &status, &digest);
    write(context, policy, text.data, text.size, is_urgent,
          is_same ? NULL
                  : &(struct as_policy_block){blocked->is_true, blocked->reason, blocked->message});
}

/* A generation that no join has judged yet stays due. */
static void look_at(struct as_policy_reports *reports, struct policy_entry *entry,
                    const struct as_policy_set *set, const struct as_view *view,
                    as_policy_report_fn *write, void *context)
{
    const struct as_scaling_policy *policy = as_policy_set_find(set, entry->id);
    const bool is_judged = policy && !as_str_is_empty(policy->message);
    entry_set_due(reports, entry, policy && !is_judged);
    TAILQ_REMOVE(&reports->round, entry, in_round);
    TAILQ_INSERT_TAIL(&reports->round, entry, in_round);
    if (is_judged && as_str_equal(policy->uid, entry->uid))
        entry_report(entry, policy, view, write, context);
}

void as_policy_reports_step(struct as_policy_reports *reports, const struct as_policy_set *set,
                            const struct as_view *view, as_policy_report_fn *write, void *context)
{
    const int64_t count = HASH_COUNT(reports->entries);
    size_t left = AS_POLICY_REPORTS_A_STEP;
    struct policy_entry *entry, *next;
    const int64_t passed_us =
        reports->stepped.us == INT64_MIN ? AS_POLICY_ROUND_US : view->mono.us - reports->stepped.us;
    reports->stepped = view->mono;
    reports->owed_us =
        as_time_add(reports->owed_us,
                    (passed_us < AS_POLICY_ROUND_US ? passed_us : AS_POLICY_ROUND_US) * count);
    const int64_t most_us = count * AS_POLICY_ROUND_US;
    reports->owed_us = reports->owed_us < most_us ? reports->owed_us : most_us;
    TAILQ_FOREACH_SAFE (entry, &reports->due, in_due, next) {
        if (left == 0)
            break;
        look_at(reports, entry, set, view, write, context);
        left--;
    }
    for (; left > 0 && reports->owed_us >= AS_POLICY_ROUND_US && !TAILQ_EMPTY(&reports->round);
         left--) {
        reports->owed_us -= AS_POLICY_ROUND_US;
        look_at(reports, TAILQ_FIRST(&reports->round), set, view, write, context);
    }
}

/* ---- for the API ---- */

static bool report_is_paused(const struct policy_status *status)
{
    const struct as_view *view = status->view;
    const struct as_scaling_policy *policy = status->policy;
    return (view->engine && as_engine_get_pause(view->engine, view->mono, view->wall).is_set) ||
           policy->paused || policy->paused_up || policy->paused_down ||
           (status->has_target && status->target.pause.is_set);
}

static struct as_policy_condition report_show_condition(const struct policy_status *status,
                                                        enum condition_kind kind)
{
    const struct condition *condition = &status->conditions[kind];
    return (struct as_policy_condition){condition->is_true, condition->reason, condition->message};
}

/* NULL: another object has the name now. */
static struct policy_entry *report_find_shown(const struct as_policy_reports *reports,
                                              const struct as_scaling_policy *policy)
{
    struct policy_entry *entry = report_find(reports, policy->id);
    return entry && as_str_equal(policy->uid, entry->uid) ? entry : NULL;
}

void as_policy_reports_show(const struct as_policy_reports *reports,
                            const struct as_scaling_policy *policy, const struct as_view *view,
                            const struct as_policy_reader *reader, as_policy_visit_fn *visit,
                            void *context)
{
    struct policy_entry *entry = report_find_shown(reports, policy);
    AS_CLEANUP(policy_status_deinit) struct policy_status status = {0};
    char value[AS_NUMBER_SIZE], goal[AS_NUMBER_SIZE], locked[2 * AS_RFC3339_SIZE + 32];
    char reason[AS_POLICY_WORD_SIZE], decided_at[AS_RFC3339_SIZE];
    if (!entry)
        return;
    entry_judge(entry, policy, view, reader, &status);
    const struct as_target_view *target = &status.target;
    const bool is_decided = report_is_decided(&status);
    const char *rule = is_decided ? target->last_rule : status.shown->rule;
    AS_CLEANUP(as_free_p) char *address = status.config ? report_make_address(status.config) : NULL;
    struct as_schedule_bounds bounds = {.min = -1, .max = -1};
    if (status.config)
        bounds = as_target_config_get_bounds(status.config, view->wall);
    if (is_decided)
        print_seconds(target->last_at, decided_at);
    visit(context, &(struct as_policy_view){
                       .policy = policy,
                       .target = address,
                       .target_id = entry->target,
                       .size = (int32_t)report_get_size(&status),
                       .desired = (int32_t)report_get_desired(&status),
                       .min = bounds.min,
                       .max = bounds.max,
                       .value = report_find_value(&status, value),
                       .goal = rule_print_goal(report_find_last_rule(&status), goal) ? goal : NULL,
                       .locked = report_print_locks(&status, locked) ? locked : NULL,
                       .decision = is_decided ? target->last_decision : NULL,
                       .decided_at = is_decided ? decided_at : NULL,
                       .reason = is_decided ? as_policy_spell(
                                                  as_reason_get_word(target->last_reason), reason)
                                            : status.shown->reason,
                       .rule = rule ? get_rule_name(&status, rule) : NULL,
                       .is_judged = !as_str_is_empty(policy->message),
                       .ready = report_show_condition(&status, CONDITION_READY),
                       .active = report_show_condition(&status, CONDITION_SCALING_ACTIVE),
                       .limited = report_show_condition(&status, CONDITION_SCALING_LIMITED),
                       .blocked = report_show_condition(&status, CONDITION_BLOCKED),
                       .is_paused = report_is_paused(&status),
                   });
}

void as_policy_reports_write(const struct as_policy_reports *reports,
                             const struct as_scaling_policy *policy, const struct as_view *view,
                             const struct as_policy_reader *reader, struct as_json_writer *json)
{
    struct policy_entry *entry = report_find_shown(reports, policy);
    AS_CLEANUP(policy_status_deinit) struct policy_status status = {0};
    if (!entry || as_str_is_empty(policy->message)) {
        as_json_write_null(json);
        return;
    }
    entry_judge(entry, policy, view, reader, &status);
    report_write_status(json, &status);
}
