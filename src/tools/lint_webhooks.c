/*
 * Webhooks to us in Alertmanager's configuration: whether their notifications arrive complete.
 */
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "lint_run.h"
#include <alertscaler/doc/schema.h>

static bool is_word(const struct as_yaml_node *node, const char *const *words)
{
    for (; node && node->kind == AS_YAML_SCALAR && *words; words++) {
        if (strcmp(node->text, *words) == 0)
            return true;
    }
    return false;
}

/* The first rule that acts when its alert is resolved; NULL: none. */
static const struct lint_rule *find_ending(const struct lint_run *run, const char *receiver)
{
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct lint_rule *rule = &run->rules[i];
        const struct as_yaml_node *ending = as_yaml_find(rule->node, "on_resolved");
        if (ending && !is_word(ending, (const char *const[]){"nothing", NULL}) &&
            lint_takes_receiver(rule, receiver))
            return rule;
    }
    return NULL;
}

static void check_send_resolved(struct lint_run *run, const struct lint_receiver *receiver,
                                const struct as_yaml_node *webhook)
{
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO",
                                     "off",   "Off",   "OFF",   "n",  "N",  NULL};
    const struct as_yaml_node *value = lint_find(run->lint->alertmanager, webhook, "send_resolved");
    const struct lint_rule *rule = find_ending(run, receiver->name);
    const char *resync = run->config->settings.alertmanager.url_count > 0
                             ? ", and finds out only by `alertmanager.urls`"
                             : "";
    char place[LINT_PLACE_SIZE];
    if (!is_word(value, no))
        return;
    if (rule)
        lint_warn_alertmanager(run, value,
                               "alertscaler is not told that an alert has ended%s: `on_resolved` "
                               "of rule `%s` (%s) needs `send_resolved: true`",
                               resync, rule->rule->name,
                               lint_print_place(rule->tree, rule->node, place));
    else
        lint_warn_alertmanager(run, value,
                               "alertscaler is not told that an alert has ended%s%s: remove this "
                               "line",
                               resync, *resync ? "" : ", and rules go on until incidents expire");
}

bool lint_is_zero(const struct as_yaml_node *node)
{
    int64_t number = 1;
    return !node || node->kind != AS_YAML_SCALAR || as_yaml_is_null(node) ||
           as_number_parse_i64(node->text, node->size, &number) < 0 || number == 0;
}

/* Compares the webhook's scheme with the web configuration's TLS. */
static void check_scheme(struct lint_run *run, const struct as_yaml_node *webhook)
{
    const struct as_lint_sources *sources = &run->lint->sources;
    const struct as_yaml_node *url = as_yaml_find(webhook, "url");
    if (sources->web && sources->web->tls.is_set && as_str_starts_with(url->text, "http://"))
        lint_warn_alertmanager(run, url,
                               "alertscaler answers TLS only, as %s has `tls_server_config`: write "
                               "https://",
                               sources->web_config_file);
}

/* Whether an http_config sends a credential. */
static bool has_credential(const struct lint_alertmanager *alertmanager,
                           const struct as_yaml_node *http)
{
    static const char *const keys[] = {
        "authorization", "basic_auth",        "bearer_token",       "oauth2",
        "http_headers",  "bearer_token_file", "bearer_token_secret"};
    const struct as_yaml_node *tls = lint_find(alertmanager, http, "tls_config");
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        if (lint_find(alertmanager, http, keys[i]))
            return true;
    }
    return as_yaml_find(tls, "cert_file") || as_yaml_find(tls, "cert");
}

static void check_authorization(struct lint_run *run, const struct as_yaml_node *webhook)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    const struct as_yaml_node *root = as_yaml_get_root(alertmanager->tree);
    const struct as_yaml_node *http = lint_find(alertmanager, webhook, "http_config");
    const struct as_yaml_node *url = as_yaml_find(webhook, "url");
    if (!http)
        http = as_yaml_find(as_yaml_find(root, "global"), "http_config");
    if (lint_asks_for_credential(run) && !has_credential(alertmanager, http) &&
        !strchr(url->text, '@'))
        lint_warn_alertmanager(
            run, url,
            "this shows no credential, and alertscaler asks for one and answers "
            "401: add `%s`",
            alertmanager->object_name
                ? "httpConfig: {authorization: {credentials: {name: ..., key: ...}}}"
                : "http_config: {authorization: {credentials_file: ...}}");
}

static void check_webhook(struct lint_run *run, const struct lint_receiver *receiver,
                          const struct as_yaml_node *webhook)
{
    const struct as_yaml_node *max_alerts =
        lint_find(run->lint->alertmanager, webhook, "max_alerts");
    const struct as_yaml_node *payload = as_yaml_find(webhook, "payload");
    check_send_resolved(run, receiver, webhook);
    check_scheme(run, webhook);
    check_authorization(run, webhook);
    if (!lint_is_zero(max_alerts))
        lint_warn_alertmanager(run, max_alerts,
                               "of a group of more than %s alerts alertscaler never sees the "
                               "rest: remove `max_alerts`",
                               max_alerts->text);
    if (payload && !as_yaml_is_null(payload))
        lint_warn_alertmanager(run, schema_find_key(webhook, "payload"),
                               "alertscaler understands Alertmanager's own payload only and "
                               "answers 400 to this: remove `payload`");
}

void lint_check_webhooks(struct lint_run *run)
{
    const struct lint_receiver *receiver = run->lint->alertmanager->receivers;
    for (; receiver; receiver = receiver->hh.next) {
        for (size_t i = 0; i < receiver->webhook_count; i++)
            check_webhook(run, receiver, receiver->webhooks[i]);
    }
}
