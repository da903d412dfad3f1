/*
 * The daemon's one structure, and what each file does:
 *
 *   daemon.c         start, signals, stop
 *   daemon_leader.c  leadership: whether there is a state
 *   daemon_state.c   storage, shell and targets: open, fail, recover
 *   daemon_effects.c passes on the engine's effects
 *   daemon_tell.c    who is told what is done
 *   daemon_halt.c    the kill switch
 *   daemon_nodes.c   nodes that are marked to leave
 *   daemon_config.c  configuration: load, reload as a whole
 *   daemon_reload.c  requests for a reload
 *   daemon_watch.c   reloads by itself when files change
 *   daemon_web.c     the file of --web.config.file
 *   daemon_http.c    the server, and what it shows
 *
 * Long because all of them share one structure.
 */
#ifndef ALERTSCALER_SRC_DAEMON_DAEMON_PRIVATE_H
#define ALERTSCALER_SRC_DAEMON_DAEMON_PRIVATE_H

#include <bsd/sys/queue.h>

#include <event2/event.h>

#include <alertscaler/base/file.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/daemon/daemon.h>
#include <alertscaler/http/tls_server.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/external_url.h>
#include <alertscaler/rules/web_config.h>
#include <alertscaler/runtime/metrics.h>
#include <alertscaler/runtime/shell.h>
#include <alertscaler/ui/api.h>

#include "kill_switch.h"
#include "sandbox.h"
#include "state_opener.h"
#include <alertscaler/auth/auth.h>
#include <alertscaler/daemon/instance.h>
#include <alertscaler/kube/kube_rivals.h>
#include <alertscaler/port/system_clock.h>
#include <alertscaler/runtime/operators.h>
#include <alertscaler/runtime/receiver.h>
#include <alertscaler/ui/forms.h>
#include <alertscaler/ui/history_fill.h>
#include <alertscaler/ui/route.h>

struct retired { /* ports of an earlier configuration, whose answers may still come */
    STAILQ_ENTRY(retired) next;
    struct as_target_port *targets;
    struct as_source_port *source;
    struct as_config *config; /* their settings */
    as_mono_time until;
};
STAILQ_HEAD(retired_list, retired);

struct reload_request; /* waits for its answer */
STAILQ_HEAD(reload_requests, reload_request);

struct daemon_reload {
    bool is_wanted;
    char *credential; /* of the first request that the next reload answers; "": a signal */
    struct reload_requests requests;
    as_mono_time earliest; /* the next reload */
    struct event *timer;
};

struct daemon_web_file { /* --web.config.file; all NULL without it */
    struct as_web_config *config;
    struct as_tls_server *tls; /* NULL: no TLS */
    struct as_file_stamp stamp;
};

struct daemon_web {
    struct daemon_web_file file; /* in force */
    struct as_file_stamp seen;   /* at the last look */
    unsigned changes;            /* looks since the file was found changing */
    struct as_file_stamp tried;  /* the changed file at the last attempt */
    struct as_error error;       /* why it is not in force (was logged); or "" */
    struct event *timer;
};

struct daemon_watch {               /* --config.auto-reload-interval */
    struct as_config_stamps stamps; /* of the files at the last look */
    struct as_file_stamp web;       /* of --web.config.file at the last look */
    struct as_config_digests found; /* at the last look */
    unsigned changes;               /* looks since the files were found changing */
    struct as_config_digests tried; /* the changed files at the last attempt */
    struct as_error error;          /* why they are not in force (was logged); or "" */
    struct event *timer;
};

/* Of one cluster: what was logged of searches for marked nodes. */
struct node_recovery {
    SLIST_ENTRY(node_recovery) next;
    char *cluster;
    char error[AS_MESSAGE_SIZE]; /* of the last failure; "" after a success */
    char right[AS_MESSAGE_SIZE]; /* what was forbidden since the last success; "" */
};
SLIST_HEAD(node_recovery_list, node_recovery);

struct daemon_halt {
    struct as_kill_switch *kill_switch;
    bool is_set; /* when last checked */
    struct event *timer;
};

struct daemon_tell {
    struct as_messenger *messenger, *former; /* former: during a reload */
    char host[AS_INSTANCE_NAME_SIZE];
};

struct daemon {
    const struct as_daemon_options *options;
    struct as_config *config;
    struct event_base *base;
    struct event *signals[4];
    struct event *deadline, *recover, *retire, *stop_timer, *look_timer;
    char boot[AS_BOOT_ID_SIZE], instance[AS_INSTANCE_SIZE];
    struct as_outside *outside;
    struct as_leader *leader;
    bool is_alone; /* single replica: the state is a local file */
    char why_not[AS_ERROR_SIZE], last_holder[AS_ERROR_SIZE];
    bool was_leader, has_led;
    struct as_target_port *targets;
    struct as_source_port *source;
    struct retired_list retired;
    struct node_recovery_list recoveries;
    size_t retired_count;
    struct daemon_reload reload;
    struct as_digest named_files; /* as named_files_hash before they were loaded */
    struct daemon_tell tell;
    struct state_opener *opener;            /* opening the state; there is no storage then */
    const struct as_config *opening_config; /* its settings: ours unless reloaded since */
    struct as_store_patience patience;      /* for the state that is open or being opened */
    struct as_storage *storage;
    struct as_shell *shell;
    struct as_auth *auth;
    struct daemon_web web;
    struct daemon_watch watch;
    struct as_waiting *waiting; /* not durable requests */
    struct as_receiver *receiver;
    struct as_operators *operators;
    struct as_forms *forms;
    struct daemon_halt halt;
    struct as_metrics *metrics;
    struct as_others *others;
    struct as_api *api;
    struct as_history_fill *fill;
    struct as_routes routes;
    struct as_http_server *server;
    struct as_external_url external_url; /* known as soon as the server listens */
    struct as_sandbox *sandbox;
    as_wall_time started;
    bool failed;                /* the storage failed and is not recovered yet */
    as_mono_time failing_since; /* INT64_MAX: the last attempt to open the state succeeded */
    bool stopping, drained, ending;
    as_mono_time stop_deadline;
    int status;
    int notify; /* systemd's socket; -1: none */
};

/* daemon.c */
void daemon_arm(struct event *timer, int64_t us); /* may fire early: check the clock */
uint64_t daemon_get_seed(void);

/* daemon_leader.c */
int daemon_open_leader(struct daemon *daemon, struct as_error *error) AS_MUST_USE;
void daemon_start_leader(struct daemon *daemon);
bool daemon_is_leading(const struct daemon *daemon);
void daemon_follow(struct daemon *daemon);       /* tells requests why there is no shell */
bool daemon_may_act(void *context);              /* for the shell */
void daemon_on_fenced(void *context);            /* for the shell */
enum as_permit daemon_get_permit(void *context); /* for targets, as these */
enum as_leave_permit daemon_get_leave_permit(void *context, const char *target,
                                             const char **why_out);
const char *daemon_find_rival(void *context, const char *target);
void daemon_record_nodes(void *context, const struct as_nodes_record *record);
void daemon_on_others_found(void *context, const char *target, const struct as_other *others,
                            size_t count);
/* Closes the state, releases the leadership, and leaves the loop. If that must wait, it is called
 * again later. */
void daemon_end(struct daemon *daemon, int status);

/* daemon_state.c */
void daemon_open_state(struct daemon *daemon); /* as leader, with no part of it open */
void daemon_close_state(struct daemon *daemon);
/* From now on the state may wait this long at most. */
void daemon_limit_patience(struct daemon *daemon, int64_t us);
void daemon_forget_config(const struct daemon *daemon, struct as_config *old); /* frees it */
struct as_engine_config daemon_get_engine_config(const struct daemon *daemon);
void daemon_retire_ports(struct daemon *daemon, struct as_config *old_config);
/* False: too many earlier configurations still wait for answers; a reload must wait too. */
bool daemon_make_retired_room(struct daemon *daemon) AS_MUST_USE;
bool daemon_are_ports_idle(const struct daemon *daemon) AS_MUST_USE; /* including retired ones */
void daemon_on_deadline(evutil_socket_t fd, short what, void *context);
void daemon_on_recover(evutil_socket_t fd, short what, void *context);
void daemon_on_retire(evutil_socket_t fd, short what, void *context);
void daemon_on_transfer(void *context, const char *client_name, const char *operation,
                        const char *code, int64_t duration_us);
struct as_source_port *daemon_new_source(struct daemon *daemon,
                                         const struct as_settings *settings) AS_MUST_USE;

/* daemon_nodes.c */
/* Searches all clusters for nodes that an earlier process marked, if there may be some. */
void daemon_recover_nodes(struct daemon *daemon);
void daemon_on_nodes_recovered(void *context, const struct as_nodes_recovery *recovery);
void daemon_forget_recoveries(struct daemon *daemon); /* frees them */

/* daemon_effects.c */
void daemon_on_effect(void *context, const struct as_effect *effect); /* shell callback */

/* daemon_tell.c */
/* By the present configuration, with a messenger of its own. Once the shell has it, end the former
 * messenger. */
struct as_tell_config daemon_tell_begin(struct daemon *daemon);
void daemon_tell_end_former(struct daemon *daemon);
void daemon_tell_close(struct daemon *daemon);

/* daemon_halt.c */
void daemon_look_at_kill_switch(struct daemon *daemon);
void daemon_on_halt_timer(evutil_socket_t fd, short what, void *context);
/* The leader's Lease sets the kill switch: its reason; NULL: not set. Call it after each change. */
void daemon_set_annotation(struct daemon *daemon, const char *reason);

/* daemon_config.c */
int daemon_load_config(struct daemon *daemon, struct as_error *error) AS_MUST_USE;
/* 0; or a negative errno, with advice. `key`: `state` or `action_log`; `path`: its value. */
int daemon_check_writable(const char *key, const char *path, struct as_error *error) AS_MUST_USE;
int daemon_enter_sandbox(struct daemon *daemon, struct as_error *error) AS_MUST_USE;
/* Whether all files have the content that is in force: a reload would change nothing. */
bool daemon_is_in_force(const struct daemon *daemon) AS_MUST_USE;
/* `expected`: the digests that the files had at the last look, or NULL; if the load finds others,
 * or another --web.config.file than that look, it changes and logs nothing: -EAGAIN. `repeat_of`:
 * the error of an earlier attempt with these files, which is not logged again; or NULL. */
int daemon_reload_again(struct daemon *daemon, const char *credential,
                        const struct as_config_digests *expected, const char *repeat_of,
                        struct as_error *error) AS_MUST_USE;

/* 0 or `r`, with an error. Prints all problems first, unless they only repeat; frees the
 * diagnostics. */
int daemon_conclude_load(const struct daemon *daemon, const char *path,
                         struct as_diagnostics *diagnostics, bool is_repeat, int status,
                         struct as_error *error) AS_MUST_USE;

/* daemon_reload.c */
/* Answers the exchange, later; NULL: a signal. Requests within a second share one reload. */
void daemon_request_reload(void *context, struct as_http_exchange *exchange,
                           const char *credential);
void daemon_on_reload_timer(evutil_socket_t fd, short what, void *context);
void daemon_forget_reload(struct daemon *daemon); /* at the end: answers no request */

/* daemon_web.c */
/* `is_repeat`: this file was tried before, and its problems printed. */
int daemon_web_load(const struct daemon *daemon, bool is_repeat, struct daemon_web_file *web_out,
                    struct as_error *error) AS_MUST_USE;
void daemon_web_use(struct daemon *daemon, struct daemon_web_file web); /* takes it over */
struct daemon_web_file daemon_web_free(struct daemon_web_file web);
const struct as_web_settings *daemon_web_get_settings(const struct daemon_web_file *web);
char *daemon_web_make_headers(const struct daemon *daemon) AS_MUST_USE; /* or NULL; for free() */
void daemon_web_warn_open(const struct daemon *daemon); /* if everyone may send and read */
void daemon_web_watch(struct daemon *daemon);
void daemon_on_web_timer(evutil_socket_t fd, short what, void *context);

/* daemon_watch.c */
void daemon_watch_files(struct daemon *daemon); /* if it was asked for */
bool daemon_watch_is_in_force(const struct as_config *config,
                              const struct as_config_digests *digests);
/* Whether the looks found the same: else another process may be writing the file. A file that never
 * settles is logged. */
bool daemon_watch_settles(unsigned *changes_io, bool is_same, const char *file);
void daemon_on_watch_timer(evutil_socket_t fd, short what, void *context);

/* daemon_http.c */
int daemon_open_server(struct daemon *daemon, struct as_error *error) AS_MUST_USE;
void daemon_tell_address(const struct daemon *daemon); /* when the start cannot fail any more */
void daemon_look(void *context, struct as_view *view_out);
void daemon_on_look_timer(evutil_socket_t fd, short what, void *context);
void daemon_on_order(void *context, const struct as_operators_request *request);
bool daemon_on_denied(void *context, const struct as_denied_record *record);

#endif
