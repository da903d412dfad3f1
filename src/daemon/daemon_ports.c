/*
 * The ports of the daemon (targets, metric sources, messages to people) and the timers that they
 * share. A reload replaces the ports: those of an earlier configuration are kept until their
 * answers have arrived. A new process searches all clusters for the nodes that an earlier process
 * marked.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/tools/engine_config.h>

#include "daemon_private.h"

static void on_counted(void *context, const char *receiver, enum as_notifier_count what,
                       uint64_t count)
{
    as_metrics_on_notice(((struct daemon *)context)->metrics, receiver, what, count);
}

struct as_notifier_config daemon_messages_begin(struct daemon *daemon)
{
    const struct as_settings *settings = &daemon->config->settings;
    daemon->messages.former = daemon->messages.messenger;
    daemon->messages.messenger =
        daemon->options->adapters->new_messenger(daemon->outside, settings);
    return (struct as_notifier_config){
        .receivers = settings->notify,
        .receiver_count = settings->notify_count,
        .messenger = daemon->messages.messenger,
        .instance = as_settings_get_instance(settings, daemon->messages.host),
        .external_url = daemon->external_url.base,
        .unread_us = AS_NOTIFIER_UNREAD_US,
        .counted = on_counted,
        .context = daemon,
    };
}

void daemon_messages_end_former(struct daemon *daemon)
{
    if (daemon->messages.former)
        daemon->messages.former->close(daemon->messages.former);
    daemon->messages.former = NULL;
}

void daemon_messages_close(struct daemon *daemon)
{
    daemon_messages_end_former(daemon);
    daemon->messages.former = daemon->messages.messenger;
    daemon->messages.messenger = NULL;
    daemon_messages_end_former(daemon);
}

/*
 * Nodes that are marked to leave: whether an earlier process may have left some, and what is logged
 * of the search for them.
 *
 * The search lists all nodes of all clusters. It happens only if a node group's instances are
 * nodes, or if the state knows marks or a node group.
 */

static bool has_node_group(const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->target_count; i++) {
        if (as_target_config_has_nodes(ruleset->targets[i]))
            return true;
    }
    return false;
}

void daemon_recover_nodes(struct daemon *daemon)
{
    if (!daemon->shell ||
        (!has_node_group(daemon_get_rules(daemon)) && !as_shell_may_have_marks(daemon->shell)))
        return;
    daemon->options->adapters->recover_targets(daemon->targets);
}

static struct node_recovery *get_recovery(struct daemon *daemon, const char *cluster)
{
    struct node_recovery *recovery;
    SLIST_FOREACH (recovery, &daemon->recoveries, next) {
        if (strcmp(recovery->cluster, cluster) == 0)
            return recovery;
    }
    recovery = as_xcalloc(1, sizeof(*recovery));
    recovery->cluster = as_xstrdup(cluster);
    SLIST_INSERT_HEAD(&daemon->recoveries, recovery, next);
    return recovery;
}

/* A search is repeated every minute. A missing right is news once, until a search succeeds; the
 * words of the API server may differ each time. Another failure is news if it is not the last one.
 */
static bool ports_is_news(struct node_recovery *logged, const struct as_nodes_recovery *recovery)
{
    char right[AS_MESSAGE_SIZE] = "";
    if (recovery->reason == AS_REASON_APPLIED) {
        *logged->error = *logged->right = '\0';
        return false;
    }
    if (recovery->reason == AS_REASON_FORBIDDEN) {
        as_str_copy_line(recovery->error, right, sizeof(right));
        right[strcspn(right, ":")] = '\0'; /* "list nodes" */
        if (strcmp(logged->right, right) == 0)
            return false;
        as_str_copy_line(right, logged->right, sizeof(logged->right));
    } else if (strcmp(logged->error, recovery->error) == 0) {
        return false;
    }
    as_str_copy_line(recovery->error, logged->error, sizeof(logged->error));
    return true;
}

void daemon_on_nodes_recovered(void *context, const struct as_nodes_recovery *recovery)
{
    struct daemon *daemon = context;
    if (ports_is_news(get_recovery(daemon, recovery->cluster), recovery))
        as_log(AS_LOG_WARN, "nodes that were marked to leave cannot be given back yet",
               AS_F("cluster", recovery->cluster), AS_F("error", recovery->error));
    if (recovery->undone > 0)
        as_log(AS_LOG_WARN, "nodes that were marked to leave take pods again",
               AS_F("cluster", recovery->cluster), AS_FI("nodes", recovery->undone));
    if (recovery->is_clean && daemon->shell && !daemon->failed)
        as_shell_forget_marks(daemon->shell);
}

void daemon_forget_recoveries(struct daemon *daemon)
{
    struct node_recovery *recovery;
    while ((recovery = SLIST_FIRST(&daemon->recoveries))) {
        SLIST_REMOVE_HEAD(&daemon->recoveries, next);
        free(recovery->cluster);
        free(recovery);
    }
}

#define COPIES_FREE_MIN (UINT64_C(64) << 20)

static bool daemon_may_copy_log(void *context)
{
    const struct daemon *daemon = context;
    return daemon->shell && !daemon->failed && !daemon->stopping;
}

void daemon_renew_log_copier(struct daemon *daemon)
{
    const struct as_access_env *env = daemon->options->adapters->get_env(daemon->outside);
    const struct log_copier_config config = {
        .settings = &daemon->config->settings.action_log,
        .history = daemon->history_log,
        .env = {env->http, env->loop, env->runner, env->clock, env->get_variable},
        .instance = daemon->instance,
        .free_min = COPIES_FREE_MIN,
        .is_leading = daemon_may_copy_log,
        .context = daemon,
    };
    log_copier_free(daemon->log_copier);
    daemon->log_copier = log_copier_new(&config);
}

#define TIMER_MAX_US    (30 * AS_US_PER_S)
#define RETIRE_AFTER_US (10 * AS_US_PER_S) /* for what they send beside the engine's calls */
#define RETIRE_LOOK_US  (1 * AS_US_PER_S)
#define RETIRED_MAX     4

void daemon_arm(struct event *timer, int64_t us)
{
    if (us < 0)
        us = 0;
    if (us > TIMER_MAX_US)
        us = TIMER_MAX_US;
    const struct timeval delay = {us / AS_US_PER_S, us % AS_US_PER_S};
    if (evtimer_add(timer, &delay) != 0)
        abort(); /* only without memory */
}

uint64_t daemon_get_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        abort();
    return seed;
}

static void on_source_answer(void *context, const char *source, const char *outcome,
                             int64_t duration_us)
{
    as_metrics_on_source(((struct daemon *)context)->metrics, source, outcome, duration_us);
}

static void on_query_judged(void *context, const char *written, enum as_query_verdict verdict,
                            const char *error)
{
    as_query_checks_note(((struct daemon *)context)->query_checks, written, verdict, error);
}

void daemon_new_source(struct daemon *daemon)
{
    daemon->source = daemon->options->adapters->new_source(
        daemon->outside, &daemon->config->settings, on_source_answer, on_query_judged, daemon);
    as_query_checks_start(daemon->query_checks, daemon->config, daemon_get_rules(daemon),
                          daemon->source);
}

static void log_trace(void *context, const struct as_trace_line *line)
{
    as_log(AS_LOG_TRACE, line->kind, AS_F("name", line->name), AS_F_IF("target", line->target),
           AS_F_IF("detail", line->detail),
           line->call_id ? AS_FI("ticket", line->call_id) : AS_F_IF("ticket", NULL));
}

struct as_engine_config daemon_get_engine_config(const struct daemon *daemon)
{
    struct as_engine_config config =
        as_engine_config_make(&daemon->config->settings, daemon_get_seed());
    config.dry_run = config.dry_run || daemon->options->dry_run;
    config.spreads_evaluations = true;
    config.trace = as_log_is_enabled(AS_LOG_TRACE) ? log_trace : NULL;
    config.scopes =
        as_credentials_get_scopes(as_auth_get_credentials(daemon->auth), &config.scope_count);
    return config;
}

void daemon_forget_config(const struct daemon *daemon, struct as_config *old)
{
    if (!daemon->opener || daemon->opening_config != old)
        as_config_free(old); /* else freed when the opener ends */
}

/* Ports of earlier configurations. */

static void close_retired(struct daemon *daemon, struct retired *retired)
{
    STAILQ_REMOVE(&daemon->retired, retired, retired, next);
    daemon->retired_count--;
    retired->targets->close(retired->targets);
    retired->source->close(retired->source);
    as_config_free(retired->config);
    free(retired);
}

/* The engine waits for an answer. */
static bool has_calls(const struct daemon *daemon, const struct retired *retired)
{
    return daemon->shell && as_shell_has_calls(daemon->shell, retired->targets);
}

void daemon_close_retired(struct daemon *daemon)
{
    struct retired *retired;
    while ((retired = STAILQ_FIRST(&daemon->retired)))
        close_retired(daemon, retired);
    evtimer_del(daemon->retire);
}

bool daemon_make_retired_room(struct daemon *daemon)
{
    struct retired *retired = STAILQ_FIRST(&daemon->retired), *next;
    for (; retired && daemon->retired_count >= RETIRED_MAX; retired = next) {
        next = STAILQ_NEXT(retired, next);
        if (!has_calls(daemon, retired)) /* nodes that it drains have their marks */
            close_retired(daemon, retired);
    }
    return daemon->retired_count < RETIRED_MAX;
}

void daemon_on_retire(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct retired *retired = STAILQ_FIRST(&daemon->retired), *next;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    for (; retired; retired = next) {
        next = STAILQ_NEXT(retired, next);
        if (retired->until.us <= now.us && !has_calls(daemon, retired) &&
            retired->targets->is_idle(retired->targets)) /* draining nodes may take long */
            close_retired(daemon, retired);
    }
    if (!STAILQ_EMPTY(&daemon->retired))
        daemon_arm(daemon->retire, RETIRE_LOOK_US);
    else if (daemon->targets)
        daemon_recover_nodes(daemon); /* unfinished work */
}

bool daemon_are_ports_idle(const struct daemon *daemon)
{
    const struct retired *retired;
    bool is_idle = !daemon->targets || daemon->targets->is_idle(daemon->targets);
    STAILQ_FOREACH (retired, &daemon->retired, next)
        is_idle = is_idle && retired->targets->is_idle(retired->targets);
    return is_idle;
}

/* The engine still waits for answers to their requests. */
void daemon_retire_ports(struct daemon *daemon, struct as_config *old_config)
{
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    struct retired *retired = as_xcalloc(1, sizeof(*retired));
    daemon->options->adapters->retire_targets(daemon->targets);
    retired->targets = daemon->targets;
    retired->source = daemon->source;
    retired->config = old_config;
    retired->until.us = as_time_add(now.us, RETIRE_AFTER_US);
    STAILQ_INSERT_TAIL(&daemon->retired, retired, next);
    daemon->retired_count++;
    daemon_arm(daemon->retire, RETIRE_LOOK_US);
}
