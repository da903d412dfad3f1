/*
 * `alertscaler explain NAME=VALUE...`: which rules match an alert with these labels, on which
 * target, through which receivers and credentials; and which almost match. It decides nothing: use
 * --payload for that.
 */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "explain_match.h"
#include "log_filter.h"
#include "log_print.h"
#include "rules_option.h"

struct asked {
    const struct as_config *config;
    const struct as_labels *labels, *annotations;
    json_t *matching, *near; /* lists of rules */
    size_t other_count;
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
               receiver->hmac_count + receiver->token_review.allow_count >
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
    const struct as_target_config *target = &asked->config->ruleset->targets[rule->target];
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
    if (!why) {
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

static void print_rule(const json_t *rule)
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

static void print_text(const struct asked *asked)
{
    const size_t matching = json_array_size(asked->matching), near = json_array_size(asked->near);
    const json_t *rule;
    size_t i;
    json_array_foreach(asked->matching, i, rule) print_rule(rule);
    json_array_foreach(asked->near, i, rule) print_rule(rule);
    if (matching == 0)
        printf("%sNo rule matches.\n", near > 0 ? "\n" : "");
    if (asked->other_count > 0)
        printf("%zu other rule%s not match.\n", asked->other_count,
               asked->other_count == 1 ? " does" : "s do");
}

static void print_json(const struct asked *asked)
{
    json_t *json = json_object();
    json_object_set(json, "matching", asked->matching);
    json_object_set(json, "almost", asked->near);
    json_object_set_new(json, "others", json_integer((json_int_t)asked->other_count));
    as_cli_print_json(json, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
    json_decref(json);
}

int explain_labels(const struct as_args *args)
{
    const char *rules = as_args_get(args, "rules");
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL, *annotations = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (label_arguments_parse(args->operands, args->operand_count, "label", &labels, &error) ||
        label_arguments_parse(NULL, 0, "annotation", &annotations, &error))
        return as_cli_fail(args, "%s", error.text);
    const int status = rules_load(args, rules ? rules : config_option_tell(args), &config);
    if (status)
        return status;
    struct asked asked = {.config = config,
                          .labels = labels,
                          .annotations = annotations,
                          .matching = json_array(),
                          .near = json_array()};
    for (size_t i = 0; i < config->ruleset->rule_count; i++)
        ask_rule(&asked, &config->ruleset->rules[i]);
    if (as_args_wants_json(args))
        print_json(&asked);
    else
        print_text(&asked);
    const bool is_matched = json_array_size(asked.matching) > 0;
    json_decref(asked.matching);
    json_decref(asked.near);
    return is_matched ? AS_EXIT_OK : AS_EXIT_NO;
}
