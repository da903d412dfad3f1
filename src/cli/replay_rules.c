/*
 * `alertscaler replay --rules`: runs the log's notifications through a simulation of the engine
 * under other rules, and compares with the log's actions.
 *
 * The log has the inputs of a decision only after the notification that caused it. So records wait
 * for LOOK_AHEAD_US of the log's time and are then played by effective time: a decision's values
 * count from LOOK_AHEAD_US before it, but not before the target's previous decision. No
 * notification causes the decisions of `always` rules: their values count from the time of the
 * decision. Memory grows only with the records of that time, and with the number of targets and
 * alerts.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/tree.h>
#include <jansson.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/log/record.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/model/template.h>
#include <alertscaler/rules/settings.h>
#include <alertscaler/tools/record_text.h>
#include <alertscaler/tools/simulation.h>

#include <alertscaler/rules/config.h>

#include "cli.h"
#include "comparison.h"
#include "log_reader.h"

struct replay_scopes { /* borrows the settings */
    struct as_scope *items;
    size_t count;
};

struct replay_reports;

struct replay_values;

struct item { /* a waiting record */
    RB_ENTRY(item) by_time;
    int64_t at;
    uint64_t order;
    bool is_foreign; /* decision: somebody else changed the size */
    bool is_always;  /* decision: only its values for `always` rules, at its own time */
    json_t *record;
    struct as_decide_document *document; /* of a decision that observed nodes; else NULL */
};

RB_HEAD(item_tree, item);

struct logged { /* a target in the log */
    UT_hash_handle hh;
    char *id, *key;
    int64_t decided; /* last time; INT64_MIN: never */
    int32_t size;    /* the log's latest */
    int32_t first;   /* found by reading ahead; -1: unknown */
    bool is_known;   /* to the comparison */
};

struct replay {
    const struct as_args *args;
    const char *approvals; /* --approvals */
    struct as_config *config;
    struct replay_scopes scopes;
    struct as_simulation *simulation;
    struct replay_values *values;
    struct replay_reports *reports;
    struct comparison *comparison;
    struct item_tree waiting;
    size_t waiting_count;
    struct logged *targets;
    uint64_t order, notifications, unknown_repeats, silenced, cut, foreign, forbidden;
    size_t unknown;      /* targets whose first size is not found yet */
    int64_t first, last; /* times of records */
    uint64_t clock_changes;
    int64_t shift; /* added to the log's times after a clock change */
    bool is_started;
    const struct log_line *line; /* that is read now */
    json_t *warnings;
    struct as_error *error;
    int status;
};

/* --- the scopes of a configuration's credentials, without their secrets --- */

static void replay_add(struct replay_scopes *scopes, const char *name,
                       const struct as_access_settings *access)
{
    scopes->items[scopes->count++] = (struct as_scope){
        .credential = name,
        .rules = access->rules,
        .rule_count = access->rule_count,
        .targets = access->targets,
        .target_count = access->target_count,
    };
}

static struct replay_scopes replay_scopes_make(const struct as_receiver_settings *settings)
{
    const struct as_token_review_settings *review = &settings->token_review;
    const size_t count = settings->token_count + settings->user_count +
                         settings->certificate_count + settings->hmac_count + review->allow_count +
                         1;
    struct replay_scopes scopes = {.items = as_xcalloc(count + 1, sizeof(*scopes.items))};
    for (size_t i = 0; i < settings->token_count; i++)
        replay_add(&scopes, settings->tokens[i].name, &settings->tokens[i].access);
    for (size_t i = 0; i < settings->user_count; i++)
        replay_add(&scopes, settings->users[i].name, &settings->users[i].access);
    for (size_t i = 0; i < settings->certificate_count; i++)
        replay_add(&scopes, settings->certificates[i].name, &settings->certificates[i].access);
    for (size_t i = 0; i < settings->hmac_count; i++)
        replay_add(&scopes, settings->hmac[i].name, &settings->hmac[i].access);
    for (size_t i = 0; i < review->allow_count; i++)
        replay_add(&scopes, review->allow[i].name, &review->allow[i].access);
    if (settings->proxy.group_count > 0)
        replay_add(&scopes, AS_SCOPE_ALL_PROXIED, &(struct as_access_settings){0});
    return scopes;
}

static void replay_scopes_deinit(struct replay_scopes *scopes)
{
    free(scopes->items);
    *scopes = (struct replay_scopes){.count = 0};
}

/* Users of a web configuration that `receiver.users` does not name are unknown. */
static bool replay_scopes_know(const struct replay_scopes *scopes, const char *credential)
{
    const char *name =
        as_str_starts_with(credential, AS_SCOPE_PROXIED) ? AS_SCOPE_ALL_PROXIED : credential;
    for (size_t i = 0; i < scopes->count; i++) {
        if (strcmp(scopes->items[i].credential, name) == 0)
            return true;
    }
    return false;
}

/* --- reports of firing alerts without a notification --- */

/*
 * They came from Alertmanager's list, and only the decisions that used them are in the log. The
 * next step down waits for such a report. There is one entry for each open incident of the log.
 */

struct reported {
    UT_hash_handle hh;
    char *fingerprint;
    json_t *opened;    /* its record */
    as_wall_time last; /* its last report */
};

struct replay_reports {
    struct reported *incidents;
};

static struct replay_reports *replay_reports_new(void)
{
    return as_xcalloc(1, sizeof(struct replay_reports));
}

static struct reported *replay_find(const struct replay_reports *reports, const char *fingerprint)
{
    struct reported *found;

    HASH_FIND_STR(reports->incidents, fingerprint, found);
    return found;
}

static void replay_forget(struct replay_reports *reports, struct reported *incident)
{
    HASH_DEL(reports->incidents, incident);
    json_decref(incident->opened);
    free(incident->fingerprint);
    free(incident);
}

static struct replay_reports *replay_reports_free(struct replay_reports *reports)
{
    struct reported *incident, *next;

    if (!reports)
        return NULL;
    HASH_ITER (hh, reports->incidents, incident, next)
        replay_forget(reports, incident);
    free(reports);
    return NULL;
}

/* Call in the log's order, for each incident's record and each notification, which is a report
 * too. */
static void replay_reports_note_incident(struct replay_reports *reports, json_t *record)
{
    const char *event = as_record_get_text(record, "event");
    const bool opens = strcmp(event, "opened") == 0;
    struct reported *incident = replay_find(reports, as_record_get_text(record, "fingerprint"));
    as_wall_time at;

    if (strcmp(event, "silenced") == 0 || strcmp(event, "unsilenced") == 0)
        return;
    if (incident)
        replay_forget(reports, incident);
    if (!opens || as_record_get_time(record, &at, NULL) != 0)
        return;
    incident = as_xcalloc(1, sizeof(*incident));
    incident->fingerprint = as_xstrdup(as_record_get_text(record, "fingerprint"));
    incident->opened = json_incref(record);
    incident->last = at;
    HASH_ADD_KEYPTR(hh, reports->incidents, incident->fingerprint, strlen(incident->fingerprint),
                    incident);
}

static void replay_reports_note_notification(struct replay_reports *reports, const json_t *record)
{
    const json_t *alert;
    as_wall_time at;
    size_t i;

    if (as_record_get_time(record, &at, NULL) != 0)
        return;
    json_array_foreach(json_object_get(record, "alerts"), i, alert)
    {
        struct reported *incident = replay_find(reports, as_record_get_text(alert, "fingerprint"));
        if (incident && at.us > incident->last.us)
            incident->last = at;
    }
}

/* The opening record of the proposal's incident, if the proposal names a report that did not come
 * in an earlier notification; else NULL. Valid until the incident's next record. */
static const json_t *replay_reports_remove(struct replay_reports *reports, const json_t *proposal)
{
    const char *reported = as_record_get_text(proposal, "reported");
    struct reported *incident = replay_find(reports, as_record_get_text(proposal, "incident"));
    as_wall_time at;

    if (!incident || as_wall_time_parse(reported, strlen(reported), &at) != 0 ||
        at.us <= incident->last.us)
        return NULL;
    incident->last = at;
    return incident->opened;
}

/* --- the log's values for the tried rules --- */

/*
 * Each source and guard of the rule set is replaced by a query of our own, answered with the last
 * logged value for a rule of the same name and the same incident. An annotation that only replayed
 * alerts have puts the incident into a query's text. An `always` rule has no alert: its query is
 * answered for each logged incident, so that it may replace a rule with `match`. Values are those
 * of the log: they do not react to a different size.
 */

#define INCIDENT "alertscaler_incident"

struct replay_values {
    const struct as_ruleset *ruleset;
    const struct as_rule **by_name; /* sorted */
    bool *is_needed, *is_seen;      /* one per rule */
    json_t **first; /* of `always` rules: the first proposal of the log; NULL: not found */
    size_t first_unknown;
    bool has_always; /* an `always` rule needs values */
};

static struct as_template *replay_make_template(const char *text)
{
    struct as_template *template = NULL;

    if (as_template_new(text, &template, NULL) != 0)
        abort(); /* a rule's name has no braces */
    return template;
}

static bool replace_source(struct as_rule *rule)
{
    struct as_source *source = &rule->source;
    AS_CLEANUP(as_free_p)
    char *text =
        as_xasprintf("%s \"%s\"", rule->name,
                     rule->is_always ? AS_INCIDENT_ALWAYS : "{{ .Annotations." INCIDENT " }}");

    if (source->kind != AS_SOURCE_QUERY && source->kind != AS_SOURCE_ANNOTATION)
        return false;
    source->kind = AS_SOURCE_QUERY;
    source->query = as_template_free(source->query);
    source->query = replay_make_template(text);
    return true;
}

static int replay_compare_rules(const void *left, const void *right)
{
    const struct as_rule *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Changes the rule set, which must outlive the result; values from labels stay unchanged. */
static struct replay_values *replay_values_new(struct as_ruleset *ruleset)
{
    struct replay_values *values = as_xcalloc(1, sizeof(*values));

    values->ruleset = ruleset;
    values->by_name = as_xcalloc(ruleset->rule_count + 1, sizeof(*values->by_name));
    values->is_needed = as_xcalloc(ruleset->rule_count + 1, sizeof(bool));
    values->is_seen = as_xcalloc(ruleset->rule_count + 1, sizeof(bool));
    values->first = as_xcalloc(ruleset->rule_count + 1, sizeof(json_t *));
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        struct as_rule *rule = ruleset->rules[i];
        values->by_name[i] = rule;
        values->is_needed[i] = replace_source(rule);
        values->first_unknown += values->is_needed[i] && rule->is_always && rule->enabled;
        values->has_always = values->first_unknown > 0;
        if (rule->guard_kind != AS_GUARD_QUERY)
            continue;
        AS_CLEANUP(as_free_p) char *text = as_xasprintf("guard %s", rule->name);
        rule->guard = as_template_free(rule->guard);
        rule->guard = replay_make_template(text);
    }
    qsort(values->by_name, ruleset->rule_count, sizeof(*values->by_name), replay_compare_rules);
    return values;
}

static struct replay_values *replay_values_free(struct replay_values *values)
{
    if (values) {
        for (size_t i = 0; i < values->ruleset->rule_count; i++)
            json_decref(values->first[i]);
        free(values->first);
        free(values->by_name);
        free(values->is_needed);
        free(values->is_seen);
        free(values);
    }
    return NULL;
}

static void set_guard(const struct as_rule *rule, struct as_simulation *simulation, bool passes)
{
    AS_CLEANUP(as_free_p) char *text = as_xasprintf("guard %s", rule->name);
    const struct as_query_result result = {.error = passes ? NULL : "query returned no data",
                                           .value = 1};

    if (rule->guard_kind == AS_GUARD_QUERY)
        as_simulation_set_query(simulation, text, &result);
}

static const struct as_rule *replay_find_rule(const struct replay_values *values, const char *name)
{
    const struct as_rule wanted = {.name = (char *)(uintptr_t)name}, *key = &wanted;
    const struct as_rule **found = bsearch(&key, values->by_name, values->ruleset->rule_count,
                                           sizeof(*values->by_name), replay_compare_rules);
    return found ? *found : NULL;
}

static as_maybe_time get_time(const json_t *object, const char *key)
{
    const char *text = as_record_get_text(object, key);
    as_maybe_time time = {0};

    time.set = as_wall_time_parse(text, strlen(text), &time.at) == 0;
    return time;
}

/* --- samples --- */

static int replay_compare_samples(const void *left, const void *right)
{
    return strcmp(((const struct as_sample *)left)->pod, ((const struct as_sample *)right)->pod);
}

static void set_samples(struct as_simulation *simulation, const char *text, const json_t *list)
{
    const size_t count = json_array_size(list);
    struct as_sample *samples = as_xcalloc(count + 1, sizeof(*samples));
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        samples[i] = (struct as_sample){
            .pod = as_record_get_text(item, "pod"),
            .value = json_number_value(json_object_get(item, "value")),
            .at = get_time(item, "at"),
            .window_us =
                (int64_t)(json_number_value(json_object_get(item, "window")) * AS_US_PER_S),
        };
    }
    qsort(samples, count, sizeof(*samples), replay_compare_samples);
    as_simulation_set_query(
        simulation, text,
        &(struct as_query_result){.samples = samples,
                                  .sample_count = count,
                                  .error = count > 0 ? NULL : "query returned no data"});
    free(samples);
}

/* Only for a rule that is an `always` rule, or only for one that is not. */
static void replay_apply_proposal(struct replay_values *values, struct as_simulation *simulation,
                                  const json_t *proposal, bool is_always)
{
    const char *rule = as_record_get_text(proposal, "rule"),
               *error = as_record_get_text(proposal, "error");
    const json_t *value = json_object_get(proposal, "value");
    const json_t *samples = json_object_get(proposal, "samples");
    const struct as_rule *known = replay_find_rule(values, rule);
    const size_t number = known ? known->number : 0;
    const char *incident = as_record_get_text(proposal, "incident");

    if (!known || !values->is_needed[number] || known->is_always != is_always ||
        (!is_always && strcmp(incident, AS_INCIDENT_ALWAYS) == 0))
        return;
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("%s \"%s\"", rule, is_always ? AS_INCIDENT_ALWAYS : incident);
    if (json_is_array(samples))
        set_samples(simulation, text, samples);
    else if (json_is_number(value))
        as_simulation_set_query(simulation, text,
                                &(struct as_query_result){.value = json_number_value(value)});
    else if (*error)
        as_simulation_set_query(simulation, text, &(struct as_query_result){.error = error});
    else
        return; /* it needed no value then */
    values->is_seen[number] = true;
}

/* Until its first decision in the log, an `always` rule has the value of that decision. */
static void replay_values_note_first(struct replay_values *values, const json_t *decision)
{
    json_t *proposal;
    size_t i;

    json_array_foreach(json_object_get(json_object_get(decision, "input"), "proposals"), i,
                       proposal)
    {
        const struct as_rule *rule = replay_find_rule(values, as_record_get_text(proposal, "rule"));
        const size_t number = rule ? rule->number : 0;
        if (!rule || !rule->is_always || !rule->enabled || !values->is_needed[number] ||
            values->first[number])
            continue;
        values->first[number] = json_incref(proposal);
        values->first_unknown--;
    }
}

/* Guards allow everything until a decision says otherwise. */
static void replay_values_begin(struct replay_values *values, struct as_simulation *simulation)
{
    for (size_t i = 0; i < values->ruleset->rule_count; i++) {
        set_guard(values->ruleset->rules[i], simulation, true);
        if (values->first[i])
            replay_apply_proposal(values, simulation, values->first[i], true);
    }
}

/* --- pods --- */

static enum as_pod_phase replay_get_phase(const char *word)
{
    static const char *const words[] = {
        [AS_POD_PENDING] = "Pending",     [AS_POD_RUNNING] = "Running",
        [AS_POD_SUCCEEDED] = "Succeeded", [AS_POD_FAILED] = "Failed",
        [AS_POD_UNKNOWN] = "Unknown",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(words[i], word) == 0)
            return (enum as_pod_phase)i;
    }
    return AS_POD_RUNNING;
}

static double get_resource(const json_t *pod, const char *name)
{
    const json_t *value = json_object_get(json_object_get(pod, "resources"), name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static enum as_pod_owner replay_get_owner(const char *word)
{
    return as_str_equal(word, "other")  ? AS_POD_OF_OTHER
           : as_str_equal(word, "gone") ? AS_POD_OF_GONE
                                        : AS_POD_OF_TARGET;
}

/* Those that a rule of the time named. */
static void replay_read_containers(const json_t *list, struct as_pod_seen *pod)
{
    struct as_container_seen *containers =
        as_xcalloc(json_array_size(list) + 1, sizeof(*containers));
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const double cpu = get_resource(item, "cpu"), memory = get_resource(item, "memory");
        containers[i] = (struct as_container_seen){
            .name = as_record_get_text(item, "name"),
            .requests = {[AS_RESOURCE_CPU] = cpu, [AS_RESOURCE_MEMORY] = memory},
            .limits = {[AS_RESOURCE_CPU] = cpu, [AS_RESOURCE_MEMORY] = memory},
        };
    }
    pod->containers = containers;
    pod->container_count = json_array_size(list);
}

/* The log has what the rule's `of` selected, requests or limits: the value is used for both. */
static struct as_pod_seen replay_read_pod(const json_t *item)
{
    const json_t *ready = json_object_get(item, "ready");
    const double cpu = get_resource(item, "cpu"), memory = get_resource(item, "memory");
    return (struct as_pod_seen){
        .name = as_record_get_text(item, "name"),
        .phase = replay_get_phase(as_record_get_text(item, "phase")),
        .ready = json_is_null(ready)    ? AS_UNKNOWN
                 : json_is_false(ready) ? AS_FALSE
                                        : AS_TRUE,
        .deleting = json_is_true(json_object_get(item, "deleting")),
        .owner = replay_get_owner(as_record_get_text(item, "owner")),
        .start_time = get_time(item, "start_time"),
        .ready_since = get_time(item, "ready_since"),
        .requests = {[AS_RESOURCE_CPU] = cpu, [AS_RESOURCE_MEMORY] = memory},
        .limits = {[AS_RESOURCE_CPU] = cpu, [AS_RESOURCE_MEMORY] = memory},
    };
}

static int replay_compare_pods(const void *left, const void *right)
{
    return strcmp(((const struct as_pod_seen *)left)->name,
                  ((const struct as_pod_seen *)right)->name);
}

static void replay_apply_pods(struct as_simulation *simulation, const char *target,
                              const json_t *list)
{
    const size_t count = json_array_size(list);
    struct as_pod_seen *pods = as_xcalloc(count + 1, sizeof(*pods));
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        pods[i] = replay_read_pod(item);
        replay_read_containers(json_object_get(item, "containers"), &pods[i]);
    }
    qsort(pods, count, sizeof(*pods), replay_compare_pods);
    as_simulation_set_pods(simulation, target, pods, count);
    for (i = 0; i < count; i++)
        free((void *)(uintptr_t)pods[i].containers);
    free(pods);
}

/* Rules of today may ask for nodes where the decision of the log did not. */
static void replay_apply_nodes(struct as_simulation *simulation, const char *target,
                               const struct as_decide_document *document)
{
    const struct as_nodes_seen unknown = {.error = "the log has no nodes for this decision"};

    as_simulation_set_nodes(simulation, target, document ? document->input.nodes : &unknown);
}

/* As the decision saw it; decisions of another `rollout` have no such row. */
static void replay_apply_rollout(struct as_simulation *simulation, const char *target,
                                 const json_t *forbidden)
{
    const char *holder = as_holder_get_word(AS_HOLDER_ROLLOUT);
    enum as_rollout_progress progress = AS_PROGRESS_NONE;
    const json_t *row;
    size_t i;

    json_array_foreach(forbidden, i, row)
    {
        if (strcmp(as_record_get_text(row, "by"), holder) == 0)
            progress =
                *as_record_get_text(row, "name") ? AS_PROGRESS_UNKNOWN : AS_PROGRESS_UNDER_WAY;
    }
    as_simulation_set_rollout(simulation, target, progress);
}

/* Takes values, pods and the guards' results from a logged decision. */
static void replay_values_apply(struct replay_values *values, struct as_simulation *simulation,
                                const json_t *decision, const struct as_decide_document *document)
{
    const json_t *input = json_object_get(decision, "input"), *item;
    const json_t *output = json_object_get(decision, "output");
    const json_t *pods = json_object_get(json_object_get(input, "observed"), "pods");
    size_t i;

    if (json_is_array(pods))
        replay_apply_pods(simulation, as_record_get_text(decision, "target"), pods);
    replay_apply_nodes(simulation, as_record_get_text(decision, "target"), document);
    replay_apply_rollout(simulation, as_record_get_text(decision, "target"),
                         json_object_get(input, "forbidden"));
    json_array_foreach(json_object_get(input, "proposals"), i, item)
        replay_apply_proposal(values, simulation, item, false);
    const struct as_rule *rule = replay_find_rule(values, as_record_get_text(output, "rule"));
    if (rule && strcmp(as_record_get_text(output, "direction"), "down") == 0)
        set_guard(rule, simulation,
                  !json_is_true(json_object_get(json_object_get(input, "flags"), "guarded")));
}

static void replay_values_apply_always(struct replay_values *values,
                                       struct as_simulation *simulation, const json_t *decision)
{
    const json_t *proposals = json_object_get(json_object_get(decision, "input"), "proposals");
    const json_t *item;
    size_t i;

    json_array_foreach(proposals, i, item) replay_apply_proposal(values, simulation, item, true);
}

/* The annotations of a replayed alert, which the log lacks. */
static struct as_labels *replay_values_make_annotations(const char *incident)
{
    const struct as_label pair = {INCIDENT, incident};
    struct as_labels *labels = NULL;

    if (as_labels_new(&pair, 1, &labels) != 0)
        abort(); /* one small pair without duplicates */
    return labels;
}

/* Calls `warn` for each rule whose values the log lacks. */
static void replay_values_visit_missing(const struct replay_values *values,
                                        void (*replay_warn)(void *context, const char *text),
                                        void *context)
{
    for (size_t i = 0; i < values->ruleset->rule_count; i++) {
        if (!values->is_needed[i] || values->is_seen[i] || !values->ruleset->rules[i]->enabled)
            continue;
        AS_CLEANUP(as_free_p)
        char *text = as_xasprintf("rule %s: the log has no values of it (an annotation or a query "
                                  "of a rule of that name): it proposes nothing",
                                  values->ruleset->rules[i]->name);
        replay_warn(context, text);
    }
}

/* --- a notification from its record --- */

/*
 * The log has no annotations, URLs and ends of alerts; a resolved alert ended at the time of its
 * record.
 */

#define YEAR_1_US INT64_C(-62135596800000000) /* Alertmanager's value for no end */

static struct as_labels *replay_make_labels(json_t *object)
{
    const size_t count = json_object_size(object);
    struct as_label *pairs = as_xcalloc(count + 1, sizeof(*pairs));
    struct as_labels *labels = NULL;
    const char *key;
    json_t *value;
    size_t used = 0;

    json_object_foreach(object, key, value)
    {
        if (json_is_string(value))
            pairs[used++] = (struct as_label){key, json_string_value(value)};
    }
    if (as_labels_new(pairs, used, &labels) != 0 && as_labels_new(NULL, 0, &labels) != 0)
        labels = NULL; /* impossible: 16 MiB of labels are never accepted */
    as_free_p(&pairs);
    return labels;
}

static void fill_alert(struct as_alert *alert, const json_t *record, bool is_firing,
                       as_wall_time at)
{
    const char *fingerprint = as_record_get_text(record, "fingerprint");
    const char *digest = as_record_get_text(record, "digest");
    const char *starts_at = as_record_get_text(record, "startsAt");

    alert->status = is_firing ? AS_ALERT_FIRING : AS_ALERT_RESOLVED;
    alert->labels = replay_make_labels(json_object_get(record, "labels"));
    alert->annotations = replay_values_make_annotations(as_record_get_incident(record));
    if (as_number_parse_u64_hex(fingerprint, strlen(fingerprint), &alert->fingerprint) != 0)
        alert->fingerprint = as_labels_get_fingerprint(alert->labels);
    if (!as_digest_parse(digest, strlen(digest), &alert->digest)) /* from an earlier version */
        alert->digest = as_labels_get_digest(alert->labels);
    if (as_wall_time_parse(starts_at, strlen(starts_at), &alert->starts_at) != 0)
        alert->starts_at = at;
    alert->ends_at = is_firing ? (as_wall_time){YEAR_1_US} : at;
}

static bool replay_is_forbidden(const json_t *alert)
{
    return strcmp(as_record_get_text(alert, "outcome"), as_reason_get_word(AS_REASON_FORBIDDEN)) ==
           0;
}

/* Number of its forbidden alerts. */
static size_t replay_notification_count_forbidden(const json_t *record)
{
    const json_t *alert;
    size_t i, count = 0;

    json_array_foreach(json_object_get(record, "alerts"), i, alert) count +=
        replay_is_forbidden(alert);
    return count;
}

/*
 * From a `notification`; or from an `incident` that no notification opened or closed, as a
 * notification with its only alert. Missing members are empty. A known credential's permissions are
 * checked again; an unknown one is left out, with the alerts that it was forbidden to send.
 */
static struct as_notification *replay_notification_make(const json_t *record,
                                                        const struct replay_scopes *scopes)
{
    struct as_notification *notification = as_xcalloc(1, sizeof(*notification));
    const json_t *alerts = json_object_get(record, "alerts");
    const bool is_incident = !json_is_array(alerts);
    const size_t count = is_incident ? 1 : json_array_size(alerts);
    const char *credential = is_incident ? "" : as_record_get_text(record, "credential");
    const bool is_known = replay_scopes_know(scopes, credential);
    as_wall_time at = {0};

    if (as_record_get_time(record, &at, NULL) != 0)
        at = (as_wall_time){0};
    memcpy(notification->id, as_record_get_text(record, "id"),
           strnlen(as_record_get_text(record, "id"), AS_ULID_SIZE - 1));
    notification->receiver = as_xstrdup(as_record_get_text(record, "receiver"));
    notification->group_key = as_xstrdup(as_record_get_text(record, "groupKey"));
    notification->reason = as_xstrdup(as_record_get_text(record, "notification_reason"));
    notification->remote = as_xstrdup("");
    notification->credential = as_xstrdup(is_known ? credential : "");
    notification->traceparent = as_xstrdup("");
    notification->alerts = as_xcalloc(count + 1, sizeof(*notification->alerts));
    for (size_t i = 0; i < count; i++) {
        const json_t *alert = is_incident ? record : json_array_get(alerts, i);
        const bool is_firing = is_incident
                                   ? strcmp(as_record_get_text(record, "event"), "opened") == 0
                                   : strcmp(as_record_get_text(alert, "status"), "firing") == 0;
        if (strcmp(as_record_get_text(alert, "outcome"), as_reason_get_word(AS_REASON_INVALID)) ==
            0)
            continue;
        if (is_known || is_incident || !replay_is_forbidden(alert))
            fill_alert(&notification->alerts[notification->alert_count++], alert, is_firing, at);
    }
    return notification;
}

static bool is_cut(json_t *labels)
{
    const char *key;
    json_t *value;

    json_object_foreach(labels, key, value)
    {
        const size_t size = json_string_length(value), end = strlen(AS_RECORD_CUT);
        if (size > end && strcmp(json_string_value(value) + size - end, AS_RECORD_CUT) == 0)
            return true;
    }
    return false;
}

/* Whether the log has cut a label. */
static bool replay_notification_is_cut(const json_t *record)
{
    const json_t *alert;
    size_t i;

    json_array_foreach(json_object_get(record, "alerts"), i, alert)
    {
        if (is_cut(json_object_get(alert, "labels")))
            return true;
    }
    return false;
}

/* --- the result --- */

static void replay_warn(void *context, const char *text)
{
    struct replay *replay = context;
    json_array_append_new(replay->warnings, json_string(text));
}

static void warn_of_limits(struct replay *replay)
{
    const struct {
        uint64_t count;
        const char *before, *after;
    } limits[] = {
        {replay->silenced, "alerts were silenced ",
         " times: a replay knows no silences, they count as firing"},
        {replay->clock_changes, "the log's clock was set ",
         " times: times behind it are counted from where they were"},
        {replay->cut, "",
         " notifications have labels that the log has cut: rules may not match them as they did"},
        {replay->unknown_repeats, "",
         " repeats are left out: the records with their details are not in these files"},
        {replay->forbidden, "",
         " alerts were forbidden to their credential, whose rights are not known here: they do "
         "nothing under the new rules either"},
        {replay->foreign, "sizes were changed by others ",
         " times: the same sizes were set under the new rules"},
    };

    replay_values_visit_missing(replay->values, replay_warn, replay);
    for (size_t i = 0; i < AS_ARRAY_SIZE(limits); i++) {
        if (limits[i].count == 0)
            continue;
        AS_CLEANUP(as_free_p)
        char *text =
            as_xasprintf("%s%" PRIu64 "%s", limits[i].before, limits[i].count, limits[i].after);
        replay_warn(replay, text);
    }
}

/* Prints the comparison, with what it could not know. 0; or a negative errno with an error. */
static int replay_rules_report(struct replay *replay, struct as_error *error)
{
    warn_of_limits(replay);
    const struct comparison_report report = {
        .args = replay->args,
        .rules = as_args_get(replay->args, "rules"),
        .from = {replay->first},
        .to = {replay->last},
        .notifications = replay->notifications,
        .warnings = replay->warnings,
        .approvals = replay->approvals,
    };
    return comparison_print(replay->comparison, &report, error);
}

/* --- the command --- */

/* Longer than reading a size and querying Prometheus takes. */
#define LOOK_AHEAD_US (10 * AS_US_PER_S)

/* Longer than any pause in a log; a clock that starts in 1970 jumps further. */
#define GAP_MAX_US (366 * AS_US_PER_DAY)

#define WAITING_MAX 100000 /* records; with more, the look-ahead is shorter */

static int replay_compare_items(const struct item *a, const struct item *b)
{
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

RB_GENERATE_INTERNAL(item_tree, item, by_time, replay_compare_items, __attribute__((unused)) static)

static void free_item(struct item *item)
{
    json_decref(item->record);
    as_decide_document_free(item->document);
    free(item);
}

/* The log's spelling may differ from the rules'. */
static struct logged *find_logged(const struct replay *replay, const char *id)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    struct logged *target;

    HASH_FIND_STR(replay->targets, key, target);
    return target;
}

static struct logged *get_logged(struct replay *replay, const char *id)
{
    struct logged *target = find_logged(replay, id);

    if (target)
        return target;
    target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(id);
    target->key = as_target_key_make(id);
    target->decided = INT64_MIN;
    target->first = -1;
    HASH_ADD_KEYPTR(hh, replay->targets, target->key, strlen(target->key), target);
    return target;
}

/* --- what the simulation says --- */

static void replay_on_decision(void *context, as_wall_time at,
                               const struct as_decision_record *record)
{
    struct replay *replay = context;
    comparison_set_size(replay->comparison, COMPARISON_AFTER, record->target, record->target_name,
                        at, record->output->replicas, COMPARISON_LIMIT_OF_RULES);
    comparison_set_unit(replay->comparison, record->target, record->unit);
}

static void replay_on_action(void *context, as_wall_time at, const struct as_action_record *record)
{
    struct replay *replay = context;
    if (!record->decision || record->outcome != AS_REASON_APPLIED)
        return;
    comparison_set_size(replay->comparison, COMPARISON_AFTER, record->target, record->target_name,
                        at, record->to, COMPARISON_LIMIT_OF_RULES);
    comparison_count_action(replay->comparison, COMPARISON_AFTER, record->target,
                            record->target_name, record->to > record->from);
}

static void replay_on_approval(void *context, as_wall_time at,
                               const struct as_approval_record *record)
{
    const struct replay *replay = context;
    comparison_note_request(replay->comparison, at, record);
}

static void replay_on_incident(void *context, as_wall_time at,
                               const struct as_incident_record *record)
{
    struct replay *replay = context;
    const char *alert = as_labels_get(record->labels, "alertname");
    const bool opens = record->event == AS_INCIDENT_OPENED;

    if (record->event == AS_INCIDENT_SILENCED || record->event == AS_INCIDENT_UNSILENCED)
        return;
    for (size_t i = 0; i < record->target_count; i++)
        comparison_set_alert(replay->comparison, record->targets[i].target, alert, at, opens);
}

/* Finds the first size of targets that the engine knows at the start, and the first values of
 * `always` rules: the engine would look again much later at a target it could not find. */
static int replay_note_first_size(void *context, const struct log_line *line, json_t *record,
                                  struct as_error *error)
{
    struct replay *replay = context;
    const json_t *input = json_object_get(record, "input");
    const char *id = as_record_get_text(record, "target");
    struct logged *target;
    int32_t size;

    replay_values_note_first(replay->values, record);
    target = find_logged(replay, id);
    if (target && target->first < 0 &&
        as_record_get_size(json_object_get(input, "observed"), "replicas", &size)) {
        target->first = size;
        replay->unknown--;
    }
    return replay->unknown + replay->values->first_unknown == 0;
}

static bool is_decision(void *context, const struct log_line *line)
{
    return log_line_has(line, "\"kind\":\"decision\"");
}

static int find_first_sizes(struct replay *replay, const struct log_files *files,
                            struct as_error *error)
{
    const struct as_ruleset *ruleset = replay->config->ruleset;
    const struct log_visitor visitor = {
        .wants = is_decision, .on_record = replay_note_first_size, .context = replay};
    AS_CLEANUP(as_labels_free_p) struct as_labels *none = replay_values_make_annotations("");

    for (size_t i = 0; i < ruleset->target_count; i++) {
        AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
        if (!ruleset->targets[i]->is_templated &&
            as_target_ref_new(ruleset->targets[i], none, none, &ref, NULL) == AS_TARGET_OK) {
            (void)get_logged(replay, ref->id);
            replay->unknown++;
        }
    }
    const int status =
        replay->unknown + replay->values->first_unknown > 0 ? log_walk(files, &visitor, error) : 0;
    return status < 0 ? status : 0;
}

static void set_first_sizes(struct replay *replay)
{
    struct logged *target, *next;

    HASH_ITER (hh, replay->targets, target, next) {
        if (target->first >= 0)
            as_simulation_set_size(replay->simulation, target->id, target->first);
    }
}

static void replay_start(struct replay *replay, int64_t at)
{
    struct as_engine_config engine = rules_get_engine_config(replay->config);
    engine.scopes = replay->scopes.items;
    engine.scope_count = replay->scopes.count;
    const struct as_simulation_config config = {
        .ruleset = replay->config->ruleset,
        .engine = engine,
        .start = {at},
        .approves = strcmp(replay->approvals, "given") == 0,
        .callbacks = {.decision = replay_on_decision,
                      .action = replay_on_action,
                      .incident = replay_on_incident,
                      .approval = replay_on_approval,
                      .context = replay},
    };
    replay->simulation = as_simulation_new(&config);
    replay_values_begin(replay->values, replay->simulation);
    set_first_sizes(replay);
    replay->status = rules_set_replicas(replay->args, replay->config->ruleset, replay->simulation,
                                        replay->error);
}

/* --- what the log says, in its order --- */

static as_wall_time replay_get_now(const struct replay *replay)
{
    return as_simulation_get_now(replay->simulation);
}

static void replay_notify(struct replay *replay, const json_t *record)
{
    AS_CLEANUP(as_notification_free_p)
    struct as_notification *notification = replay_notification_make(record, &replay->scopes);

    if (notification->alert_count > 0)
        as_simulation_notify(replay->simulation, notification);
}

/* Reports from Alertmanager's list before this decision. */
static void play_reports(struct replay *replay, const json_t *input)
{
    const json_t *proposal;
    size_t i;

    json_array_foreach(json_object_get(input, "proposals"), i, proposal)
    {
        const json_t *opened = replay_reports_remove(replay->reports, proposal);
        if (opened)
            replay_notify(replay, opened);
    }
}

static void play_decision(struct replay *replay, const struct item *item)
{
    const char *id = as_record_get_text(item->record, "target");
    const char *name = as_record_get_text(item->record, "target_name");
    const json_t *input = json_object_get(item->record, "input");
    int32_t size = 0, limit = AS_SIZE_MAX;
    struct logged *target;

    if (item->is_always) {
        replay_values_apply_always(replay->values, replay->simulation, item->record);
        return;
    }
    replay_values_apply(replay->values, replay->simulation, item->record, item->document);
    play_reports(replay, input);
    if (!as_record_get_size(json_object_get(input, "observed"), "replicas", &size))
        return;
    if (!as_record_get_size(json_object_get(input, "target"), "max", &limit))
        limit = AS_SIZE_MAX;
    comparison_set_size(replay->comparison, COMPARISON_BEFORE, id, name, replay_get_now(replay),
                        size, limit);
    comparison_set_unit(replay->comparison, id, as_record_get_text(item->record, "unit"));
    target = find_logged(replay, id);
    const bool is_first = target && !target->is_known;
    if (target)
        target->is_known = true;
    if ((is_first && as_simulation_get_size(replay->simulation, id) < 0) || item->is_foreign)
        as_simulation_set_size(replay->simulation, id, size);
    if (is_first || item->is_foreign)
        comparison_set_size(replay->comparison, COMPARISON_AFTER, id, name, replay_get_now(replay),
                            as_simulation_get_size(replay->simulation, id),
                            COMPARISON_LIMIT_OF_RULES);
}

/* Operators' orders do not depend on the rules. */
static void set_by_hand(struct replay *replay, const char *id, const char *name, int32_t size)
{
    as_simulation_set_size(replay->simulation, id, size);
    comparison_set_size(replay->comparison, COMPARISON_AFTER, id, name, replay_get_now(replay),
                        size, COMPARISON_LIMIT_OF_RULES);
}

static void play_action(struct replay *replay, const struct item *item)
{
    const char *id = as_record_get_text(item->record, "target");
    const char *name = as_record_get_text(item->record, "target_name");
    int32_t from, to;

    if (!as_record_get_size(item->record, "from", &from) ||
        !as_record_get_size(item->record, "to", &to))
        return;
    comparison_set_size(replay->comparison, COMPARISON_BEFORE, id, name, replay_get_now(replay), to,
                        COMPARISON_LIMIT_OF_RULES);
    comparison_count_action(replay->comparison, COMPARISON_BEFORE, id, name, to > from);
    if (*as_record_get_text(item->record, "command") &&
        strcmp(as_record_get_text(item->record, "outcome"), "applied") == 0)
        set_by_hand(replay, id, name, to);
}

static void play_notification(struct replay *replay, const struct item *item)
{
    replay_reports_note_notification(replay->reports, item->record);
    replay_notify(replay, item->record);
}

static void play_incident(struct replay *replay, const struct item *item)
{
    const char *alert = as_record_get_text(json_object_get(item->record, "labels"), "alertname");
    const bool opens = strcmp(as_record_get_text(item->record, "event"), "opened") == 0;
    const json_t *target;
    size_t i;

    json_array_foreach(json_object_get(item->record, "targets"), i, target)
        comparison_set_alert(replay->comparison, as_record_get_text(target, "target"), alert,
                             replay_get_now(replay), opens);
    /* from Alertmanager's list: there was no notification */
    if (json_is_null(json_object_get(item->record, "notification")) &&
        (opens || strcmp(as_record_get_text(item->record, "event"), "closed") == 0))
        replay_notify(replay, item->record);
    replay_reports_note_incident(replay->reports, item->record);
}

/* What a person answered in the log counts for what the same rule asks now. */
static void play_approval(struct replay *replay, const struct item *item)
{
    const char *event = as_record_get_text(item->record, "event");
    const bool is_yes = strcmp(event, "approved") == 0;
    if (is_yes || strcmp(event, "denied") == 0)
        (void)!as_simulation_answer(replay->simulation, as_record_get_text(item->record, "target"),
                                    as_record_get_text(item->record, "rule"), is_yes);
}

static void play(struct replay *replay, const struct item *item)
{
    static const struct {
        const char *kind;
        void (*play)(struct replay *replay, const struct item *item);
    } kinds[] = {{"notification", play_notification},
                 {"decision", play_decision},
                 {"action", play_action},
                 {"incident", play_incident},
                 {"approval", play_approval}};
    const char *kind = as_record_get_text(item->record, "kind");

    if (!replay->simulation)
        replay_start(replay, item->at);
    if (item->at > replay_get_now(replay).us)
        as_simulation_advance(replay->simulation, (as_wall_time){item->at});
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            kinds[i].play(replay, item);
    }
}

/* Plays all records whose effective time is up to `until`. */
static void play_until(struct replay *replay, int64_t until)
{
    struct item *item;

    while ((item = RB_MIN(item_tree, &replay->waiting)) && item->at <= until) {
        RB_REMOVE(item_tree, &replay->waiting, item);
        replay->waiting_count--;
        play(replay, item);
        free_item(item);
    }
}

/* --- the log --- */

static struct item *replay_add_item(struct replay *replay, json_t *record, int64_t at)
{
    struct item *item = as_xcalloc(1, sizeof(*item));

    item->at = at;
    item->order = replay->order++;
    item->record = json_incref(record);
    RB_INSERT(item_tree, &replay->waiting, item);
    replay->waiting_count++;
    return item;
}

/* NULL: of an unknown version. */
static struct as_decide_document *decode_decision(const struct log_line *line)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;

    return as_decision_decode_record(line->text, line->size, &document, &error) ? NULL : document;
}

static void replay_take_decision(struct replay *replay, json_t *record, int64_t at)
{
    struct logged *target = get_logged(replay, as_record_get_text(record, "target"));
    const json_t *observed = json_object_get(json_object_get(record, "input"), "observed");
    const bool is_first = target->decided == INT64_MIN;
    int64_t counts = as_time_add(at, -LOOK_AHEAD_US);
    int32_t size = target->size;

    if (counts < replay->first)
        counts = replay->first;
    if (!is_first && counts <= target->decided)
        counts = target->decided + 1;
    struct item *item = replay_add_item(replay, record, counts < at ? counts : at);
    if (json_object_get(observed, "nodes"))
        item->document = decode_decision(replay->line);
    if (replay->values->has_always)
        replay_add_item(replay, record, at)->is_always = true;
    if (as_record_get_size(observed, "replicas", &size))
        item->is_foreign = !is_first && size != target->size;
    replay->foreign += item->is_foreign;
    target->decided = at;
    target->size = size;
}

static void replay_take_action(struct replay *replay, json_t *record, int64_t at)
{
    struct logged *target = get_logged(replay, as_record_get_text(record, "target"));
    int32_t to;

    if (strcmp(as_record_get_text(record, "outcome"), "applied") != 0 ||
        !as_record_get_size(record, "to", &to))
        return;
    target->size = to;
    replay_add_item(replay, record, at);
}

static void replay_apply_notification(struct replay *replay, json_t *record, int64_t at)
{
    replay->notifications++;
    replay->cut += replay_notification_is_cut(record);
    if (!replay_scopes_know(&replay->scopes, as_record_get_text(record, "credential")))
        replay->forbidden += replay_notification_count_forbidden(record);
    replay_add_item(replay, record, at);
}

static void replay_take_incident(struct replay *replay, json_t *record, int64_t at)
{
    const char *event = as_record_get_text(record, "event");

    if (strcmp(event, "silenced") == 0)
        replay->silenced++;
    else if (strcmp(event, "unsilenced") != 0)
        replay_add_item(replay, record, at);
}

static void replay_apply_approval(struct replay *replay, json_t *record, int64_t at)
{
    if (strcmp(replay->approvals, "logged") == 0)
        replay_add_item(replay, record, at);
}

static int replay_rules_read_record(void *context, const struct log_line *line, json_t *record,
                                    struct as_error *error)
{
    static const struct {
        const char *kind;
        void (*apply)(struct replay *replay, json_t *record, int64_t at);
    } kinds[] = {{"notification", replay_apply_notification},
                 {"decision", replay_take_decision},
                 {"action", replay_take_action},
                 {"incident", replay_take_incident},
                 {"approval", replay_apply_approval}};
    const char *kind = as_record_get_text(record, "kind");
    struct replay *replay = context;
    as_wall_time time;

    int status = as_record_get_time(record, &time, error);
    if (status)
        return status;
    if (!replay->is_started)
        replay->first = replay->last = time.us;
    replay->is_started = true;
    const int64_t at = as_time_add(time.us, replay->shift);
    if (at < replay->last || at - replay->last > GAP_MAX_US) { /* continue from the last time */
        replay->shift = as_time_add(replay->last, -time.us);
        replay->clock_changes++;
    }
    replay->last = time.us + replay->shift;
    replay->line = line;
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            kinds[i].apply(replay, record, replay->last);
    }
    play_until(replay, replay->last - LOOK_AHEAD_US);
    if (replay->waiting_count >= WAITING_MAX)
        play_until(replay, RB_MIN(item_tree, &replay->waiting)->at);
    return replay->status;
}

static void replay_clear(struct replay *replay)
{
    struct logged *target, *next;
    struct item *item;

    while ((item = RB_MIN(item_tree, &replay->waiting))) {
        RB_REMOVE(item_tree, &replay->waiting, item);
        free_item(item);
    }
    HASH_ITER (hh, replay->targets, target, next) {
        HASH_DEL(replay->targets, target);
        free(target->id);
        free(target->key);
        free(target);
    }
    json_decref(replay->warnings);
    as_simulation_free(replay->simulation);
    replay_scopes_deinit(&replay->scopes);
    comparison_free(replay->comparison);
    replay_values_free(replay->values);
    replay_reports_free(replay->reports);
    as_config_free(replay->config);
}

static int replay_all(struct replay *replay, const struct log_files *files, struct as_error *error)
{
    const struct log_visitor visitor = {.on_record = replay_rules_read_record,
                                        .context = replay,
                                        .unknown_repeats = &replay->unknown_repeats,
                                        .must_be_whole = true};
    int status = find_first_sizes(replay, files, error);

    if (!status)
        status = log_walk(files, &visitor, error);
    if (status)
        return status;
    play_until(replay, INT64_MAX);
    if (replay->status)
        return replay->status;
    if (replay->simulation)
        as_simulation_advance(replay->simulation, (as_wall_time){replay->last});
    comparison_end(replay->comparison, (as_wall_time){replay->last});
    return replay_rules_report(replay, error);
}

int replay_rules(const struct as_args *args, const struct log_files *files)
{
    struct replay replay = {.args = args,
                            .approvals = as_args_get(args, "approvals"),
                            .waiting = RB_INITIALIZER(&replay.waiting)};
    struct as_error error = AS_ERROR_INIT;
    replay.error = &error;
    int status = rules_load(args, as_args_get(args, "rules"), &replay.config);

    if (status)
        return status;
    replay.scopes = replay_scopes_make(&replay.config->settings.receiver);
    replay.values = replay_values_new(replay.config->ruleset);
    replay.reports = replay_reports_new();
    replay.comparison = comparison_new(replay.config->ruleset, as_args_has(args, "svg"));
    replay.warnings = json_array();
    status = replay_all(&replay, files, &error);
    replay_clear(&replay);
    return status ? as_cli_fail(args, "%s", error.text) : AS_EXIT_OK;
}
