/*
 * Which places a request may have at its server, where places are limited.
 */
#ifndef ALERTSCALER_PORT_HTTP_CLASS_H
#define ALERTSCALER_PORT_HTTP_CLASS_H

#include <alertscaler/base/fair_queue.h>

/* Each class has places of its own at each origin: none waits for another. In a class, places are
 * given by the request's flow. */
enum as_http_class {
    AS_HTTP_CALL,
    AS_HTTP_REVIEW, /* of a client's token */
    AS_HTTP_LEASE,  /* of the leader */
    AS_HTTP_WATCH,  /* lasts long: a watch, and the list before it */
    AS_HTTP_CLASS_COUNT
};

#endif
