/*
 * A single replica always leads: see the header.
 */
#include <alertscaler/kube/leader_always.h>

#include <stdlib.h>

#include <alertscaler/base/alloc.h>

struct always {
    struct as_leader port;
    struct as_loop *loop;
    char *identity;
    bool leads;
    struct as_leader_callbacks callbacks;
    void (*done)(void *context);
    void *done_context;
    struct as_timer *timer; /* of the next callback's turn */
};

static void on_start(void *context)
{
    struct always *always = context;
    always->timer = NULL;
    always->leads = true;
    always->callbacks.changed(always->callbacks.context);
}

static void on_released(void *context)
{
    struct always *always = context;
    always->timer = NULL;
    always->done(always->done_context);
}

static void start(struct as_leader *self, const struct as_leader_callbacks *callbacks)
{
    struct always *always = (struct always *)self;
    always->callbacks = *callbacks;
    always->timer = always->loop->start_timer(always->loop, 0, on_start, always);
}

static struct as_leader_view look(const struct as_leader *self)
{
    const struct always *always = (const struct always *)self;
    return (struct as_leader_view){
        .is_leader = always->leads,
        .identity = always->identity,
        .holder = always->leads ? always->identity : "",
    };
}

static bool may_act(const struct as_leader *self)
{
    return ((const struct always *)self)->leads;
}

static void doubt(struct as_leader *self)
{
}

static void yield(struct as_leader *self)
{
}

static void release(struct as_leader *self, void (*done)(void *context), void *context)
{
    struct always *always = (struct always *)self;
    always->leads = false;
    always->done = done;
    always->done_context = context;
    always->loop->cancel_timer(always->loop, always->timer);
    always->timer = always->loop->start_timer(always->loop, 0, on_released, always);
}

static void close_leader(struct as_leader *self)
{
    struct always *always = (struct always *)self;
    always->loop->cancel_timer(always->loop, always->timer);
    free(always->identity);
    free(always);
}

struct as_leader *as_always_leader_new(const char *identity, struct as_loop *loop)
{
    struct always *always = as_xcalloc(1, sizeof(*always));
    always->port = (struct as_leader){start, look, may_act, doubt, yield, release, close_leader};
    always->loop = loop;
    always->identity = as_xstrdup(identity);
    return &always->port;
}
