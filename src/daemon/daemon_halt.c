/*
 * Checks the kill switch: several times a second, and right before anything that may lead to an
 * action.
 */
#include "daemon_private.h"

#include <alertscaler/base/log.h>

#define LOOK_EVERY_US (250 * AS_US_PER_MS)

void daemon_look_at_kill_switch(struct daemon *daemon)
{
    as_kill_switch_set_file(daemon->halt.kill_switch, daemon->config->settings.kill_switch.file);
    const struct as_halt halt = as_kill_switch_look(daemon->halt.kill_switch);
    const bool is_halted = halt.reason != NULL;
    if (is_halted != daemon->halt.is_set)
        as_log(AS_LOG_WARN,
               is_halted ? "the kill switch is set: nothing is scaled"
                         : "the kill switch is not set any more",
               AS_F("reason", halt.reason));
    /* A new engine is not halted. A halted one is told each time; it ignores repeats. */
    if ((is_halted || daemon->halt.is_set) && daemon->shell && !daemon->failed)
        as_shell_halt(daemon->shell, &halt);
    daemon->halt.is_set = is_halted;
}

void daemon_on_halt_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    daemon_look_at_kill_switch(daemon);
    daemon_arm(daemon->halt.timer, LOOK_EVERY_US);
}

void daemon_set_annotation(struct daemon *daemon, const char *reason)
{
    as_kill_switch_set_annotation(daemon->halt.kill_switch, reason);
    daemon_look_at_kill_switch(daemon);
}
