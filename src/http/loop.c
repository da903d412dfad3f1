/*
 * libevent's timers behind port/clock.h.
 */
#include <alertscaler/http/loop.h>

#include <stdlib.h>

#include <bsd/sys/queue.h>
#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/time.h>

struct as_timer {
    LIST_ENTRY(as_timer) entry;
    struct event *event;
    as_timer_fn *expired;
    void *context;
};

struct as_event_loop {
    struct as_loop port;
    struct event_base *base;
    LIST_HEAD(, as_timer) timers;
};

static void free_timer(struct as_timer *timer)
{
    LIST_REMOVE(timer, entry);
    event_free(timer->event);
    free(timer);
}

static void expire(evutil_socket_t fd, short what, void *context)
{
    struct as_timer *timer = context;
    as_timer_fn *expired = timer->expired;
    void *expired_context = timer->context;
    free_timer(timer);
    expired(expired_context);
}

static struct as_timer *start_timer(struct as_loop *self, int64_t delay_us, as_timer_fn *expired,
                                    void *context)
{
    struct as_event_loop *loop = (struct as_event_loop *)self;
    struct as_timer *timer = as_xcalloc(1, sizeof(*timer));
    struct timeval delay = {.tv_sec = delay_us / AS_US_PER_S, .tv_usec = delay_us % AS_US_PER_S};
    timer->expired = expired;
    timer->context = context;
    timer->event = event_new(loop->base, -1, 0, expire, timer);
    if (!timer->event || event_add(timer->event, &delay) < 0)
        abort(); /* out of memory */
    LIST_INSERT_HEAD(&loop->timers, timer, entry);
    return timer;
}

static void cancel_timer(struct as_loop *self, struct as_timer *timer)
{
    if (timer)
        free_timer(timer);
}

struct as_event_loop *as_event_loop_new(struct event_base *base)
{
    struct as_event_loop *loop = as_xcalloc(1, sizeof(*loop));
    loop->port = (struct as_loop){start_timer, cancel_timer};
    loop->base = base;
    LIST_INIT(&loop->timers);
    return loop;
}

struct as_event_loop *as_event_loop_free(struct as_event_loop *loop)
{
    struct as_timer *timer;
    if (!loop)
        return NULL;
    while ((timer = LIST_FIRST(&loop->timers)) != NULL)
        free_timer(timer);
    free(loop);
    return NULL;
}

struct as_loop *as_event_loop_get_port(struct as_event_loop *loop)
{
    return &loop->port;
}
