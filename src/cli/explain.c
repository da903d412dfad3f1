/*
 * `alertscaler explain`: a target's decision in force at a moment, from the action log; which rules
 * match an alert with given labels; and the effects of a notification that was not sent
 * (--payload).
 */
#include <alertscaler/tools/explain.h>

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/log/record.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/monitoring/payload.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/record_text.h>
#include <alertscaler/tools/simulation.h>

#include "cli.h"
#include "http_call.h"
#include "log_reader.h"

/* --- why a rule does not match an alert: by the daemon's own matchers --- */

#define SPELLING_MAX 2 /* differing letters */

static const char *get_operator(enum as_matcher_op op)
{
    switch (op) {
    case AS_MATCHER_EQUAL: return "=";
    case AS_MATCHER_NOT_EQUAL: return "!=";
    case AS_MATCHER_REGEX: return "=~";
    case AS_MATCHER_NOT_REGEX: return "!~";
    }
    return "";
}

/* a="b", for free() */
static char *explain_print_matcher(const struct as_matcher *matcher)
{
    return as_xasprintf("%s%s\"%s\"", matcher->name, get_operator(matcher->op), matcher->value);
}

static bool takes_receiver(const struct as_rule *rule, const char *receiver)
{
    for (size_t i = 0; i < rule->receiver_count; i++) {
        if (strcmp(rule->receivers[i], receiver) == 0)
            return true;
    }
    return rule->receiver_count == 0;
}

static char *copy_in_case(const char *text, int (*convert)(int c))
{
    char *copy = as_xstrdup(text);
    for (char *at = copy; *at; at++)
        *at = (char)convert((unsigned char)*at);
    return copy;
}

/* Ignores case. */
static bool takes_loosely(const struct as_matcher *matcher, const char *value)
{
    if (matcher->op == AS_MATCHER_EQUAL)
        return strcasecmp(matcher->value, value) == 0;
    AS_CLEANUP(as_free_p) char *lower = copy_in_case(value, tolower);
    AS_CLEANUP(as_free_p) char *upper = copy_in_case(value, toupper);
    return matcher->op == AS_MATCHER_REGEX &&
           (as_matcher_match_value(matcher, value) || as_matcher_match_value(matcher, lower) ||
            as_matcher_match_value(matcher, upper));
}

/* The label that fails to match only by the case of its name or value; NULL: none. */
static const struct as_label *find_other_case(const struct as_matcher *matcher,
                                              const struct as_labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct as_label *label = &labels->items[i];
        if (strcasecmp(label->name, matcher->name) == 0 && *label->value &&
            takes_loosely(matcher, label->value))
            return label;
    }
    return NULL;
}

static char *print_obstacle(const struct as_matcher *matcher, const struct as_labels *labels)
{
    AS_CLEANUP(as_free_p) char *text = explain_print_matcher(matcher);
    const char *value = as_labels_get(labels, matcher->name);
    const struct as_label *other = find_other_case(matcher, labels);
    if (other && !*value)
        return as_xasprintf(
            "%s does not match: there is no such label, but \"%s\": upper and lower "
            "case count",
            text, other->name);
    return as_xasprintf("%s does not match: %s%s%s%s", text,
                        *value ? "it is \"" : "there is no such label", value, *value ? "\"" : "",
                        other ? ": upper and lower case count" : "");
}

/* The first obstacle, for free(): `always`, a matcher, the receivers (ignored if `receiver` is
 * NULL), `enabled: false`. NULL: it matches. */
static char *explain_find_obstacle(const struct as_rule *rule, const struct as_labels *labels,
                                   const char *receiver)
{
    if (rule->is_always)
        return as_xstrdup("an `always` rule needs no alert");
    for (size_t i = 0; i < rule->matcher_count; i++) {
        if (!as_matcher_match(&rule->matchers[i], labels))
            return print_obstacle(&rule->matchers[i], labels);
    }
    if (receiver && !takes_receiver(rule, receiver))
        return as_xasprintf("the receiver \"%s\" is none of its receivers", receiver);
    return rule->enabled ? NULL : as_xstrdup("it has enabled: false");
}

/* All obstacles of a rule that does not match: matchers, or `enabled: false`; for free(). */
static char *explain_list_obstacles(const struct as_rule *rule, const struct as_labels *labels)
{
    char *list = explain_find_obstacle(rule, labels, NULL);
    size_t count = 0;
    for (size_t i = 0; i < rule->matcher_count; i++) {
        if (as_matcher_match(&rule->matchers[i], labels) || count++ == 0)
            continue;
        AS_CLEANUP(as_free_p) char *before = list;
        AS_CLEANUP(as_free_p) char *text = print_obstacle(&rule->matchers[i], labels);
        list = as_xasprintf("%s; %s", before, text);
    }
    return list;
}

/* Number of its matchers that do not match. */
static size_t explain_count_obstacles(const struct as_rule *rule, const struct as_labels *labels)
{
    size_t count = 0;
    for (size_t i = 0; i < rule->matcher_count; i++)
        count += !as_matcher_match(&rule->matchers[i], labels);
    return count;
}

static bool is_spelt_alike(const struct as_matcher *matcher, const char *value)
{
    return matcher->op == AS_MATCHER_EQUAL && *value &&
           as_str_distance(matcher->value, value) <= SPELLING_MAX;
}

/* Whether a rule does not match, but almost. Matchers that fail only by case are near. Apart from
 * these one matcher may fail, if another matcher for a value is near or matches, or if its value is
 * spelled almost like the alert's. */
static bool explain_is_near(const struct as_rule *rule, const struct as_labels *labels)
{
    bool has_match = false, is_alike = false;
    size_t others = 0;
    for (size_t i = 0; i < rule->matcher_count; i++) {
        const struct as_matcher *matcher = &rule->matchers[i];
        const bool is_matched = as_matcher_match(matcher, labels);
        if (is_matched || find_other_case(matcher, labels)) {
            has_match = has_match || !is_matched || matcher->op == AS_MATCHER_EQUAL ||
                        matcher->op == AS_MATCHER_REGEX;
        } else {
            others++;
            is_alike = is_spelt_alike(matcher, as_labels_get(labels, matcher->name));
        }
    }
    return others <= 1 && (has_match || is_alike);
}

/* --- explain NAME=VALUE... --- */

/*
 * Which rules match an alert with these labels, on which target, through which receivers and
 * credentials; and which almost match. It decides nothing: use --payload for that.
 */

struct asked {
    const struct as_config *config;
    const struct as_labels *labels, *annotations;
    json_t *matching, *near; /* lists of rules */
    size_t other_count, always_count;
};

/* --- which credentials --- */

static void add_credential(json_t *list, const char *name, const struct as_access_settings *access,
                           const char *rule, const char *target_name, const char *target_id)
{
    const struct as_scope scope = {name, access->rules, access->rule_count, access->targets,
                                   access->target_count};
    if ((access->permissions == 0 || (access->permissions & 1U << AS_PERMISSION_NOTIFY)) &&
        as_scope_allows(&scope, 1, name, rule, target_name, target_id))
        json_array_append_new(list, json_string(name));
}

static bool has_credentials(const struct as_receiver_settings *receiver)
{
    return receiver->token_count + receiver->user_count + receiver->certificate_count +
               receiver->hmac_count + receiver->token_review.allow_count +
               receiver->proxy.group_count >
           0;
}

/* Credentials that may send this rule's alerts for this target; null if none is needed. */
static json_t *list_credentials(const struct as_receiver_settings *receiver, const char *rule,
                                const char *name, const char *id)
{
    const struct as_token_review_settings *review = &receiver->token_review;
    json_t *list = json_array();
    if (!has_credentials(receiver)) {
        json_decref(list);
        return json_null();
    }
    for (size_t i = 0; i < receiver->token_count; i++)
        add_credential(list, receiver->tokens[i].name, &receiver->tokens[i].access, rule, name, id);
    for (size_t i = 0; i < receiver->user_count; i++)
        add_credential(list, receiver->users[i].name, &receiver->users[i].access, rule, name, id);
    for (size_t i = 0; i < receiver->certificate_count; i++)
        add_credential(list, receiver->certificates[i].name, &receiver->certificates[i].access,
                       rule, name, id);
    for (size_t i = 0; i < receiver->hmac_count; i++)
        add_credential(list, receiver->hmac[i].name, &receiver->hmac[i].access, rule, name, id);
    for (size_t i = 0; i < review->allow_count; i++)
        add_credential(list, review->allow[i].name, &review->allow[i].access, rule, name, id);
    return list;
}

/* --- which rules --- */

static json_t *list_receivers(const struct as_rule *rule)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rule->receiver_count; i++)
        json_array_append_new(list, json_string(rule->receivers[i]));
    return list;
}

static json_t *make_rule(const struct asked *asked, const struct as_rule *rule)
{
    const struct as_target_config *target = rule->target;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    struct as_error error = AS_ERROR_INIT;
    json_t *json = json_object();
    json_object_set_new(json, "rule", json_string(rule->name));
    json_object_set_new(json, "target_name", json_string(target->name));
    if (as_target_ref_new(target, asked->labels, asked->annotations, &ref, &error) == AS_TARGET_OK)
        json_object_set_new(json, "target", json_string(ref->id));
    else
        json_object_set_new(json, "why_no_target", json_string(error.text));
    json_object_set_new(json, "receivers", list_receivers(rule));
    json_object_set_new(json, "credentials",
                        list_credentials(&asked->config->settings.receiver, rule->name,
                                         target->name, ref ? ref->id : ""));
    return json;
}

static void ask_rule(struct asked *asked, const struct as_rule *rule)
{
    AS_CLEANUP(as_free_p) char *why = explain_find_obstacle(rule, asked->labels, NULL);
    if (rule->is_always) {
        asked->always_count++;
    } else if (!why) {
        json_array_append_new(asked->matching, make_rule(asked, rule));
    } else if (explain_count_obstacles(rule, asked->labels) == 0 ||
               explain_is_near(rule, asked->labels)) {
        json_t *json = json_object();
        json_object_set_new(json, "rule", json_string(rule->name));
        AS_CLEANUP(as_free_p) char *all = explain_list_obstacles(rule, asked->labels);
        json_object_set_new(json, "why_not", json_string(all));
        json_array_append_new(asked->near, json);
    } else {
        asked->other_count++;
    }
}

/* --- telling it --- */

static void print_names(const char *what, const json_t *list, const char *none)
{
    const json_t *item;
    size_t i;
    printf("    %s: ", what);
    if (json_array_size(list) == 0)
        fputs(none, stdout);
    json_array_foreach(list, i, item)
    {
        fputs(i > 0 ? ", " : "", stdout);
        as_safe_text_put(stdout, json_string_value(item));
    }
    putchar('\n');
}

static void explain_print_rule(const json_t *rule)
{
    const char *why = as_record_get_text(rule, "why_not"), *id = as_record_get_text(rule, "target");
    const json_t *credentials = json_object_get(rule, "credentials");
    as_safe_text_put(stdout, as_record_get_text(rule, "rule"));
    if (*why) {
        fputs(" almost matches: ", stdout);
        as_safe_text_put(stdout, why);
        putchar('\n');
        return;
    }
    fputs(" matches\n    target: ", stdout);
    as_safe_text_put(stdout, as_record_get_text(rule, "target_name"));
    fputs(*id ? " (" : " is not allowed: ", stdout);
    as_safe_text_put(stdout, *id ? id : as_record_get_text(rule, "why_no_target"));
    fputs(*id ? ")\n" : "\n", stdout);
    print_names("receivers", json_object_get(rule, "receivers"), "any");
    print_names("credentials", credentials,
                json_is_null(credentials) ? "none is asked for" : "none may trigger it");
}

static void explain_print_text(const struct asked *asked)
{
    const size_t matching = json_array_size(asked->matching), near = json_array_size(asked->near);
    const json_t *rule;
    size_t i;
    json_array_foreach(asked->matching, i, rule) explain_print_rule(rule);
    json_array_foreach(asked->near, i, rule) explain_print_rule(rule);
    if (matching == 0)
        printf("%sNo rule matches.\n", near > 0 ? "\n" : "");
    if (asked->other_count > 0)
        printf("%zu other rule%s not match.\n", asked->other_count,
               asked->other_count == 1 ? " does" : "s do");
    if (asked->always_count > 0)
        printf("%zu `always` rule%s no alert.\n", asked->always_count,
               asked->always_count == 1 ? " needs" : "s need");
}

static void explain_print_json(const struct asked *asked)
{
    json_t *json = json_object();
    json_object_set(json, "matching", asked->matching);
    json_object_set(json, "almost", asked->near);
    json_object_set_new(json, "others", json_integer((json_int_t)asked->other_count));
    json_object_set_new(json, "always", json_integer((json_int_t)asked->always_count));
    as_cli_print_json(json, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
    json_decref(json);
}

/* Which rules match an alert with the given labels: AS_EXIT_NO if none. */
static int explain_labels(const struct as_args *args)
{
    const char *rules = as_args_get(args, "rules");
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL, *annotations = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (label_arguments_parse(args->operands, args->operand_count, "label", &labels, &error) ||
        label_arguments_parse(NULL, 0, "annotation", &annotations, &error))
        return as_cli_fail(args, "%s", error.text);
    const int status = rules_load(args, rules ? rules : config_option_report(args), &config);
    if (status)
        return status;
    struct asked asked = {.config = config,
                          .labels = labels,
                          .annotations = annotations,
                          .matching = json_array(),
                          .near = json_array()};
    for (size_t i = 0; i < config->ruleset->rule_count; i++)
        ask_rule(&asked, config->ruleset->rules[i]);
    if (as_args_wants_json(args))
        explain_print_json(&asked);
    else
        explain_print_text(&asked);
    const bool is_matched = json_array_size(asked.matching) > 0;
    json_decref(asked.matching);
    json_decref(asked.near);
    return is_matched ? AS_EXIT_OK : AS_EXIT_NO;
}

/* --- explain --payload: the effects of a notification that was not sent --- */

/* The matchers tell which rules match; a simulation of the engine gives the effects. */

#define PAYLOAD_MAX ((size_t)64 * 1024 * 1024)
#define RECORD_MAX  ((size_t)512 * 1024 * 1024)

struct preview {
    const struct as_ruleset *ruleset;
    const struct as_notification *notification;
    json_t *alerts;  /* the outcome of each alert, with every rule */
    json_t *records; /* decisions and actions, in order */
    char **lines;    /* of these records: the text */
    size_t line_count, line_capacity;
    json_t *incidents; /* openings */
};

/* --- which rules --- */

static json_t *explain_payload_make_rule(const struct preview *preview, const struct as_rule *rule,
                                         const struct as_alert *alert)
{
    const struct as_target_config *config = rule->target;
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

static json_t *explain_make_labels(const struct as_labels *labels)
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
        json_object_set_new(json, "labels", explain_make_labels(alert->labels));
        json_object_set_new(json, "status",
                            json_string(alert->status == AS_ALERT_FIRING ? "firing" : "resolved"));
        json_object_set_new(json, "outcome", json_string(word));
        for (size_t k = 0; k < preview->ruleset->rule_count; k++)
            json_array_append_new(
                rules, explain_payload_make_rule(preview, preview->ruleset->rules[k], alert));
        json_object_set_new(json, "rules", rules);
        json_array_append_new(preview->alerts, json);
    }
}

/* --- what comes of it --- */

/* At the start of the simulation, targets with `always` rules are evaluated. These decisions are
 * left out. So are their failures to read a size, unless an alert of the notification has a rule on
 * the target. */

static bool is_of_always_rules(const struct as_decide_input *input)
{
    for (size_t i = 0; i < input->proposal_count; i++) {
        const char *incident = input->proposals[i].incident;
        if (!incident || strcmp(incident, AS_INCIDENT_ALWAYS) != 0)
            return false;
    }
    return input->proposal_count > 0;
}

static bool concerns_payload(const struct preview *preview, const char *target_name)
{
    const struct as_notification *notification = preview->notification;
    bool has_always = false;

    for (size_t i = 0; i < preview->ruleset->rule_count; i++) {
        const struct as_rule *rule = preview->ruleset->rules[i];
        if (strcmp(rule->target->name, target_name) != 0)
            continue;
        has_always = has_always || rule->is_always;
        for (size_t k = 0; k < notification->alert_count; k++) {
            const struct as_alert *alert = &notification->alerts[k];
            AS_CLEANUP(as_free_p)
            char *obstacle =
                alert->problem ? as_xstrdup(alert->problem)
                               : explain_find_obstacle(rule, alert->labels, notification->receiver);
            if (!obstacle)
                return true;
        }
    }
    return !has_always;
}

static bool append_record(json_t *list, const struct as_buf *text)
{
    json_t *record = as_buf_check(text) == 0 ? json_loadb(text->data, text->size, 0, NULL) : NULL;

    return record && json_array_append_new(list, record) == 0;
}

static void append_line(struct preview *preview, const struct as_buf *text)
{
    if (!append_record(preview->records, text))
        return;
    preview->lines = as_xgrow(preview->lines, preview->line_count, &preview->line_capacity,
                              sizeof(*preview->lines));
    preview->lines[preview->line_count++] = as_xstrndup(text->data, text->size);
}

static void explain_on_decision(void *context, as_wall_time at,
                                const struct as_decision_record *record)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(RECORD_MAX);
    const struct as_record_header header = {.time = at, .instance = ""};

    if (is_of_always_rules(record->input))
        return;
    as_record_encode(&header, AS_RECORD_DECISION, record, &text, NULL);
    append_line(context, &text);
}

static void explain_on_action(void *context, as_wall_time at, const struct as_action_record *record)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(RECORD_MAX);
    const struct as_record_header header = {.time = at, .instance = ""};

    if (!concerns_payload(context, record->target_name))
        return;
    as_record_encode(&header, AS_RECORD_ACTION, record, &text, NULL);
    append_line(context, &text);
}

static void explain_on_incident(void *context, as_wall_time at,
                                const struct as_incident_record *record)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(RECORD_MAX);
    const struct as_record_header header = {.time = at, .instance = ""};

    as_record_encode(&header, AS_RECORD_INCIDENT, record, &text, NULL);
    (void)append_record(((struct preview *)context)->incidents, &text);
}

/* --- telling it --- */

static void explain_payload_print_rule(const json_t *rule)
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
    json_array_foreach(json_object_get(alert, "rules"), i, rule) explain_payload_print_rule(rule);
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

/* A rule that matches an alert of the notification leads to the target. */
static bool payload_concerns(const struct preview *preview, const char *target)
{
    const json_t *alert, *rule;
    size_t i, k;

    json_array_foreach(preview->alerts, i, alert)
    {
        json_array_foreach(json_object_get(alert, "rules"), k, rule)
        {
            if (strcmp(as_record_get_text(rule, "target"), target) == 0)
                return true;
        }
    }
    return false;
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

static void explain_payload_print_text(const struct preview *preview)
{
    json_t *item;
    size_t i;

    json_array_foreach(preview->alerts, i, item) print_alert(item);
    json_array_foreach(preview->records, i, item)
    {
        if (strcmp(as_record_get_text(item, "kind"), "decision") == 0) {
            json_t *actions = collect_actions(preview->records, item);
            const struct as_explanation explanation = {.decision = item,
                                                       .line = preview->lines[i],
                                                       .line_size = strlen(preview->lines[i]),
                                                       .actions = actions,
                                                       .incidents = preview->incidents};
            putchar('\n');
            as_explain_print(&explanation, stdout);
            json_decref(actions);
        } else if (!*as_record_get_text(item, "decision") &&
                   payload_concerns(preview, as_record_get_text(item, "target"))) {
            print_unread(item);
        }
    }
}

static void explain_payload_print_json(const struct preview *preview)
{
    json_t *json = json_object();

    json_object_set_new(json, "alerts", json_incref(preview->alerts));
    json_object_set_new(json, "incidents", json_incref(preview->incidents));
    json_object_set_new(json, "records", json_incref(preview->records));
    as_cli_print_json(json, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
    json_decref(json);
}

static int simulate(const struct as_args *args, const struct as_config *config, as_wall_time at,
                    struct preview *preview, struct as_error *error)
{
    const struct as_simulation_config setup = {
        .ruleset = config->ruleset,
        .engine = rules_get_engine_config(config),
        .start = at,
        .callbacks = {.decision = explain_on_decision,
                      .action = explain_on_action,
                      .notification = on_notification,
                      .incident = explain_on_incident,
                      .context = preview},
    };
    AS_CLEANUP(as_simulation_free_p) struct as_simulation *simulation = as_simulation_new(&setup);
    const int status = rules_set_replicas(args, config->ruleset, simulation, error);

    if (!status)
        as_simulation_notify(simulation, preview->notification);
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

/* The effects of a notification: --payload. Returns the exit status. */
static int explain_payload(const struct as_args *args)
{
    const char *rules = as_args_get(args, "rules");
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    AS_CLEANUP(as_notification_free_p) struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;
    as_wall_time at;

    if (moment_parse("at", as_args_get(args, "at"), moment_get_now(), &at, &error) ||
        read_payload(as_args_get(args, "payload"), &notification, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = rules_load(args, rules ? rules : config_option_report(args), &config);
    if (status)
        return status;
    struct preview preview = {.ruleset = config->ruleset,
                              .notification = notification,
                              .alerts = json_array(),
                              .records = json_array(),
                              .incidents = json_array()};
    status = simulate(args, config, at, &preview, &error);
    if (status)
        (void)as_cli_fail(args, "%s", error.text);
    else if (as_args_wants_json(args))
        explain_payload_print_json(&preview);
    else
        explain_payload_print_text(&preview);
    json_decref(preview.alerts);
    json_decref(preview.records);
    json_decref(preview.incidents);
    while (preview.line_count > 0)
        free(preview.lines[--preview.line_count]);
    free(preview.lines);
    return status ? AS_EXIT_USAGE : AS_EXIT_OK;
}

/* --- explain TARGET --- */

/*
 * The log is read twice: for the decision and what followed, then for what it names: its incidents,
 * decisions of its pool or of the pool's groups, and nodes that it chose, which leave in the
 * background.
 */

/* The effect of an action is recorded an hour after it, at the latest. */
#define EFFECT_SEARCH_US (2 * AS_EVALUATION_US)

struct search {
    const char *target;
    bool has_plain_name; /* the name is in the log without escapes */
    as_wall_time at;
    json_t *decision; /* the last one until `at` */
    char *line;       /* its record */
    size_t line_size;
    json_t *actions;     /* of this decision, so far */
    json_t *commands;    /* operators' orders on the target until the next decision */
    json_t *incidents;   /* the last opening record of each */
    json_t *pool;        /* the decision of the pool that it carries out */
    json_t *assignments; /* of a pool: decisions that carry it out, and what became of them */
    as_maybe_time until;
    long long repeats;
    as_maybe_time first; /* time of the target's first decision */
    json_t *unread;      /* without a decision: the last failed observation up to `at`; or NULL */
    as_maybe_time unread_since; /* the first failure with this outcome in a row */
};

static bool explain_is_decision(const json_t *record)
{
    return strcmp(as_record_get_text(record, "kind"), "decision") == 0;
}

static bool is_of_target(const struct search *search, const json_t *record)
{
    return strcmp(as_record_get_text(record, "target"), search->target) == 0 ||
           strcmp(as_record_get_text(record, "target_name"), search->target) == 0;
}

static bool wants_line(void *context, const struct log_line *line)
{
    const struct search *search = context;

    return !search->has_plain_name || log_line_has(line, search->target);
}

/* A later decision on the same target id (a name may stand for several). */
static int explain_take_next(struct search *search, const json_t *record, as_wall_time time)
{
    if (strcmp(as_record_get_text(record, "target"),
               as_record_get_text(search->decision, "target")) != 0)
        return 0;
    search->until = (as_maybe_time){.set = true, .at = time};
    search->repeats = json_integer_value(json_object_get(record, "repeats"));
    return 1;
}

/* Of the orders before the decision, only the last may have caused it. */
static void keep_last_command(json_t *commands)
{
    while (json_array_size(commands) > 1)
        json_array_remove(commands, 0);
}

static int explain_take_decision(struct search *search, const struct log_line *line, json_t *record,
                                 struct as_error *error)
{
    as_wall_time time;
    int status = as_record_get_time(record, &time, error);

    if (status)
        return status;
    if (!search->first.set)
        search->first = (as_maybe_time){.set = true, .at = time};
    if (time.us > search->at.us)
        return search->decision ? explain_take_next(search, record, time) : 1;
    json_decref(search->decision);
    search->decision = json_incref(record);
    free(search->line);
    search->line = as_xstrndup(line->text, line->size);
    search->line_size = line->size;
    json_array_clear(search->actions);
    keep_last_command(search->commands);
    return 0;
}

static int explain_take_unread(struct search *search, json_t *record, struct as_error *error)
{
    as_wall_time time;
    const int status = as_record_get_time(record, &time, error);
    if (status || time.us > search->at.us)
        return status;
    if (strcmp(as_record_get_text(search->unread, "outcome"),
               as_record_get_text(record, "outcome")) != 0)
        search->unread_since = (as_maybe_time){.set = true, .at = time};
    json_decref(search->unread);
    search->unread = json_incref(record);
    return 0;
}

static int explain_read_record(void *context, const struct log_line *line, json_t *record,
                               struct as_error *error)
{
    struct search *search = context;

    if (!is_of_target(search, record))
        return 0;
    if (explain_is_decision(record))
        return explain_take_decision(search, line, record, error);
    if (strcmp(as_record_get_text(record, "kind"), "command") == 0)
        json_array_append(search->commands, record);
    /* An action without a decision: since then the size could not be read. */
    const char *decision = as_record_get_text(record, "decision"),
               *kind = as_record_get_text(record, "kind");
    if (!search->decision && strcmp(kind, "action") == 0 && !*decision &&
        !*as_record_get_text(record, "command"))
        return explain_take_unread(search, record, error);
    const bool is_effect = strcmp(kind, "action") == 0 || strcmp(kind, "nodes") == 0 ||
                           strcmp(kind, "effect") == 0 || strcmp(kind, "approval") == 0;
    if (search->decision && is_effect &&
        (!*decision || strcmp(decision, as_record_get_text(search->decision, "id")) == 0))
        json_array_append(search->actions, record);
    return 0;
}

/* --- what it names --- */

static bool is_of_kind(const json_t *record, const char *kind)
{
    return strcmp(as_record_get_text(record, "kind"), kind) == 0;
}

static bool has_id(const json_t *record, const char *key, const json_t *decision)
{
    const char *id = as_record_get_text(decision, "id");
    return *id && strcmp(as_record_get_text(record, key), id) == 0;
}

static bool is_node_group(const json_t *decision)
{
    const char *target = as_record_get_text(decision, "target");
    return as_str_starts_with(target, "node_group/") || as_str_starts_with(target, "pool/");
}

static bool wants_named(void *context, const struct log_line *line)
{
    const struct search *search = context;

    return log_line_has(line, "\"kind\":\"incident\"") ||
           log_line_has(line, "\"kind\":\"effect\"") ||
           (is_node_group(search->decision) && (log_line_has(line, "\"kind\":\"decision\"") ||
                                                log_line_has(line, "\"kind\":\"action\"") ||
                                                log_line_has(line, "\"kind\":\"nodes\"")));
}

static void explain_take_incident(struct search *search, json_t *record)
{
    const char *incident = as_record_get_incident(record);
    const json_t *item;
    size_t i;

    if (strcmp(as_record_get_text(record, "event"), "opened") != 0)
        return;
    bool is_named =
        strcmp(as_record_get_text(json_object_get(search->decision, "give_back"), "incident"),
               incident) == 0;
    json_array_foreach(json_object_get(search->decision, "incidents"), i, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), incident) == 0)
            is_named = true;
    }
    if (!is_named)
        return;
    const json_t *known;
    json_array_foreach(search->incidents, i, known)
    {
        if (strcmp(as_record_get_incident(known), incident) == 0)
            break;
    }
    if (i < json_array_size(search->incidents))
        json_array_set(search->incidents, i, record);
    else
        json_array_append(search->incidents, record);
}

/* An action of a assignment, its effect, or nodes that one has chosen. */
static bool is_of_share(const struct search *search, const json_t *record)
{
    const json_t *assignment;
    size_t i;

    json_array_foreach(search->assignments, i, assignment)
    {
        if (explain_is_decision(assignment) && has_id(record, "decision", assignment))
            return true;
    }
    return false;
}

static int explain_read_named(void *context, const struct log_line *line, json_t *record,
                              struct as_error *error)
{
    struct search *search = context;
    const bool is_nodes = is_of_kind(record, "nodes"), is_effect = is_of_kind(record, "effect");
    as_wall_time time;

    if (as_record_get_time(record, &time, error) != 0)
        return 1;
    if (is_of_kind(record, "incident")) {
        if (time.us <= search->at.us)
            explain_take_incident(search, record);
        return time.us > as_time_add(search->at.us, EFFECT_SEARCH_US) &&
               !is_node_group(search->decision);
    }
    if (explain_is_decision(record) && has_id(search->decision, "pool_decision", record)) {
        json_decref(search->pool);
        search->pool = json_incref(record);
    } else if ((explain_is_decision(record) && has_id(record, "pool_decision", search->decision)) ||
               ((is_nodes || is_effect || is_of_kind(record, "action")) &&
                is_of_share(search, record))) {
        json_array_append(search->assignments, record);
    } else if ((is_nodes || is_effect) && search->until.set && time.us > search->until.at.us &&
               has_id(record, "decision", search->decision)) {
        json_array_append(search->actions, record);
    }
    return 0;
}

static int explain_find(struct search *search, const struct log_files *files,
                        struct as_error *error)
{
    const struct log_selection of_target = {.target = search->target};
    struct log_visitor visitor = {.wants = wants_line,
                                  .on_record = explain_read_record,
                                  .context = search,
                                  .selection = &of_target};
    int status = log_walk(files, &visitor, error);

    if (status < 0 || !search->decision)
        return status;
    const struct log_selection named = {
        .kinds = is_node_group(search->decision) ? "incident,effect,decision,action,nodes"
                                                 : "incident,effect",
    };
    visitor.selection = &named;
    visitor.wants = wants_named;
    visitor.on_record = explain_read_named;
    return log_walk(files, &visitor, error);
}

/* --- a name that is not in the log --- */

static bool wants_decision(void *context, const struct log_line *line)
{
    return log_line_has(line, "\"kind\":\"decision\"");
}

static int explain_read_name(void *context, const struct log_line *line, json_t *record,
                             struct as_error *error)
{
    if (explain_is_decision(record)) {
        as_spelling_offer(context, as_record_get_text(record, "target_name"));
        as_spelling_offer(context, as_record_get_text(record, "target"));
    }
    return 0;
}

/* For free(); NULL: no name is similar. */
static char *explain_find_nearest(const char *asked, const struct log_files *files)
{
    struct as_error ignored = AS_ERROR_INIT;
    struct as_spelling spelling = as_spelling_begin(asked);
    const struct log_selection decisions = {.kinds = "decision"};
    const struct log_visitor visitor = {.wants = wants_decision,
                                        .on_record = explain_read_name,
                                        .context = &spelling,
                                        .selection = &decisions};
    if (log_walk(files, &visitor, &ignored) < 0)
        as_free_p(&spelling.nearest);
    return spelling.nearest;
}

/* The order is the only thing that is known of the target. */
static void fail_with_command(const struct as_args *args, const char *target, const char *until,
                              const json_t *command, const char *nearest)
{
    const char *outcome = as_record_get_text(command, "outcome");
    const char *word = as_record_get_text(command, "command");
    const char *time = as_record_get_text(command, "time");
    if (!*outcome || strcmp(outcome, "done") == 0)
        (void)as_cli_fail(args,
                          "nothing was decided on \"%s\" up to %s; an operator ordered: %s, at %s",
                          target, until, word, time);
    else
        (void)as_cli_fail(args,
                          "nothing was decided on \"%s\" up to %s; the command %s was refused at "
                          "%s: %s%s%s%s",
                          target, until, word, time, as_record_get_text(command, "message"),
                          nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                          nearest ? "\"?" : "");
}

/* Nothing was decided, as the size could not be read. */
static int explain_print_unread(const struct as_args *args, const struct search *search)
{
    const json_t *record = search->unread;
    const char *name = as_record_get_text(record, "target_name");
    const char *next = as_record_get_text(record, "next_try");
    const long long http = json_integer_value(json_object_get(record, "http_status"));
    char text[AS_RFC3339_SIZE];
    enum as_reason reason;
    if (as_args_wants_json(args)) {
        as_cli_print_json(record, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
        return AS_EXIT_NO;
    }
    as_wall_time_print_short(search->unread_since.at, text);
    as_safe_text_put(stdout, *name ? name : as_record_get_text(record, "target"));
    printf(": no decision, as its size could not be read.\nThe last observation: %s",
           as_record_get_text(record, "outcome"));
    if (http > 0)
        printf(", HTTP %lld", http);
    fputs(*as_record_get_text(record, "message") ? ": " : "", stdout);
    as_safe_text_put(stdout, as_record_get_text(record, "message"));
    putchar('\n');
    if (as_reason_find(as_record_get_text(record, "outcome"), &reason))
        puts(as_reason_get_meaning(reason));
    printf("Since: %s", text);
    if (*next)
        printf(". The first retry: %s", next);
    puts(".\nalertscaler tries again, at least once in a minute. Equal failures have no record. To "
         "see the number of tries and the next try, run alertscaler status.");
    return AS_EXIT_NO;
}

static int fail_to_find(const struct as_args *args, const struct search *search,
                        const struct log_files *files)
{
    char text[AS_RFC3339_SIZE];

    if (search->unread)
        return explain_print_unread(args, search);

    as_wall_time_print_short(search->first.set ? search->first.at : search->at, text);
    const json_t *command = json_array_get(search->commands, json_array_size(search->commands) - 1);
    AS_CLEANUP(as_free_p)
    char *nearest = search->first.set ? NULL : explain_find_nearest(search->target, files);
    if (command && !search->first.set)
        fail_with_command(args, search->target, text, command, nearest);
    else if (search->first.set)
        (void)as_cli_fail(args, "the first decision on \"%s\" in the log is of %s", search->target,
                          text);
    else if (nearest)
        (void)as_cli_fail(args, "the log has no decision on \"%s\" up to %s; did you mean \"%s\"?",
                          search->target, text, nearest);
    else
        (void)as_cli_fail(args,
                          "the log has no decision on \"%s\" up to %s: `alertscaler log --target "
                          "'*%s*'` shows what it has",
                          search->target, text, search->target);
    return AS_EXIT_NO;
}

static int explain_print(const struct as_args *args, const struct search *search)
{
    const struct as_explanation explanation = {
        .decision = search->decision,
        .line = search->line,
        .line_size = search->line_size,
        .actions = search->actions,
        .commands = search->commands,
        .incidents = search->incidents,
        .pool = search->pool,
        .assignments = search->assignments,
        .at = {.set = true, .at = search->at},
        .until = search->until,
        .repeats = search->repeats,
    };

    if (as_args_wants_json(args)) {
        json_t *json = as_explain_make_json(&explanation);
        as_cli_print_json(json, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
        json_decref(json);
    } else {
        as_explain_print(&explanation, stdout);
    }
    return AS_EXIT_OK;
}

static int explain_log(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    struct search search = {.target = as_args_get(args, "target")};
    struct log_files files;

    if (!search.target)
        return as_cli_fail(
            args, "--target=NAME is needed, or --payload=FILE, or an alert's labels as NAME=VALUE");
    search.has_plain_name = !strpbrk(search.target, "\"\\");
    if (moment_parse("at", as_args_get(args, "at"), moment_get_now(), &search.at, &error) ||
        log_files_find_any(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    if (log_files_keep(&files, &error)) {
        log_files_deinit(&files);
        return as_cli_fail(args, "%s", error.text);
    }
    search.actions = json_array();
    search.commands = json_array();
    search.incidents = json_array();
    search.assignments = json_array();
    int status = explain_find(&search, &files, &error);
    if (status < 0)
        status = as_cli_fail(args, "%s", error.text);
    else
        status =
            search.decision ? explain_print(args, &search) : fail_to_find(args, &search, &files);
    log_files_deinit(&files);
    json_decref(search.decision);
    json_decref(search.unread);
    free(search.line);
    json_decref(search.actions);
    json_decref(search.commands);
    json_decref(search.incidents);
    json_decref(search.pool);
    json_decref(search.assignments);
    return status;
}

/* Operands are labels, unless an option makes them files. */
static bool is_about_labels(const struct as_args *args)
{
    return !as_args_has(args, "payload") && !as_args_has(args, "target") &&
           args->operand_count > 0 && strchr(args->operands[0], '=');
}

static int explain_run(const struct as_args *args)
{
    if (is_about_labels(args) && (as_args_has(args, "url") || as_args_has(args, "context")))
        return as_cli_fail(args, "labels are matched with rule files: neither --url nor --context "
                                 "goes with them");
    if (is_about_labels(args))
        return as_args_has(args, "replicas") ? as_cli_fail(args, "--replicas needs --payload")
                                             : explain_labels(args);
    if (as_args_has(args, "payload") && (as_args_has(args, "target") || args->operand_count > 0))
        return as_cli_fail(args,
                           "--payload is about no log: neither --target nor a FILE goes with it");
    if (!as_args_has(args, "payload") &&
        (as_args_has(args, "rules") || as_args_has(args, "replicas")))
        return as_cli_fail(args, "--rules and --replicas need --payload");
    if (!as_args_has(args, "payload"))
        return explain_log(args);
    if (as_args_has(args, "url") || as_args_has(args, "context"))
        return as_cli_fail(args, "--payload is about rule files: neither --url nor --context goes "
                                 "with it");
    return explain_payload(args);
}

static const struct as_option explain_options[] = {
    {.name = "target",
     .value = "NAME",
     .names = "targets",
     .help = "The target: its name in the rules, or its id"},
    {.name = "at",
     .value = "TIME",
     .fallback = "now",
     .help = "The moment: 2026-11-20T14:03Z, now, or 10m for ten minutes ago"},
    {.name = "payload",
     .value = "FILE",
     .help = "Explains a notification without sending it: Alertmanager's JSON"},
    {.name = "rules",
     .value = "PATH",
     .help = "With --payload or labels: a folder of rule files, a file, or a configuration"},
    AS_OPTION_REPLICAS,
    AS_OPTION_CONFIG_FILE("Names the log if no FILE is given; with --payload or labels, the rules"),
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_explain = {
    .name = "explain",
    .operands = "[FILE...|LABEL=VALUE...]",
    .summary = "Says why a target has, or had, its size; or which rules match an alert.",
    .help =
        "With --target: prints the decision in force on a target at a moment, and how it was made, "
        "from\n"
        "the action log: FILEs in any order, '-' for standard input, or without FILE those of the\n"
        "configuration; with --url or --context, the log of a running daemon. Exit status 1 if "
        "there was no decision.\n"
        "With an alert's labels, as alertname=CheckoutLatencyHigh severity=page: which rules "
        "match, on\n"
        "which target, through which receivers and credentials, and which almost match. Exit "
        "status 1 if\n"
        "none matches.\n"
        "With --payload: which rules match its alerts, which do not and why, and what would be "
        "decided.",
    .options = explain_options,
    .operands_max = 100000,
    .run = explain_run,
};
