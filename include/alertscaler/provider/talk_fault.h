/*
 * How a talk (provider/talk.h) ended: what a failure means for what is to be done next. Retries are
 * never the talk's.
 */
#ifndef ALERTSCALER_PROVIDER_TALK_FAULT_H
#define ALERTSCALER_PROVIDER_TALK_FAULT_H

enum as_talk_fault {
    AS_TALK_OK,
    AS_TALK_RETRY,         /* unreachable, 5xx */
    AS_TALK_THROTTLED,     /* 429 and its like: later, as retry_after_us says */
    AS_TALK_TIMEOUT,       /* no answer in time */
    AS_TALK_BUSY,          /* something is under way, or has changed: look again, decide again */
    AS_TALK_CAPACITY,      /* the other side has no machines, or no quota, to give */
    AS_TALK_UNAUTHORIZED,  /* the credentials are not accepted: other ones may be */
    AS_TALK_PERMISSION,    /* accepted, but not for this */
    AS_TALK_CONFIGURATION, /* nothing but a person mends it */
    AS_TALK_GONE,          /* the group, or what was asked about, is not there */
    AS_TALK_STOPPED        /* not sent: nothing is to be changed now (access/env.h) */
};

#endif
