/*
 * Limits of everything that requests need: secrets, kubeconfig files, credential plugins, and one
 * request to an API server.
 */
#ifndef ALERTSCALER_HTTP_ACCESS_LIMITS_H
#define ALERTSCALER_HTTP_ACCESS_LIMITS_H

#include <alertscaler/base/time.h>

/* One request to an API server without a timeout of its own, connection set-up included. */
#define AS_KUBE_TIMEOUT_US (10 * AS_US_PER_S)

/* A watch: objects and pages of its list; one page; how long the server keeps a watch open
 * (seconds), and when we give it up; the first and the longest wait after failures. */
#define AS_KUBE_LIST_PAGE          500
#define AS_KUBE_LIST_PAGES_MAX     2000
#define AS_KUBE_LIST_TIMEOUT_US    (60 * AS_US_PER_S)
#define AS_KUBE_LIST_IDLE_US       (20 * AS_US_PER_S)
#define AS_KUBE_WATCH_S            100
#define AS_KUBE_WATCH_TIMEOUT_US   ((AS_KUBE_WATCH_S + 10) * AS_US_PER_S)
#define AS_KUBE_WATCH_RETRY_US     (1 * AS_US_PER_S)
#define AS_KUBE_WATCH_RETRY_MAX_US (30 * AS_US_PER_S)
#define AS_KUBE_WATCH_PATH_MAX     ((size_t)64 * 1024)
#define AS_KUBE_WATCH_ERROR_MAX    ((size_t)64 * 1024) /* bytes of the body of an error */

#define AS_RETRY_AFTER_MAX_US AS_US_PER_H /* longer times count as this */

/* How often a token's file is checked for a change. */
#define AS_SECRET_FILE_CHECK_US (10 * AS_US_PER_S)

/* Kubeconfig files and the files that they name. */
#define AS_KUBECONFIG_MAX       ((size_t)4 * 1024 * 1024)
#define AS_KUBECONFIG_FILES_MAX 32
#define AS_KUBE_SERVER_MAX      ((size_t)2048)

/* Credential plugins: time limit, output, and how long before expiry a credential is renewed. */
#define AS_KUBE_EXEC_TIMEOUT_US (30 * AS_US_PER_S)
#define AS_KUBE_EXEC_OUTPUT_MAX ((size_t)256 * 1024)
#define AS_KUBE_EXEC_EARLY_US   (10 * AS_US_PER_S)
/* The shortest time before a failed plugin is run again. */
#define AS_KUBE_EXEC_RETRY_US (1 * AS_US_PER_S)

#endif
