/*
 * Scaling policies in the daemon: the watch of the cluster `default`, and the rule set that they
 * make with the rule files. All replicas watch, so that a new leader knows the policies.
 *
 * Changes within JOIN_EVERY_US are taken together. While the API server is away, the last known
 * policies stay in force. A leader waits AWAIT_US for the first list before it opens the state:
 * the rules of policies have a say in what is restored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/kube/policy_definition.h>
#include <alertscaler/kube/policy_status.h>
#include <alertscaler/kube/policy_watch.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/runtime/policy_report.h>

#include "daemon_private.h"

#define JOIN_SOON_US  (100 * AS_US_PER_MS) /* for changes that come together */
#define JOIN_EVERY_US (500 * AS_US_PER_MS)
#define AWAIT_US      (15 * AS_US_PER_S)

static as_mono_time policies_get_now(void)
{
    return as_system_clock.get_mono(&as_system_clock);
}

static void policies_plan_at(struct daemon *daemon, as_mono_time due)
{
    struct daemon_policies *policies = &daemon->policies;
    if (policies->due.us <= due.us)
        return;
    policies->due = due;
    daemon_arm(policies->timer, due.us - policies_get_now().us);
}

/* A join soon, after a change. */
static void policies_plan(struct daemon *daemon)
{
    const as_mono_time soon = {policies_get_now().us + JOIN_SOON_US};
    const as_mono_time earliest = daemon->policies.earliest;
    policies_plan_at(daemon, earliest.us > soon.us ? earliest : soon);
}

static void on_list_begin(void *context, const char *namespace)
{
    struct daemon *daemon = context;
    as_policy_set_begin_list(daemon->policies.set, namespace);
    as_policy_definition_refresh(daemon->policies.schema); /* a new one ends the watch */
}

static void on_definition(void *context, bool is_older)
{
    as_metrics_on_policy_definition(((struct daemon *)context)->metrics, is_older);
}

static void on_put(void *context, const char *text, size_t size)
{
    struct daemon *daemon = context;
    struct as_error error = AS_ERROR_INIT;
    bool is_changed = false;
    as_policy_reports_on_object(daemon->policies.reports, text, size);
    if (as_policy_set_put(daemon->policies.set, text, size, policies_get_now(), &is_changed,
                          &error) != 0)
        as_log(AS_LOG_ERROR, "a scaling policy cannot be read", AS_F("error", error.text));
    else if (is_changed)
        policies_plan(daemon);
    else
        policies_plan_at(daemon, as_policy_set_get_deadline(daemon->policies.set));
}

static void record_removed(void *context, const struct as_scaling_policy *policy)
{
    const struct daemon *daemon = context;
    as_log(AS_LOG_INFO, "a scaling policy is gone", AS_F("policy", policy->id));
    as_policy_reports_on_removed(daemon->policies.reports, policy->id);
    if (daemon->shell && !daemon->failed)
        as_shell_record_policy(daemon->shell,
                               &(struct as_policy_record){.event = AS_POLICY_REMOVED,
                                                          .namespace = policy->namespace,
                                                          .name = policy->name,
                                                          .uid = policy->uid,
                                                          .generation = policy->generation});
}

/*
 * Namespaces that a reload no longer selects: no watch tells that their policies are gone.
 */

struct dropped_spaces {
    const struct as_object_settings *objects;
    char **names;
    size_t count, capacity;
};

static bool is_space_selected(const struct as_object_settings *objects, const char *namespace)
{
    for (size_t i = 0; objects->is_enabled && i < objects->namespace_count; i++)
        if (as_str_glob(objects->namespaces[i], namespace))
            return true;
    return objects->is_enabled && objects->namespace_count == 0;
}

/* Policies of a namespace follow each other. */
static bool collect_dropped(void *context, const struct as_scaling_policy *policy)
{
    struct dropped_spaces *spaces = context;
    if (is_space_selected(spaces->objects, policy->namespace) ||
        (spaces->count > 0 && strcmp(spaces->names[spaces->count - 1], policy->namespace) == 0))
        return false;
    spaces->names = as_xgrow(spaces->names, spaces->count, &spaces->capacity, sizeof(char *));
    spaces->names[spaces->count++] = as_xstrdup(policy->namespace);
    return false;
}

static void drop_unselected(struct daemon *daemon)
{
    struct as_policy_set *set = daemon->policies.set;
    struct dropped_spaces spaces = {.objects = &daemon->config->settings.objects};
    as_policy_set_visit(set, collect_dropped, &spaces);
    for (size_t i = 0; i < spaces.count; i++) {
        as_policy_set_begin_list(set, spaces.names[i]);
        (void)as_policy_set_end_list(set, spaces.names[i], record_removed, daemon);
        free(spaces.names[i]);
    }
    free(spaces.names);
}

static void on_removed(void *context, const char *namespace, const char *name)
{
    struct daemon *daemon = context;
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("%s/%s", namespace, name);
    const struct as_scaling_policy *policy = as_policy_set_find(daemon->policies.set, id);
    if (!policy)
        return;
    record_removed(daemon, policy);
    (void)as_policy_set_remove(daemon->policies.set, namespace, name);
    policies_plan(daemon);
}

static void on_list_end(void *context, const char *namespace)
{
    struct daemon *daemon = context;
    struct daemon_policies *policies = &daemon->policies;
    if (as_policy_set_end_list(policies->set, namespace, record_removed, daemon) ||
        !policies->has_synced)
        policies_plan(daemon);
    if (*policies->error == '\0' || !as_policy_watch_is_synced(policies->watch))
        return; /* a namespace may still fail */
    as_log(AS_LOG_INFO, "scaling policies are watched again");
    *policies->error = '\0';
}

static void on_watch_failed(void *context, const char *message)
{
    struct daemon_policies *policies = &((struct daemon *)context)->policies;
    char error[AS_ERROR_SIZE];
    as_str_copy_line(message, error, sizeof(error));
    if (strcmp(policies->error, error) == 0)
        return; /* told already */
    memcpy(policies->error, error, sizeof(error));
    as_log(AS_LOG_WARN, "scaling policies cannot be watched: those that are known stay in force",
           AS_F("error", error));
}

static const struct as_policy_watch_listener policies_listener = {on_list_begin, on_put, on_removed,
                                                                  on_list_end, on_watch_failed};

static void record_policy(struct daemon *daemon, const struct as_scaling_policy *policy,
                          bool is_new)
{
    const char *spec = NULL;
    size_t size = 0;
    AS_CLEANUP(as_free_p) char *copy = NULL;
    if (is_new && policy->text &&
        json_scan_find_member(policy->text, policy->text_size, "spec", &spec, &size))
        copy = as_xstrndup(spec, size);
    as_shell_record_policy(
        daemon->shell,
        &(struct as_policy_record){
            .event = policy->reason == AS_POLICY_READY ? AS_POLICY_IN_FORCE : AS_POLICY_REFUSED,
            .namespace = policy->namespace,
            .name = policy->name,
            .uid = policy->uid,
            .generation = policy->generation,
            .reason = as_policy_reason_get_word(policy->reason),
            .message = policy->reason == AS_POLICY_READY ? NULL : policy->message,
            .spec = copy,
        });
}

/* A policy is told when it comes, and when it is in force or is refused for another reason. */
static void tell_policy(void *context, const struct as_scaling_policy *policy)
{
    struct daemon *daemon = context;
    const bool is_ready = policy->reason == AS_POLICY_READY;
    if (policy->is_known)
        return;
    as_log(is_ready ? AS_LOG_INFO : AS_LOG_WARN,
           is_ready ? "a scaling policy is in force" : "a scaling policy is not in force",
           AS_F("policy", policy->id), AS_FI("generation", policy->generation),
           AS_F("reason", as_policy_reason_get_word(policy->reason)),
           AS_F_IF("message", is_ready ? NULL : policy->message));
    as_policy_reports_on_judged(daemon->policies.reports, policy->id);
    if (daemon->shell && !daemon->failed)
        record_policy(daemon, policy, true);
}

static bool record_known(void *context, const struct as_scaling_policy *policy)
{
    record_policy(context, policy, false);
    return false;
}

/*
 * The status of policies, which the leader writes.
 */

#define REPORT_EVERY_US (250 * AS_US_PER_MS)

void daemon_policies_begin_term(struct daemon *daemon)
{
    struct daemon_policies *policies = &daemon->policies;
    if (!policies->set)
        return;
    as_policy_set_visit(policies->set, record_known, daemon);
    as_policy_reports_begin_term(policies->reports, policies_get_now());
    daemon_arm(policies->report, REPORT_EVERY_US);
}

void daemon_policies_on_effect(struct daemon *daemon, const struct as_effect *effect)
{
    if (daemon->policies.reports)
        as_policy_reports_on_effect(daemon->policies.reports, effect,
                                    as_system_clock.get_wall(&as_system_clock));
}

static void write_report(void *context, const struct as_scaling_policy *policy, const char *json,
                         size_t size, bool is_urgent, const struct as_policy_block *block)
{
    const struct daemon *daemon = context;
    as_policy_status_put(daemon->policies.writer, policy->namespace, policy->name, policy->uid,
                         json, size, is_urgent);
    if (block)
        as_policy_status_post_event(daemon->policies.writer, policy->namespace, policy->name,
                                    policy->uid, block->is_blocked ? block->reason : "Resumed",
                                    block->is_blocked ? block->message
                                                      : "The policy is not blocked any more.");
}

void daemon_policies_report(struct daemon *daemon, const struct as_view *view)
{
    struct daemon_policies *policies = &daemon->policies;
    if (!policies->writer || !view->engine)
        return;
    as_policy_reports_step(policies->reports, policies->set, view, write_report, daemon);
    daemon_arm(policies->report, REPORT_EVERY_US);
}

static void on_status_written(void *context, const char *namespace, const char *name,
                              const char *uid)
{
    const struct daemon *daemon = context;
    if (daemon->policies.reports)
        as_policy_reports_on_written(daemon->policies.reports, namespace, name, uid);
}

void daemon_policies_join(struct daemon *daemon)
{
    struct daemon_policies *policies = &daemon->policies;
    if (!policies->set || !daemon->config->settings.objects.is_enabled)
        return;
    policies->has_synced =
        policies->has_synced || (policies->watch && as_policy_watch_is_synced(policies->watch));
    policies->rules = as_policy_set_join(
        policies->set, &(struct as_policy_join){.settings = &daemon->config->settings,
                                                .files = daemon->config->ruleset,
                                                .now = policies_get_now(),
                                                .is_complete = policies->has_synced});
    as_policy_set_visit_placed(policies->set, tell_policy, daemon);
    policies->earliest.us = policies_get_now().us + JOIN_EVERY_US;
    policies->due = as_policy_set_get_deadline(policies->set);
    evtimer_del(policies->timer);
    if (policies->due.us != AS_MONO_NEVER.us)
        daemon_arm(policies->timer, policies->due.us - policies_get_now().us);
}

void daemon_on_policies_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct daemon_policies *policies = &daemon->policies;
    const as_mono_time now = policies_get_now();
    if (policies->due.us == AS_MONO_NEVER.us || daemon->stopping)
        return;
    if (policies->due.us > now.us) {
        daemon_arm(policies->timer, policies->due.us - now.us);
        return;
    }
    daemon_policies_join(daemon);
    if (daemon->source)
        as_query_checks_start(daemon->query_checks, daemon->config, daemon_get_rules(daemon),
                              daemon->source);
    if (!daemon->shell || daemon->failed)
        return;
    const struct as_engine_config engine = daemon_get_engine_config(daemon);
    as_shell_reload(daemon->shell, daemon_get_rules(daemon), &engine, daemon->config->digest,
                    daemon->targets, daemon->source, NULL, "");
}

bool daemon_policies_are_awaited(const struct daemon *daemon)
{
    const struct daemon_policies *policies = &daemon->policies;
    return policies->watch && !as_policy_watch_is_synced(policies->watch) &&
           policies_get_now().us - policies->started.us < AWAIT_US;
}

int daemon_policies_start(struct daemon *daemon, struct as_error *error)
{
    struct daemon_policies *policies = &daemon->policies;
    const struct as_settings *settings = &daemon->config->settings;
    const struct as_access_env *env = daemon->options->adapters->get_env(daemon->outside);
    const struct as_cluster_settings *cluster = as_settings_find_cluster(settings, "default");
    const struct as_kube_access_config access = {cluster->kubeconfig, cluster->context};
    daemon_policies_stop(daemon);
    if (!settings->objects.is_enabled)
        return 0;
    if (!policies->set) {
        policies->set = as_policy_set_new();
        policies->reports = as_policy_reports_new();
        policies->due = AS_MONO_NEVER;
        policies->has_synced = false;
    }
    drop_unselected(daemon);
    const int status = as_kube_access_new(&access, env, &policies->access, error);
    if (status != 0) {
        as_error_wrap(error, "objects: cluster default");
        return status;
    }
    as_kube_client_init(&policies->client, env, policies->access);
    policies->started = policies_get_now();
    policies->schema = as_policy_definition_start(&policies->client, on_definition, daemon);
    policies->writer = as_policy_status_writer_new(&policies->client, on_status_written, daemon);
    as_policy_reports_begin_term(policies->reports, policies->started);
    if (daemon->shell) /* a reload has enabled policies */
        daemon_arm(policies->report, REPORT_EVERY_US);
    policies->watch = as_policy_watch_start(&policies->client, &settings->objects,
                                            daemon_get_seed(), &policies_listener, daemon);
    return 0;
}

void daemon_policies_stop(struct daemon *daemon)
{
    struct daemon_policies *policies = &daemon->policies;
    if (!policies->watch)
        return;
    policies->watch = as_policy_watch_stop(policies->watch);
    policies->writer = as_policy_status_writer_free(policies->writer);
    policies->schema = as_policy_definition_stop(policies->schema);
    as_kube_client_deinit(&policies->client);
    policies->access = as_kube_access_free(policies->access);
}

void daemon_policies_disable(struct daemon *daemon)
{
    daemon_policies_stop(daemon);
    if (daemon->policies.set)
        drop_unselected(daemon);
    daemon->policies.rules = NULL;
    daemon->policies.due = AS_MONO_NEVER;
}

void daemon_policies_forget(struct daemon *daemon)
{
    daemon_policies_stop(daemon);
    daemon->policies.reports = as_policy_reports_free(daemon->policies.reports);
    daemon->policies.set = as_policy_set_free(daemon->policies.set);
    daemon->policies.rules = NULL;
}

void daemon_policies_note_others(struct daemon *daemon, const char *target,
                                 const struct as_other *others, size_t count)
{
    struct daemon_policies *policies = &daemon->policies;
    const char *name = as_engine_find_name(as_shell_get_engine(daemon->shell), target);
    char rival[256] = "";
    for (size_t i = 0; i < count && !*rival; i++)
        if (!others[i].is_paused)
            (void)snprintf(rival, sizeof(rival), "%s %s", others[i].kind, others[i].name);
    if (!policies->set || !as_policy_set_note_rival(policies->set, name, *rival ? rival : NULL))
        return;
    as_policy_reports_on_judged(policies->reports, name);
    policies_plan(daemon);
}
