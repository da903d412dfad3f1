/*
 * The daemon's one structure, and its modules, each of which calls the modules above it:
 *
 *   daemon_ports.c   targets, sources and messages of the configuration, and of earlier ones
 *   daemon_policies.c  scaling policies: objects of Kubernetes beside the rule files
 *   daemon_config.c  configuration: load, reload
 *   admission.c      the listener for the API server's reviews of policies
 *   daemon.c         start, leadership, state, web server, stop
 */
#ifndef ALERTSCALER_SRC_DAEMON_DAEMON_PRIVATE_H
#define ALERTSCALER_SRC_DAEMON_DAEMON_PRIVATE_H

#include <bsd/sys/queue.h>
#include <event2/event.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/file.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/daemon/daemon.h>
#include <alertscaler/daemon/daemon_process.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/http/tls_server.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_rivals.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/external_url.h>
#include <alertscaler/rules/web_config.h>
#include <alertscaler/runtime/metrics.h>
#include <alertscaler/runtime/requests.h>
#include <alertscaler/runtime/shell.h>
#include <alertscaler/ui/api.h>
#include <alertscaler/ui/forms.h>
#include <alertscaler/ui/history.h>
#include <alertscaler/ui/route.h>

#include "admission.h"
#include "log_copier.h"
#include "sandbox.h"

struct as_kill_switch;

struct retired { /* ports of an earlier configuration, whose answers may still come */
    STAILQ_ENTRY(retired) next;
    struct as_target_port *targets;
    struct as_source_port *source;
    struct as_config *config; /* their settings */
    as_mono_time until;
};
STAILQ_HEAD(retired_list, retired);

struct state_opener;   /* of daemon.c */
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
    struct as_file_stamp seen;   /* at the last check */
    unsigned changes;            /* checks since the file was found changing */
    struct as_file_stamp tried;  /* the changed file at the last attempt */
    struct as_error error;       /* why it is not in force (was logged); or "" */
    struct event *timer;
};

struct daemon_watch {               /* --config.auto-reload-interval */
    struct as_config_stamps stamps; /* of the files at the last check */
    struct as_file_stamp web;       /* of --web.config.file at the last check */
    struct as_config_digests found; /* at the last check */
    unsigned changes;               /* checks since the files were found changing */
    struct as_config_digests tried; /* the changed files at the last attempt */
    struct as_config_digests other; /* what the last attempt loaded, if not `tried`; or "" */
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

struct as_policy_definition;
struct as_policy_reports;
struct as_policy_set;
struct as_policy_status_writer;
struct as_policy_watch;

struct daemon_policies { /* all NULL unless `objects.enabled` */
    struct as_policy_set *set;
    const struct as_ruleset *rules; /* of files and policies; NULL: of files only */
    struct as_kube_access *access;
    struct as_kube_client client; /* if there is a watch */
    struct as_policy_watch *watch;
    struct as_policy_reports *reports;      /* with the set */
    struct as_policy_status_writer *writer; /* with the watch */
    struct as_policy_definition *schema;    /* with the watch */
    struct event *report;                   /* timer, while we lead */
    as_mono_time started;                   /* the watch */
    char error[AS_ERROR_SIZE];              /* of the watch, as logged; "" */
    bool has_synced;                        /* all policies were listed once */
    as_mono_time earliest, due; /* of the next join; due: AS_MONO_NEVER: none is planned */
    struct event *timer;
};

struct daemon_messages {
    struct as_messenger *messenger, *former; /* former: during a reload */
    char host[AS_INSTANCE_NAME_SIZE];
};

struct daemon {
    const struct as_daemon_options *options;
    struct as_config *config;
    struct event_base *base;
    struct event *signals[4];
    struct event *deadline, *recover, *retire, *stop_timer, *poll_timer;
    char boot[AS_BOOT_ID_SIZE], instance[AS_INSTANCE_SIZE];
    struct as_outside *outside;
    struct as_leader *leader;
    bool is_alone; /* single replica: the state is a local file */
    char why_not[AS_ERROR_SIZE], last_holder[AS_ERROR_SIZE];
    bool was_leader, has_led;
    uint64_t terms_noted, terms_recorded; /* of other leaders, in the present `start` record; in a
                                             durable one */
    struct as_target_port *targets;
    struct as_source_port *source;
    struct as_query_checks *query_checks;
    struct retired_list retired;
    struct node_recovery_list recoveries;
    size_t retired_count;
    struct daemon_reload reload;
    struct daemon_policies policies;
    struct as_digest named_files; /* as named_files_hash before they were loaded */
    struct daemon_messages messages;
    struct state_opener *opener;             /* opening the state; there is no storage then */
    const struct as_config *opening_config;  /* its settings: ours unless reloaded since */
    struct as_store_deadline store_deadline; /* for the state that is open or being opened */
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
    struct as_log_history *history_log; /* reads the action log for the API */
    struct log_copier *log_copier;      /* NULL: none is configured */
    struct as_routes routes;
    struct as_http_server *server;
    struct daemon_admission *admission;
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

/* The rules in force. */
static inline const struct as_ruleset *daemon_get_rules(const struct daemon *daemon)
{
    return daemon->policies.rules ? daemon->policies.rules : daemon->config->ruleset;
}

/* daemon_ports.c */
void daemon_arm(struct event *timer, int64_t us); /* may fire early: check the clock */
uint64_t daemon_get_seed(void);
void daemon_forget_config(const struct daemon *daemon, struct as_config *old); /* frees it */
struct as_engine_config daemon_get_engine_config(const struct daemon *daemon);
void daemon_retire_ports(struct daemon *daemon, struct as_config *old_config);
/* False: too many earlier configurations still wait for answers; a reload must wait too. */
bool daemon_make_retired_room(struct daemon *daemon) AS_MUST_USE;
void daemon_close_retired(struct daemon *daemon);                    /* all of them */
bool daemon_are_ports_idle(const struct daemon *daemon) AS_MUST_USE; /* including retired ones */
void daemon_on_retire(evutil_socket_t fd, short what, void *context);
/* By the present configuration; begins to check its queries. */
void daemon_new_source(struct daemon *daemon);

/* Searches all clusters for nodes that an earlier process marked, if there may be some. */
void daemon_recover_nodes(struct daemon *daemon);
void daemon_on_nodes_recovered(void *context, const struct as_nodes_recovery *recovery);
void daemon_forget_recoveries(struct daemon *daemon); /* frees them */

/* By the present configuration, with a messenger of its own. Once the shell has it, end the former
 * messenger. */
struct as_notifier_config daemon_messages_begin(struct daemon *daemon);
void daemon_messages_end_former(struct daemon *daemon);
void daemon_messages_close(struct daemon *daemon);

/* By the present configuration. */
void daemon_renew_log_copier(struct daemon *daemon);

/* daemon_policies.c */
/* Joins the policies with the present configuration. Before the engine gets its rules. */
void daemon_policies_join(struct daemon *daemon);
/* After the start of the shell: records all policies, and begins to report their status. */
void daemon_policies_begin_term(struct daemon *daemon);
/* Writes the status of policies that is due. */
void daemon_policies_report(struct daemon *daemon, const struct as_view *view);
void daemon_policies_on_effect(struct daemon *daemon, const struct as_effect *effect);
void daemon_on_policies_timer(evutil_socket_t fd, short what, void *context);
/* The first list may come soon: the state must not be opened yet. */
bool daemon_policies_are_awaited(const struct daemon *daemon) AS_MUST_USE;
/* What else was found to scale a target. */
void daemon_policies_note_others(struct daemon *daemon, const char *target,
                                 const struct as_other *others, size_t count);
/* Begins the watch anew, by the present configuration. */
int daemon_policies_start(struct daemon *daemon, struct as_error *error) AS_MUST_USE;
void daemon_policies_stop(struct daemon *daemon); /* the watch; what is known stays */
/* A reload without `objects`: no policy is in force. The engine still has their rules. */
void daemon_policies_disable(struct daemon *daemon);
void daemon_policies_forget(struct daemon *daemon); /* at the end, or if no engine has them */

/* daemon_config.c */
int daemon_load_config(struct daemon *daemon, struct as_error *error) AS_MUST_USE;
/* 0; or a negative errno, with advice. `key`: `state` or `action_log`; `path`: its value. */
int daemon_check_writable(const char *key, const char *path, struct as_error *error) AS_MUST_USE;
int daemon_enter_sandbox(struct daemon *daemon, struct as_error *error) AS_MUST_USE;

/* Loads the files, and puts nothing in force. NULL with an error. */
struct as_config *daemon_preview_config(void *context, struct as_error *error);
/* Answers the exchange, later; NULL: a signal. Requests within a second share one reload. */
void daemon_request_reload(void *context, struct as_http_exchange *exchange,
                           const char *credential);
void daemon_on_reload_timer(evutil_socket_t fd, short what, void *context);
void daemon_forget_reload(struct daemon *daemon); /* at the end: answers no request */

struct daemon_web_file daemon_web_free(struct daemon_web_file web);
char *daemon_web_make_headers(const struct daemon *daemon) AS_MUST_USE; /* or NULL; for free() */
void daemon_web_watch(struct daemon *daemon);
void daemon_on_web_timer(evutil_socket_t fd, short what, void *context);

void daemon_watch_files(struct daemon *daemon); /* if it was asked for */
void daemon_on_watch_timer(evutil_socket_t fd, short what, void *context);

/*
 * The files that a configuration names, for reading: itself, its rule files, the web configuration,
 * secrets, certificates, kubeconfigs, the files of providers, and the files that these name. Not
 * the state, the action log and the kill switch, which change by themselves.
 */

/* Some paths may be NULL or empty: a file that is not given. */
void named_files_visit(const struct as_sandbox_config *config, as_file_visitor_fn *visit,
                       void *context);

/* The digest of their names and contents as they are now. */
struct as_digest named_files_hash(const struct as_sandbox_config *config);

/*
 * The kill switch: a file whose mere existence stops all actions, and the annotation
 * alertscaler.io/paused of the leader's Lease, passed in by its reader. The content of either is
 * the reason. It is only read.
 */

struct as_kill_switch *as_kill_switch_new(void) AS_MUST_USE;
struct as_kill_switch *as_kill_switch_free(struct as_kill_switch *kill_switch);

void as_kill_switch_set_file(struct as_kill_switch *kill_switch, const char *path); /* NULL: none */
void as_kill_switch_set_annotation(struct as_kill_switch *kill_switch,
                                   const char *reason); /* NULL: there is none */

/* The present state: one check of the file system. If the file cannot be checked, the last state
 * stays; if it could never be checked, it counts as set; that is logged once. The file goes before
 * the annotation. Texts are valid until the next call. */
struct as_halt as_kill_switch_poll(struct as_kill_switch *kill_switch);

AS_DEFINE_CLEANUP(struct as_kill_switch *, as_kill_switch_free)

#endif
