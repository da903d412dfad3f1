/*
 * The meaning of an HTTP answer for a target: one table for all adapters.
 */
#ifndef ALERTSCALER_KUBE_TARGET_OUTCOME_H
#define ALERTSCALER_KUBE_TARGET_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/port/http.h>

struct as_outcome {
    enum as_reason reason;
    bool is_ambiguous; /* the request may have been carried out in spite of the failure */
    bool is_shortage;  /* for lack of capacity */
    bool is_accepted;  /* the change was accepted and failed later: it counts as done */
    int http_status;   /* 0: no answer */
    int64_t retry_after_us;
    char request_id[AS_REQUEST_ID_SIZE]; /* the request's id from the other side; "": none */
    char message[AS_MESSAGE_SIZE];
};

/*
 * The outcome of a transfer. `is_change`: the request would change something, so a failure after
 * sending is ambiguous. The message is the transport's error or "HTTP 409"; an adapter that finds a
 * better message in the body replaces it.
 */
void as_outcome_init(struct as_outcome *outcome, const struct as_http_response *response,
                     bool is_change, as_wall_time now);

/* An outcome without a transfer: nothing was sent. */
void as_outcome_init_local(struct as_outcome *outcome, enum as_reason reason, const char *message);

/* `message` as one line, cut to fit; an empty message changes nothing. */
void as_outcome_set_message(struct as_outcome *outcome, const char *message);

void as_outcome_fill_observation(const struct as_outcome *outcome,
                                 struct as_observation *observation);
void as_outcome_fill_result(const struct as_outcome *outcome, struct as_scale_result *result);

#endif
