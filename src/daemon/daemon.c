/*
 * Life cycle: start, signals, stop. One structure owns everything, and all runs on one event loop.
 */
#include "daemon_private.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include <alertscaler/base/log.h>

#include <alertscaler/notify/notify.h>

#define STOP_GRACE_US (20 * AS_US_PER_S) /* for running work after a stop was requested */
#define TIMER_MAX_US  (30 * AS_US_PER_S)

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

static void finish(struct daemon *daemon)
{
    struct as_error error = AS_ERROR_INIT;
    int status = daemon->failed ? 1 : 0;
    as_auth_conclude(daemon->auth);
    if (daemon->shell && !daemon->failed) {
        as_shell_record_stop(daemon->shell);
        daemon_limit_patience(daemon, daemon->config->settings.state.lease.renew_deadline_us / 2);
        if (as_storage_drain(daemon->storage, &error) != 0) {
            as_log(AS_LOG_ERROR, "stop not recorded", AS_F("error", error.text));
            status = 1;
        }
    }
    daemon_end(daemon, status);
}

static void on_drained(void *context)
{
    ((struct daemon *)context)->drained = true;
}

/* Checks at intervals until nothing is running, or the time is over. */
static void on_stop_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    static const int64_t interval = 10 * AS_US_PER_MS;
    const bool idle = (!daemon->shell || as_shell_is_idle(daemon->shell)) &&
                      daemon_are_ports_idle(daemon); /* nodes may still be restored */
    const bool in_time = as_system_clock.get_mono(&as_system_clock).us < daemon->stop_deadline.us;
    if (in_time && !(daemon->drained && idle)) {
        daemon_arm(daemon->stop_timer, interval);
        return;
    }
    if (!in_time)
        as_log(AS_LOG_WARN,
               "stopping with something under way: it is looked after at the next start");
    finish(daemon);
}

static void stop(struct daemon *daemon)
{
    if (daemon->stopping)
        return;
    daemon->stopping = true;
    daemon->stop_deadline.us = as_system_clock.get_mono(&as_system_clock).us + STOP_GRACE_US;
    as_log(AS_LOG_INFO, "stopping");
    notify_send(daemon->notify, "STOPPING=1");
    as_receiver_set_shell(daemon->receiver, NULL, NULL, "stopping");
    as_http_server_drain(daemon->server, on_drained, daemon);
    if (daemon->shell)
        as_shell_stop(daemon->shell);
    daemon_arm(daemon->stop_timer, 0);
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
    struct daemon *daemon = context;
    switch (number) {
    case SIGHUP: daemon_request_reload(daemon, NULL, ""); break;
    case SIGUSR1:
        if (daemon->storage)
            as_storage_reopen_log(daemon->storage);
        break;
    default: stop(daemon); break;
    }
}

static struct event *new_timer(struct daemon *daemon, event_callback_fn callback)
{
    struct event *timer = evtimer_new(daemon->base, callback, daemon);
    if (!timer)
        abort();
    return timer;
}

static void make_events(struct daemon *daemon)
{
    static const int signals[AS_ARRAY_SIZE(daemon->signals)] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    daemon->base = event_base_new();
    if (!daemon->base || sigaction(SIGPIPE, &ignore, NULL) != 0)
        abort();
    for (size_t i = 0; i < AS_ARRAY_SIZE(signals); i++) {
        daemon->signals[i] = evsignal_new(daemon->base, signals[i], on_signal, daemon);
        if (!daemon->signals[i] || evsignal_add(daemon->signals[i], NULL) != 0)
            abort();
    }
    daemon->deadline = new_timer(daemon, daemon_on_deadline);
    daemon->recover = new_timer(daemon, daemon_on_recover);
    daemon->retire = new_timer(daemon, daemon_on_retire);
    daemon->stop_timer = new_timer(daemon, on_stop_timer);
    daemon->halt.timer = new_timer(daemon, daemon_on_halt_timer);
    daemon->web.timer = new_timer(daemon, daemon_on_web_timer);
    daemon->watch.timer = new_timer(daemon, daemon_on_watch_timer);
    daemon->reload.timer = new_timer(daemon, daemon_on_reload_timer);
    daemon->look_timer = new_timer(daemon, daemon_on_look_timer);
}

/* Without its events each signal has its default effect, which would end the process without our
 * exit status. A second SIGTERM may come until the end. */
static void free_events(struct daemon *daemon)
{
    sigset_t all;
    sigfillset(&all);
    if (pthread_sigmask(SIG_BLOCK, &all, NULL) != 0)
        abort();
    for (size_t i = 0; i < AS_ARRAY_SIZE(daemon->signals); i++)
        event_free(daemon->signals[i]);
    event_free(daemon->deadline);
    event_free(daemon->recover);
    event_free(daemon->retire);
    event_free(daemon->stop_timer);
    event_free(daemon->halt.timer);
    event_free(daemon->web.timer);
    event_free(daemon->watch.timer);
    event_free(daemon->reload.timer);
    event_free(daemon->look_timer);
    event_base_free(daemon->base);
}

static int start(struct daemon *daemon, struct as_error *error)
{
    int status = as_sandbox_protect_memory(daemon->options->sandbox, error);
    if (status == 0)
        status = daemon_load_config(daemon, error);
    if (status == 0)
        status = daemon_open_leader(daemon, error);
    if (status == 0)
        status = daemon_open_server(daemon, error);
    if (status == 0)
        status = daemon_enter_sandbox(daemon, error); /* before other threads start */
    if (status == 0) {
        daemon->fill =
            as_history_fill_new(as_api_get_history(daemon->api), daemon->base,
                                daemon->config->settings.action_log.path, AS_HISTORY_FILL_MAX);
        daemon_start_leader(daemon);
    }
    if (status == 0) {
        daemon_web_watch(daemon);
        daemon_watch_files(daemon);
    }
    if (status != 0 || daemon->is_alone)
        return status;
    /* A standby may wait forever for its term, and still is ready. */
    daemon_tell_address(daemon);
    notify_send(daemon->notify, "READY=1");
    return 0;
}

static void release(struct daemon *daemon)
{
    daemon_close_state(daemon);
    as_http_server_free(daemon->server);
    daemon_forget_reload(daemon);
    as_receiver_free(daemon->receiver);
    as_auth_free(daemon->auth); /* it uses `outside` */
    as_forms_free(daemon->forms);
    as_operators_free(daemon->operators);
    as_waiting_free(daemon->waiting);
    as_kill_switch_free(daemon->halt.kill_switch);
    if (daemon->leader)
        daemon->leader->close(daemon->leader);
    daemon->options->adapters->free_outside(daemon->outside);
    as_history_fill_free(daemon->fill);
    as_api_free(daemon->api);
    as_metrics_free(daemon->metrics);
    as_others_free(daemon->others);
    daemon_forget_recoveries(daemon);
    (void)daemon_web_free(daemon->web.file);
    as_config_free(daemon->config);
    as_sandbox_free(daemon->sandbox);
    free_events(daemon);
    if (daemon->notify >= 0)
        close(daemon->notify);
}

static bool offer_login(void *context, struct as_http_exchange *exchange)
{
    return as_forms_offer_login(((struct daemon *)context)->forms, exchange);
}

int as_daemon_run(const struct as_daemon_options *options)
{
    struct daemon daemon = {.options = options, .failing_since = AS_MONO_NEVER};
    struct as_error error = AS_ERROR_INIT;
    STAILQ_INIT(&daemon.retired);
    SLIST_INIT(&daemon.recoveries);
    STAILQ_INIT(&daemon.reload.requests);
    daemon.reload.earliest.us = INT64_MIN;
    daemon.notify = notify_open();
    as_boot_id_read(daemon.boot);
    as_instance_print(daemon.instance);
    make_events(&daemon);
    daemon.started = as_system_clock.get_wall(&as_system_clock);
    daemon.metrics = as_metrics_new();
    daemon.others = as_others_new();
    daemon.api =
        as_api_new(&(struct as_api_config){daemon.instance, daemon.metrics, daemon_look, &daemon});
    daemon.outside =
        options->adapters->new_outside(daemon.base, &as_system_clock, daemon_on_transfer, &daemon);
    options->adapters->set_permit(daemon.outside, daemon_get_permit, daemon_get_leave_permit,
                                  daemon_find_rival, daemon_record_nodes, daemon_on_others_found,
                                  daemon_on_nodes_recovered, &daemon);
    daemon.auth =
        as_auth_new(&(struct as_auth_config){.clock = &as_system_clock,
                                             .base = daemon.base,
                                             .enable_admin_api = options->enable_admin_api,
                                             .denied = daemon_on_denied,
                                             .offer_login = offer_login,
                                             .context = &daemon});
    daemon.waiting = as_waiting_new();
    daemon.operators = as_operators_new(daemon.waiting);
    daemon.forms = as_forms_new(&(struct as_forms_config){.auth = daemon.auth,
                                                          .api = daemon.api,
                                                          .external_url = &daemon.external_url,
                                                          .order = daemon_on_order,
                                                          .context = &daemon});
    as_operators_set_form(daemon.operators, as_forms_answer_order, daemon.forms);
    daemon.halt.kill_switch = as_kill_switch_new();
    daemon.receiver = as_receiver_new(&(struct as_receiver_config){.clock = &as_system_clock,
                                                                   .metrics = daemon.metrics,
                                                                   .auth = daemon.auth,
                                                                   .waiting = daemon.waiting,
                                                                   .seed = daemon_get_seed()});

    if (start(&daemon, &error) == 0) {
        daemon_on_halt_timer(-1, 0, &daemon);
        if (event_base_dispatch(daemon.base) < 0)
            daemon.status = 1;
        as_log(AS_LOG_INFO, "stopped");
    } else {
        as_log(AS_LOG_ERROR, "cannot start", AS_F("error", error.text));
        daemon.status = 1;
    }
    release(&daemon);
    return daemon.status;
}
