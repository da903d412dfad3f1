/*
 * How a talk (cloud/talk.h) ended, and so what to do next. A talk itself never retries.
 */
#ifndef ALERTSCALER_CLOUD_TALK_FAULT_H
#define ALERTSCALER_CLOUD_TALK_FAULT_H

enum as_talk_fault {
    AS_TALK_OK,
    AS_TALK_RETRY,     /* unreachable, 5xx */
    AS_TALK_THROTTLED, /* 429 and similar: retry after retry_after_us */
    AS_TALK_TIMEOUT,   /* no answer in time */
    AS_TALK_BUSY, /* an operation is in progress, or something changed: observe and decide again */
    AS_TALK_CAPACITY,      /* the provider lacks machines or quota */
    AS_TALK_UNAUTHORIZED,  /* the credentials were refused: others may work */
    AS_TALK_PERMISSION,    /* the credentials are valid, but lack a right */
    AS_TALK_CONFIGURATION, /* only a person can fix it */
    AS_TALK_GONE,          /* the group or object does not exist */
    AS_TALK_STOPPED,       /* not sent: changes are not permitted now (kube/env.h) */
    AS_TALK_NOT_ALLOWED    /* not sent: another target has the group (kube/env.h) */
};

#endif
