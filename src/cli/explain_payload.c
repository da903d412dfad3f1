/*
 * `alertscaler explain --payload`: the effects of a notification that was not sent. The matchers
 * tell which rules match; a rehearsal of the engine gives the effects.
 */
#include "explain.h"

#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/log/record.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/monitoring/payload.h>
#include <alertscaler/tools/explain.h>
#include <alertscaler/tools/record_text.h>
#include <alertscaler/tools/rehearsal.h>

#include "cli.h"
#include "explain_match.h"
#include "log_filter.h"
#include "log_print.h"
#include "rules_option.h"

#define PAYLOAD_MAX ((size_t)64 * 1024 * 1024)
#define RECORD_MAX  ((size_t)512 * 1024 * 1024)

struct preview {
    const struct as_ruleset *ruleset;
    const struct as_notification *notification;
    json_t *alerts;    /* the outcome of each alert, with every rule */
    json_t *records;   /* decisions and actions, in order */
    json_t *incidents; /* openings */
};

/* --- which rules --- */

static json_t *make_rule(const struct preview *preview, const struct as_rule *rule,
                         const struct as_alert *alert)
{
    const struct as_target_config *config = &preview->ruleset->targets[rule->target];
    AS_CLEANUP(as_free_p)
    char *obstacle = explain_find_obstacle(rule, alert->labels, preview->notification->receiver);
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    struct as_error error = AS_ERROR_INIT;
    json_t *json = json_object();

    json_object_set_new(json, "rule", json_string(rule->name));
    json_object_set_new(json, "matches", json_boolean(!obstacle));
    if (obstacle) {
        json_object_set_new(json, "why_not", json_string(obstacle));
        return json;
    }
    json_object_set_new(json, "target_name", json_string(config->name));
    if (as_target_ref_new(config, alert->labels, alert->annotations, &ref, &error) == AS_TARGET_OK)
        json_object_set_new(json, "target", json_string(ref->id));
    else
        json_object_set_new(json, "why_no_target", json_string(error.text));
    return json;
}

static json_t *make_labels(const struct as_labels *labels)
{
    json_t *json = json_object();

    for (uint32_t i = 0; i < labels->count; i++)
        json_object_set_new(json, labels->items[i].name, json_string(labels->items[i].value));
    return json;
}

static void on_notification(void *context, as_wall_time at,
                            const struct as_notification_record *record)
{
    struct preview *preview = context;

    for (size_t i = 0; i < record->notification->alert_count; i++) {
        const struct as_alert *alert = &record->notification->alerts[i];
        const struct as_alert_outcome *outcome = &record->outcomes[i];
        const char *word = outcome->is_queued ? "queued" : as_reason_get_word(outcome->reason);
        if (alert->problem) {
            json_array_append_new(
                preview->alerts, json_pack("{s:s, s:s}", "error", alert->problem, "outcome", word));
            continue;
        }
        json_t *json = json_object(), *rules = json_array();
        json_object_set_new(json, "labels", make_labels(alert->labels));
        json_object_set_new(json, "status",
                            json_string(alert->status == AS_ALERT_FIRING ? "firing" : "resolved"));
        json_object_set_new(json, "outcome", json_string(word));
        for (size_t k = 0; k < preview->ruleset->rule_count; k++)
            json_array_append_new(rules, make_rule(preview, &preview->ruleset->rules[k], alert));
        json_object_set_new(json, "rules", rules);
        json_array_append_new(preview->alerts, json);
    }
}

/* --- what comes of it --- */

static void append_record(json_t *list, const struct as_buf *text)
{
    json_t *record = as_buf_check(text) == 0 ? json_loadb(text->data, text->size, 0, NULL) : NULL;

    if (record)
        json_array_append_new(list, record);
}

static void on_decision(void *context, as_wall_time at, const struct as_decision_record *record)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(RECORD_MAX);
    const struct as_record_header header = {.time = at, .instance = ""};
    struct as_record_places places;

    as_record_encode_decision(&header, record, &text, &places);
    append_record(((struct preview *)context)->records, &text);
}

static void on_action(void *context, as_wall_time at, const struct as_action_record *record)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(RECORD_MAX);
    const struct as_record_header header = {.time = at, .instance = ""};
    struct as_record_places places;

    as_record_encode_action(&header, record, &text, &places);
    append_record(((struct preview *)context)->records, &text);
}

static void on_incident(void *context, as_wall_time at, const struct as_incident_record *record)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(RECORD_MAX);
    const struct as_record_header header = {.time = at, .instance = ""};
    struct as_record_places places;

    as_record_encode_incident(&header, record, &text, &places);
    append_record(((struct preview *)context)->incidents, &text);
}

/* --- telling it --- */

static void print_rule(const json_t *rule)
{
    const char *why = as_record_get_text(rule, "why_not"),
               *no_target = as_record_get_text(rule, "why_no_target");

    fputs("  ", stdout);
    as_safe_text_put(stdout, as_record_get_text(rule, "rule"));
    if (*why) {
        fputs(" does not: ", stdout);
        as_safe_text_put(stdout, why);
    } else {
        fputs(" matches: target ", stdout);
        as_safe_text_put(stdout, as_record_get_text(rule, "target_name"));
        fputs(*no_target ? " is not allowed: " : " (", stdout);
        as_safe_text_put(stdout, *no_target ? no_target : as_record_get_text(rule, "target"));
        fputs(*no_target ? "" : ")", stdout);
    }
    putchar('\n');
}

static void print_alert(json_t *alert)
{
    const char *outcome = as_record_get_text(alert, "outcome");
    enum as_reason reason;
    const json_t *rule;
    size_t i;

    if (json_object_get(alert, "error")) {
        as_safe_text_put(stdout, as_record_get_text(alert, "error"));
        printf(": %s\n", outcome);
        return;
    }
    as_record_print_labels(json_object_get(alert, "labels"), stdout);
    printf(" %s: %s", as_record_get_text(alert, "status"), outcome);
    if (as_reason_find(outcome, &reason))
        printf(". %s", as_reason_get_meaning(reason));
    putchar('\n');
    json_array_foreach(json_object_get(alert, "rules"), i, rule) print_rule(rule);
}

static void print_unread(const json_t *action)
{
    putchar('\n');
    as_safe_text_put(stdout, as_record_get_text(action, "target_name"));
    fputs(" (", stdout);
    as_safe_text_put(stdout, as_record_get_text(action, "target"));
    printf(")\nIts size is not known: --replicas=%s=N gives one.\n",
           as_record_get_text(action, "target_name"));
}

/* The actions of a decision. */
static json_t *collect_actions(const json_t *records, const json_t *decision)
{
    json_t *actions = json_array(), *record;
    size_t i;

    json_array_foreach(records, i, record)
    {
        if (*as_record_get_text(record, "decision") &&
            strcmp(as_record_get_text(record, "decision"), as_record_get_text(decision, "id")) == 0)
            json_array_append(actions, record);
    }
    return actions;
}

static void print_text(const struct preview *preview)
{
    json_t *item;
    size_t i;

    json_array_foreach(preview->alerts, i, item) print_alert(item);
    json_array_foreach(preview->records, i, item)
    {
        if (strcmp(as_record_get_text(item, "kind"), "decision") == 0) {
            json_t *actions = collect_actions(preview->records, item);
            const struct as_explanation told = {
                .decision = item, .actions = actions, .incidents = preview->incidents};
            putchar('\n');
            as_explain_print(&told, stdout);
            json_decref(actions);
        } else if (!*as_record_get_text(item, "decision")) {
            print_unread(item);
        }
    }
}

static void print_json(const struct preview *preview)
{
    json_t *json = json_object();

    json_object_set_new(json, "alerts", json_incref(preview->alerts));
    json_object_set_new(json, "incidents", json_incref(preview->incidents));
    json_object_set_new(json, "records", json_incref(preview->records));
    as_cli_print_json(json, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
    json_decref(json);
}

static int rehearse(const struct as_args *args, const struct as_config *config, as_wall_time at,
                    struct preview *preview, struct as_error *error)
{
    const struct as_rehearsal_config setup = {
        .ruleset = config->ruleset,
        .engine = rules_get_engine_config(config),
        .start = at,
        .callbacks = {.decision = on_decision,
                      .action = on_action,
                      .notification = on_notification,
                      .incident = on_incident,
                      .context = preview},
    };
    AS_CLEANUP(as_rehearsal_free_p) struct as_rehearsal *rehearsal = as_rehearsal_new(&setup);
    const int status = rules_set_replicas(args, config->ruleset, rehearsal, error);

    if (!status)
        as_rehearsal_notify(rehearsal, preview->notification);
    return status;
}

static int read_payload(const char *path, struct as_notification **notification_out,
                        struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size;
    int status =
        as_file_read_input(strcmp(path, "-") == 0 ? "/dev/stdin" : path, PAYLOAD_MAX, &text, &size);

    if (status) {
        as_error_set_errno(error, status, "%s", path);
        return status;
    }
    status = as_payload_decode(text, size, notification_out, error);
    if (status)
        as_error_wrap(error, "%s", path);
    return status;
}

int explain_payload(const struct as_args *args)
{
    const char *rules = as_args_get(args, "rules");
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    AS_CLEANUP(as_notification_free_p) struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;
    as_wall_time at;

    if (moment_parse("at", as_args_get(args, "at"), moment_get_now(), &at, &error) ||
        read_payload(as_args_get(args, "payload"), &notification, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = rules_load(args, rules ? rules : config_option_tell(args), &config);
    if (status)
        return status;
    struct preview preview = {.ruleset = config->ruleset,
                              .notification = notification,
                              .alerts = json_array(),
                              .records = json_array(),
                              .incidents = json_array()};
    status = rehearse(args, config, at, &preview, &error);
    if (status)
        (void)as_cli_fail(args, "%s", error.text);
    else if (as_args_wants_json(args))
        print_json(&preview);
    else
        print_text(&preview);
    json_decref(preview.alerts);
    json_decref(preview.records);
    json_decref(preview.incidents);
    return status ? AS_EXIT_USAGE : AS_EXIT_OK;
}
