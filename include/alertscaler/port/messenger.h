/*
 * Port: messages to the receivers of `notify`. One attempt a message; redirects are not followed.
 */
#ifndef ALERTSCALER_PORT_MESSENGER_H
#define ALERTSCALER_PORT_MESSENGER_H

#include <stddef.h>
#include <stdint.h>

struct as_message {  /* borrowed for the call */
    size_t receiver; /* index into the settings' `notify` */
    size_t url;      /* and into its `urls` */
    const char *body;
    size_t size;
};

/* Called exactly once per message, in a later turn of the loop. `error` NULL: the receiver has
 * taken it; else one line that begins with the receiver's name. */
typedef void as_message_done_fn(void *context, uint64_t call_id, const char *error);

struct as_messenger {
    void (*send)(struct as_messenger *self, uint64_t call_id, const struct as_message *message,
                 as_message_done_fn *done, void *context);
    void (*close)(struct as_messenger *self); /* no callbacks afterwards; frees it too */
};

#endif
