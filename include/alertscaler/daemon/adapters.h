/*
 * The concrete adapters behind the ports. Only cli/main.c knows them and fills the table; all other
 * code uses the table.
 */
#ifndef ALERTSCALER_DAEMON_ADAPTERS_H
#define ALERTSCALER_DAEMON_ADAPTERS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/http/server.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/port/audit.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/http.h>
#include <alertscaler/port/leader.h>
#include <alertscaler/port/messenger.h>
#include <alertscaler/port/source.h>
#include <alertscaler/port/store.h>
#include <alertscaler/port/target.h>
#include <alertscaler/rules/settings.h>

struct event_base;

/* For metrics: one transfer of the HTTP client ended. */
typedef void as_transfer_fn(void *context, const char *client_name, const char *operation,
                            const char *code, int64_t duration_us);

/* For metrics: one request to monitoring ended, answered or not. */
typedef void as_source_answer_fn(void *context, const char *source, const char *outcome,
                                 int64_t duration_us);

/* An answer of monitoring shows the server's verdict about a query. */
typedef void as_query_judged_fn(void *context, const char *written, enum as_query_verdict verdict,
                                const char *error);

/* A file to read, or a program to run. */
typedef void as_file_visitor_fn(void *context, const char *path, bool is_program);

struct as_outside; /* HTTP client, timers, child processes: the ports' access to the world */

struct as_adapters {
    /* A missing state file is created if `may_create`. `deadline` is borrowed until the store is
     * closed; NULL: no time limit. Callable from any thread, as is open_audit. */
    int (*open_store)(const struct as_settings *settings, bool may_create,
                      const struct as_store_deadline *deadline, struct as_store **store_out,
                      struct as_error *error) AS_MUST_USE;
    int (*open_audit)(const struct as_action_log_settings *settings, struct as_audit **audit_out,
                      struct as_error *error) AS_MUST_USE;
    struct as_outside *(*new_outside)(struct event_base *base, const struct as_clock *clock,
                                      as_transfer_fn *observer, void *context)AS_MUST_USE;
    void (*free_outside)(struct as_outside *outside);
    struct as_http *(*get_http)(struct as_outside *outside);            /* borrowed */
    const struct as_access_env *(*get_env)(struct as_outside *outside); /* borrowed */
    /* All files and credential plugins needed to reach the clusters; an unusable cluster has
     * none. */
    void (*visit_files)(struct as_outside *outside, const struct as_settings *settings,
                        as_file_visitor_fn *visit, void *context);
    /* Borrows outside and settings until the port is closed. */
    int (*new_targets)(struct as_outside *outside, const struct as_settings *settings,
                       struct as_target_port **targets_out, struct as_error *error) AS_MUST_USE;
    /* Lists the nodes of all clusters, and undoes what an earlier process left half done. */
    void (*recover_targets)(struct as_target_port *targets);
    /* The clusters whose nodes and pods are watched and known. */
    void (*visit_facts)(const struct as_target_port *targets, as_facts_visit_fn *visit,
                        void *context);
    /* Other ports take over: these begin nothing of their own any more, and answer what was asked.
     */
    void (*retire_targets)(struct as_target_port *targets);
    /* For what goes on by itself: tells what they may change at a moment. Call before
     * new_targets. */
    void (*set_permit)(struct as_outside *outside, as_permit_fn *get_permit,
                       as_terminate_permit_fn *get_terminate_permit, as_rival_fn *find_rival,
                       as_nodes_record_fn *record_nodes, as_others_found_fn *others_found,
                       as_nodes_recovered_fn *nodes_recovered, void *context);
    struct as_source_port *(*new_source)(struct as_outside *outside,
                                         const struct as_settings *settings,
                                         as_source_answer_fn *observer, as_query_judged_fn *judged,
                                         void *context)AS_MUST_USE;
    /* For what people are told. Borrows outside and settings until it is closed. */
    struct as_messenger *(*new_messenger)(struct as_outside *outside,
                                          const struct as_settings *settings)AS_MUST_USE;
    /* Elects the replica that acts. `instance` is our name, for people. Close before freeing
     * outside. */
    int (*new_leader)(struct as_outside *outside, const struct as_settings *settings,
                      const char *instance, struct as_leader **leader_out,
                      struct as_error *error) AS_MUST_USE;
    int (*new_server)(struct event_base *base, const struct as_http_server_config *config,
                      const struct as_http_handler *handler, struct as_http_server **server_out,
                      struct as_error *error) AS_MUST_USE;
};

#endif
