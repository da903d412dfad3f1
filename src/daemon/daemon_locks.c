/*
 * Shows locks to people when replicas share the state: once a second the mirror gets the engine's
 * locks. The engine does not know it, and nothing depends on it.
 */
#include "daemon_private.h"

#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

#define SHOW_EVERY_US AS_US_PER_S

struct locks {
    struct as_lock *items;
    size_t count, capacity;
};

static void add_lock(void *context, const struct as_lock *lock)
{
    struct locks *locks = context;
    locks->items = as_xgrow(locks->items, locks->count, &locks->capacity, sizeof(*locks->items));
    locks->items[locks->count++] = *lock;
}

void daemon_on_locks_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct locks locks = {.items = NULL};
    if (!daemon->locks.mirror)
        return;
    if (daemon->shell && !daemon->failed && as_shell_is_ready(daemon->shell)) {
        as_engine_visit_locks(as_shell_get_engine(daemon->shell),
                              as_system_clock.get_mono(&as_system_clock),
                              as_system_clock.get_wall(&as_system_clock), add_lock, &locks);
        daemon->locks.mirror->show(daemon->locks.mirror, locks.items, locks.count);
        free(locks.items);
    }
    daemon_arm(daemon->locks.timer, SHOW_EVERY_US);
}

void daemon_open_locks(struct daemon *daemon)
{
    struct as_error error = AS_ERROR_INIT;
    if (daemon->options->adapters->new_lock_mirror(daemon->outside, &daemon->config->settings,
                                                   daemon->leader, &daemon->locks.mirror,
                                                   &error) != 0)
        as_log(AS_LOG_WARN, "locks cannot be shown as leases; nothing else depends on them",
               AS_F("error", error.text));
    if (daemon->locks.mirror)
        daemon_arm(daemon->locks.timer, 0);
}

void daemon_close_locks(struct daemon *daemon)
{
    evtimer_del(daemon->locks.timer);
    if (daemon->locks.mirror)
        daemon->locks.mirror->close(daemon->locks.mirror);
    daemon->locks.mirror = NULL;
}
