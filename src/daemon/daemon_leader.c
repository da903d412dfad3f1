/*
 * Leadership decides whether there is a state: a term opens it and ends with closing it. All other
 * replicas answer 503 and wait. A single replica runs the same code, and leads forever.
 */
#include "daemon_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/log.h>

#include "trim.h"

bool daemon_is_leading(const struct daemon *daemon)
{
    struct as_leader *leader = daemon->leader;
    return leader->look(leader).is_leader && leader->may_act(leader);
}

/* Why there is no shell if another replica leads. */
static const char *print_why_not(struct daemon *daemon)
{
    const struct as_leader_view view = daemon->leader->look(daemon->leader);
    char holder[128] = "nobody leads yet";
    if (*view.holder && strcmp(view.holder, view.identity) != 0)
        snprintf(holder, sizeof(holder), "%.100s leads", view.holder);
    snprintf(daemon->why_not, sizeof(daemon->why_not), "not the leader; %s%s%.250s", holder,
             view.problem ? "; " : "", view.problem ? view.problem : "");
    return daemon->why_not;
}

void daemon_follow(struct daemon *daemon)
{
    as_receiver_set_shell(daemon->receiver, NULL, NULL, print_why_not(daemon));
}

/* Pending writes have no effect any more: do not wait. */
static void end_term(struct daemon *daemon)
{
    evtimer_del(daemon->recover);
    daemon->failed = false;
    daemon->failing_since = AS_MONO_NEVER;
    daemon_limit_patience(daemon, 0);
    daemon_close_state(daemon);
    as_trim_memory();
}

/* A single replica always leads: not worth a log line. */
static void log_change(struct daemon *daemon, const struct as_leader_view *view)
{
    if (daemon->is_alone)
        return;
    if (view->is_leader != daemon->was_leader)
        as_log(AS_LOG_INFO, view->is_leader ? "leading" : "not leading any more",
               AS_F("identity", view->identity));
    else if (!view->is_leader && strcmp(view->holder, daemon->last_holder) != 0)
        as_log(AS_LOG_INFO, "following", AS_F("leader", view->holder),
               AS_F("identity", view->identity));
    daemon->was_leader = view->is_leader;
    snprintf(daemon->last_holder, sizeof(daemon->last_holder), "%s", view->holder);
}

static void on_changed(void *context)
{
    struct daemon *daemon = context;
    const struct as_leader_view view = daemon->leader->look(daemon->leader);
    log_change(daemon, &view);
    daemon_set_annotation(daemon, view.paused);
    const bool has_state = daemon->shell || daemon->failed || daemon->opener;
    if (!view.is_leader && has_state)
        end_term(daemon);
    if (daemon->stopping)
        return;
    if (!view.is_leader)
        daemon_follow(daemon);
    else if (!has_state)
        daemon_open_state(daemon);
}

bool daemon_may_act(void *context)
{
    struct as_leader *leader = ((struct daemon *)context)->leader;
    return leader->may_act(leader);
}

enum as_permit daemon_get_permit(void *context)
{
    struct daemon *daemon = context;
    if (!daemon_may_act(daemon))
        return AS_PERMIT_NONE;
    if (as_kill_switch_look(daemon->halt.kill_switch).reason)
        return AS_PERMIT_UNDO;
    return daemon->stopping ? AS_PERMIT_FINISH : AS_PERMIT_ALL;
}

enum as_leave_permit daemon_get_leave_permit(void *context, const char *target,
                                             const char **why_out)
{
    const struct daemon *daemon = context;
    *why_out = "the state cannot be written";
    if (!daemon->shell || daemon->failed)
        return AS_LEAVE_HOLD;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    const char *why =
        as_engine_find_leave_obstacle(as_shell_get_engine(daemon->shell), target, now);
    *why_out = why ? why : "";
    return !why ? AS_LEAVE_GO : *why ? AS_LEAVE_HOLD : AS_LEAVE_GONE;
}

const char *daemon_find_rival(void *context, const char *target)
{
    const struct daemon *daemon = context;
    return daemon->shell ? as_engine_find_new_rival(as_shell_get_engine(daemon->shell), target)
                         : NULL;
}

void daemon_record_nodes(void *context, const struct as_nodes_record *record)
{
    const struct daemon *daemon = context;
    if (daemon->shell && !daemon->failed)
        as_shell_record_nodes(daemon->shell, record);
}

void daemon_on_others_found(void *context, const char *target, const struct as_other *others,
                            size_t count)
{
    struct daemon *daemon = context;
    if (!daemon->shell || daemon->failed || !as_others_take(daemon->others, target, others, count))
        return;
    for (size_t i = 0; i < count; i++)
        as_log(AS_LOG_WARN, "somebody else sizes the target too", AS_F("target", target),
               AS_F("kind", others[i].kind), AS_F("name", others[i].name),
               AS_F("paused", others[i].is_paused ? "yes" : "no"));
    if (count == 0)
        as_log(AS_LOG_INFO, "nobody else sizes the target any more", AS_F("target", target));
    as_shell_record_others(daemon->shell, &(struct as_others_record){.event = AS_OTHERS_FOUND,
                                                                     .target = target,
                                                                     .others = others,
                                                                     .other_count = count});
}

/* Called within the shell, so everything is freed in a later turn. */
void daemon_on_fenced(void *context)
{
    struct daemon *daemon = context;
    as_log(AS_LOG_WARN, "the term is over before it was renewed: nothing is done any more");
    daemon->failed = true;
    daemon->leader->doubt(daemon->leader);
    daemon_follow(daemon);
    as_waiting_lose(daemon->waiting);
    daemon_arm(daemon->recover, 0);
}

int daemon_open_leader(struct daemon *daemon, struct as_error *error)
{
    daemon->is_alone = daemon->config->settings.state.store == AS_STORE_SQLITE;
    return daemon->options->adapters->new_leader(daemon->outside, &daemon->config->settings,
                                                 daemon->instance, &daemon->leader, error);
}

void daemon_start_leader(struct daemon *daemon)
{
    const struct as_leader_callbacks callbacks = {on_changed, daemon};
    daemon_follow(daemon);
    daemon->leader->start(daemon->leader, &callbacks);
}

static void on_released(void *context)
{
    (void)event_base_loopbreak(((struct daemon *)context)->base);
}

void daemon_end(struct daemon *daemon, int status)
{
    if (status != 0)
        daemon->status = status;
    daemon->stopping = daemon->ending = true;
    evtimer_del(daemon->recover);
    evtimer_del(daemon->stop_timer);
    if (daemon->opener) { /* called again when it ends */
        daemon_limit_patience(daemon, 0);
        return;
    }
    daemon_close_state(daemon); /* writes everything before another replica may start */
    daemon->leader->release(daemon->leader, on_released, daemon);
}
