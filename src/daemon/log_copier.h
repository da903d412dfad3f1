/*
 * Copies records that other replicas wrote to files beside the action log, so that the history of
 * the leader has them: `action_log.replicas`. One request is under way at a time. What is missing,
 * and what is good of an answer, is found in the thread of the history (log/log_copy.h).
 *
 * A replica that gives no good answer is not asked for a minute.
 */
#ifndef ALERTSCALER_SRC_DAEMON_LOG_COPIER_H
#define ALERTSCALER_SRC_DAEMON_LOG_COPIER_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/login/login_env.h>
#include <alertscaler/rules/settings.h>

#define LOG_COPIER_ANSWER_MAX  (AS_LOG_INDEX_LINE_MAX + 1) /* one line; usually up to 4 MiB */
#define LOG_COPIER_EVERY_US    (10 * AS_US_PER_S)
#define LOG_COPIER_RETRY_US    AS_US_PER_MIN
#define LOG_COPIER_TIMEOUT_US  (30 * AS_US_PER_S)
#define LOG_COPIER_IDLE_US     (10 * AS_US_PER_S)
#define LOG_COPIER_RECORDS_MAX 10000 /* of one request */

struct log_copier;

struct log_copier_config {
    const struct as_action_log_settings *settings; /* borrowed */
    struct as_log_history *history;                /* borrowed; may end before */
    struct as_login_env env;                       /* copied */
    const char *instance;                          /* of this replica; borrowed */
    uint64_t free_min;                             /* bytes that stay free on the disk */
    bool (*is_leading)(void *context);
    void *context;
};

/* NULL: no replica is configured. */
struct log_copier *log_copier_new(const struct log_copier_config *config) AS_MUST_USE;
/* Cancels the request. What the thread does now is forgotten. */
struct log_copier *log_copier_free(struct log_copier *copier);

#endif
