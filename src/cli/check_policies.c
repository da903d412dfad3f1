/*
 * `alertscaler check --from-cluster`: the scaling policies that an API server has, judged by this
 * program with the settings of a configuration, before an upgrade of alertscaler. The judgement is
 * that of an admission (tools/admission_review.h). The definition of policies is compared, too: an
 * older definition drops newer keys silently.
 *
 * Nothing is changed. Conflicts with an HPA are not found.
 */
#include "check_policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/policy.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/tools/admission_review.h>

#include "cluster_read.h"
#include "http_call.h"

#define APPLY_DEFINITION                                                                           \
    "apply the definition of this program: alertscaler schema crd | kubectl apply --server-side "  \
    "-f -"

int check_policies_options(const struct as_args *args)
{
    static const char *const fitting[] = {"config.file", "format",         "lint-fatal",
                                          "namespace",   "all-namespaces", "kubeconfig",
                                          "context",     "from-cluster"};
    if (args->operand_count > 0)
        return as_cli_fail(args, "give FILEs or --from-cluster, and not both");
    for (const struct as_option *option = args->command->options; option->name; option++) {
        size_t i = 0;
        while (i < AS_ARRAY_SIZE(fitting) && strcmp(fitting[i], option->name) != 0)
            i++;
        if (i == AS_ARRAY_SIZE(fitting) && as_args_has(args, option->name))
            return as_cli_fail(args, "--%s has no meaning with --from-cluster", option->name);
    }
    return AS_EXIT_OK;
}

/* With the configuration that is given or found, else with an empty one. Its errors are added. */
static int policies_load_settings(const struct as_args *args, struct as_config **config_out,
                                  struct as_diagnostics *diagnostics)
{
    struct as_diagnostics found = AS_DIAGNOSTICS_INIT;
    const bool is_there =
        as_args_has(args, "config.file") || access(config_option_find(args), F_OK) == 0;
    const int status = is_there ? as_config_load(config_option_report(args), config_out, &found)
                                : as_config_load_rules(NULL, 0, config_out, &found);
    for (size_t i = 0; i < found.count && status != AS_CONFIG_OK; i++)
        as_diagnostics_add(diagnostics, &found.items[i]);
    as_diagnostics_deinit(&found);
    if (status == AS_CONFIG_OK && is_there && !(*config_out)->settings.objects.is_enabled)
        as_diagnostics_add(
            diagnostics,
            &(struct as_diagnostic){.severity = AS_SEVERITY_HINT,
                                    .file = (*config_out)->path,
                                    .message = "alertscaler reads no policies with this "
                                               "configuration: set `objects: {enabled: true}`"});
    return status == AS_CONFIG_OK ? AS_EXIT_OK : status < 0 ? AS_EXIT_USAGE : AS_EXIT_NO;
}

static const struct cluster_resource definitions = {
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"};
static const struct cluster_resource policies = {AS_POLICY_GROUP "/" AS_POLICY_VERSION,
                                                 AS_POLICY_PLURAL, AS_POLICY_KIND};

struct policy_check {
    const struct as_config *config;
    struct as_policy_set *set;
    struct as_diagnostics *diagnostics;
    struct checked_policies *checked;
};

static void policies_report(struct policy_check *check, enum as_severity severity, const char *file,
                            const char *message)
{
    as_diagnostics_add(
        check->diagnostics,
        &(struct as_diagnostic){.severity = severity, .file = file, .message = message});
}

/* The definition's annotation: an older schema, or none, is a warning. */
static void compare_schema(struct policy_check *check, const json_t *definition)
{
    const json_t *annotations =
        json_object_get(json_object_get(definition, "metadata"), "annotations");
    const char *text = json_string_value(json_object_get(annotations, AS_POLICY_SCHEMA_ANNOTATION));
    int64_t schema;
    char message[512];
    if (!text || as_number_parse_i64(text, strlen(text), &schema) != 0)
        (void)snprintf(message, sizeof(message),
                       "the definition has no annotation `%s`, so the API server may drop keys of "
                       "policies: %s",
                       AS_POLICY_SCHEMA_ANNOTATION, APPLY_DEFINITION);
    else if (schema < AS_POLICY_SCHEMA)
        (void)snprintf(message, sizeof(message),
                       "the definition has schema %lld, this program has schema %d, so the API "
                       "server drops newer keys of policies: %s",
                       (long long)schema, AS_POLICY_SCHEMA, APPLY_DEFINITION);
    else
        return;
    policies_report(check, AS_SEVERITY_WARNING, AS_POLICY_CRD_NAME, message);
}

/* 0; or AS_EXIT_USAGE: there are no policies to read. */
static int check_definition(struct policy_check *check, struct cluster_read *read)
{
    struct as_error error = AS_ERROR_INIT;
    json_t *definition;
    const int status =
        cluster_read_object(read, &definitions, AS_POLICY_CRD_NAME, &definition, &error);
    if (status == CLUSTER_READ_OK) {
        compare_schema(check, definition);
        json_decref(definition);
        return 0;
    }
    if (status == CLUSTER_READ_FORBIDDEN) {
        as_error_wrap(&error, "the schema of the definition is not compared");
        policies_report(check, AS_SEVERITY_HINT, AS_POLICY_CRD_NAME, error.text);
        return 0;
    }
    if (status == CLUSTER_READ_MISSING)
        as_error_wrap(&error, "the API server has no scaling policies: " APPLY_DEFINITION);
    policies_report(check, AS_SEVERITY_ERROR, "--from-cluster", error.text);
    return AS_EXIT_USAGE;
}

/* "shop/checkout: error: spec.rules[0].scaleUp.by: ..." */
static void report_policy(struct policy_check *check, const char *id,
                          const struct as_diagnostics *found)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct as_diagnostic *item = &found->items[i];
        AS_CLEANUP(as_free_p)
        char *message = as_xasprintf("%s%s%s", item->file, *item->file ? ": " : "", item->message);
        policies_report(check, item->severity, id, message);
    }
}

static void check_policy(struct policy_check *check, const json_t *object)
{
    AS_CLEANUP(as_diagnostics_deinit) struct as_diagnostics found = AS_DIAGNOSTICS_INIT;
    const json_t *meta = json_object_get(object, "metadata");
    const char *namespace_ = json_string_value(json_object_get(meta, "namespace"));
    const char *name = json_string_value(json_object_get(meta, "name"));
    AS_CLEANUP(as_free_p)
    char *id = as_xasprintf("%s/%s", namespace_ ? namespace_ : "", name ? name : "");
    char *text = json_dumps(object, JSON_COMPACT);
    struct as_error ignored = AS_ERROR_INIT;
    bool is_changed;
    if (!text)
        abort(); /* only without memory */
    const size_t size = strlen(text);
    const enum as_policy_reason reason =
        as_admission_judge(&check->config->settings, text, size, &found);
    report_policy(check, id, &found);
    check->checked->count++;
    check->checked->refused += reason != AS_POLICY_READY && reason != AS_POLICY_SHADOW;
    (void)!as_policy_set_put(check->set, text, size, session_clock.get_mono(&session_clock),
                             &is_changed, &ignored);
    free(text);
}

/* What one object does not show. */
static bool report_owner(void *context, const struct as_scaling_policy *policy)
{
    struct policy_check *check = context;
    if (policy->reason == AS_POLICY_TARGET_TAKEN || policy->reason == AS_POLICY_TOO_MANY) {
        policies_report(check, AS_SEVERITY_ERROR, policy->id, policy->message);
        check->checked->refused++;
    }
    return false;
}

int check_cluster_policies(const struct as_args *args, struct as_diagnostics *diagnostics,
                           struct checked_policies *checked_out)
{
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    AS_CLEANUP(cluster_read_close_p) struct cluster_read *read = NULL;
    AS_CLEANUP(as_policy_set_free_p) struct as_policy_set *set = as_policy_set_new();
    const int status = policies_load_settings(args, &config, diagnostics);
    if (status != AS_EXIT_OK)
        return status;
    struct policy_check check = {config, set, diagnostics, checked_out};
    const struct as_cluster_settings *cluster =
        as_settings_find_cluster(&config->settings, "default");
    const struct as_kube_access_config fallback = {cluster ? cluster->kubeconfig : NULL,
                                                   cluster ? cluster->context : NULL};
    struct as_error error = AS_ERROR_INIT;
    json_t *items = NULL, *item;
    size_t i;
    *checked_out = (struct checked_policies){.where = "all namespaces"};
    if (cluster_read_open(args, &fallback, &read, &error) != 0) {
        policies_report(&check, AS_SEVERITY_ERROR, "--from-cluster", error.text);
        return AS_EXIT_USAGE;
    }
    if (cluster_read_get_namespace(read))
        (void)snprintf(checked_out->where, sizeof(checked_out->where), "namespace %.63s",
                       cluster_read_get_namespace(read));
    if (check_definition(&check, read) != 0)
        return AS_EXIT_USAGE;
    if (cluster_read_list(read, &policies, &items, &error) != CLUSTER_READ_OK) {
        policies_report(&check, AS_SEVERITY_ERROR, "--from-cluster", error.text);
        return AS_EXIT_USAGE;
    }
    json_array_foreach(items, i, item)
    {
        check_policy(&check, item);
    }
    json_decref(items);
    (void)as_policy_set_join(set,
                             &(struct as_policy_join){.settings = &config->settings,
                                                      .files = config->ruleset,
                                                      .now = session_clock.get_mono(&session_clock),
                                                      .is_complete = true});
    as_policy_set_visit(set, report_owner, &check);
    return AS_EXIT_OK;
}
