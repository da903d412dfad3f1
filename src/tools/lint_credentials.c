/*
 * The receiver's credentials, with the web configuration if given: whether everyone may send and
 * read, and users that cannot exist.
 */
#include "lint_run.h"

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/error.h>
#include <alertscaler/rules/web_config.h>

#include <alertscaler/doc/schema.h>

static bool has_user(const struct as_web_settings *web, const char *name)
{
    for (size_t i = 0; i < web->user_count; i++) {
        if (strcmp(web->users[i].name, name) == 0)
            return true;
    }
    return false;
}

static void check_users(struct lint_run *run, const struct as_yaml_node *receiver)
{
    const struct as_lint_sources *sources = &run->lint->sources;
    const struct as_receiver_settings *settings = &run->config->settings.receiver;
    const struct as_yaml_node *users = as_yaml_find(receiver, "users");
    for (size_t i = 0; i < settings->user_count && users && i < users->count; i++) {
        if (!has_user(sources->web, settings->users[i].name))
            lint_warn(run, run->settings_tree, as_yaml_find(users->items[i], "name"),
                      "%s has no user `%s` under basic_auth_users", sources->web_config_file,
                      settings->users[i].name);
    }
}

/* Without a web configuration, `users` implies that one exists and has users. */
static bool is_open(const struct lint_run *run)
{
    static const struct as_web_settings none = {0};
    const struct as_lint_sources *sources = &run->lint->sources;
    const struct as_receiver_settings *settings = &run->config->settings.receiver;
    if (!sources->web && (sources->web_config_file || settings->user_count > 0))
        return false;
    return as_web_is_open(sources->web ? sources->web : &none, settings);
}

bool lint_asks_for_credential(const struct lint_run *run)
{
    static const struct as_web_settings none = {0};
    const struct as_web_settings *web = run->lint->sources.web;
    return !as_web_is_open(web ? web : &none, &run->config->settings.receiver);
}

static void warn_open(struct lint_run *run, const struct as_yaml_node *root)
{
    const bool has_web = run->lint->sources.web;
    const struct as_yaml_node *key = schema_find_key(root, "receiver");
    char message[AS_ERROR_SIZE];
    (void)snprintf(message, sizeof(message),
                   "no credentials are configured%s: everyone who can connect may send alerts and "
                   "read; give `receiver.tokens`%s",
                   has_web ? ", nor users in the web configuration" : "",
                   has_web
                       ? ""
                       : ", or name the web configuration that asks for users or certificates with "
                         "--web.config.file");
    if (key)
        lint_warn(run, run->settings_tree, key, "%s", message);
    else
        as_diagnostics_add(run->diagnostics,
                           &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING,
                                                   .file = run->config->path,
                                                   .message = message});
}

void lint_check_credentials(struct lint_run *run)
{
    if (!run->settings_tree)
        return;
    const struct as_yaml_node *root = as_yaml_get_root(run->settings_tree);
    if (run->lint->sources.web)
        check_users(run, as_yaml_find(root, "receiver"));
    if (is_open(run))
        warn_open(run, root);
}
