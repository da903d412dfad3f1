/*
 * The readable part of HTTP: /-/healthy, /-/ready, /metrics, /api/v1/..., and the status page at /.
 * docs/api.md describes it for users. It changes nothing, and checks no credentials: that is done
 * before.
 *
 * The last 1,000 decisions are kept in memory, as they are in the action log. Older ones are read
 * from there.
 */
#ifndef ALERTSCALER_UI_API_H
#define ALERTSCALER_UI_API_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/http/server.h>
#include <alertscaler/runtime/metrics.h>
#include <alertscaler/runtime/view.h>

struct as_config;

struct as_api;

/* Loads the configuration as a reload would do, and puts nothing in force. NULL with an error. */
typedef struct as_config *as_preview_fn(void *context, struct as_error *error);

struct as_api_config {
    const char *instance;       /* as in the action log; copied */
    struct as_metrics *metrics; /* borrowed */
    as_view_fn *view;           /* called for each request */
    void *context;
    as_preview_fn *preview; /* NULL: the files cannot be read */
};

struct as_api *as_api_new(const struct as_api_config *config) AS_MUST_USE;
struct as_api *as_api_free(struct as_api *api);

/* Stores decisions, why targets failed, and the sizes of the last day. Other effects are ignored.
 * `record`: as in the action log; copied. */
void as_api_on_effect(struct as_api *api, const struct as_effect *effect,
                      const struct as_buf *record, as_wall_time now);
/* The engine is gone: sizes are not known until the next one has looked. */
void as_api_on_end(struct as_api *api, as_wall_time now);
/* Another replica led until now: forgets decisions and sizes, which have a gap. The action log has
 * them. */
void as_api_on_return(struct as_api *api, as_wall_time now);
struct as_log_history;
/* For decisions that are not in memory any more; NULL: there are none. Before the history ends, set
 * NULL. */
void as_api_set_history_log(struct as_api *api, struct as_log_history *history);
struct as_history;
struct as_history *as_api_get_history(struct as_api *api);

struct api_request;

struct as_api_endpoint { /* one of ui/api_private.h or ui/page.h */
    void (*answer)(struct api_request *request);
    bool needs_leader; /* a follower cannot answer it: 503 */
    /* Of a page, which its script requests again: true after answering that it is unchanged. */
    bool (*answer_unchanged)(struct api_request *request);
};

struct as_api_note { /* what a form led to */
    int status;
    const char *text, *to;
    const char *headers; /* for the answer; NULL: none */
};

/*
 * Answers a request, immediately or (what needs the action log) later. `rest`: the part of the path
 * that matched `*`. `who`: the name of the asking credential ("": none needed); one with `rules` or
 * `targets` does not see others' names. `note`: of a page that shows it; NULL: none.
 */
void as_api_answer(struct as_api *api, struct as_http_exchange *exchange,
                   const struct as_api_endpoint *endpoint, const char *rest, const char *who,
                   const struct as_api_note *note);

AS_DEFINE_CLEANUP(struct as_api *, as_api_free)

#endif
