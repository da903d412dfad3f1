/*
 * The kill switch: a file whose mere existence stops all actions, and the annotation
 * alertscaler.io/paused of the leader's Lease, passed in by its reader. The content of either is
 * the reason. It is only read.
 */
#ifndef ALERTSCALER_SRC_DAEMON_KILL_SWITCH_H
#define ALERTSCALER_SRC_DAEMON_KILL_SWITCH_H

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/operator_command.h>

struct as_kill_switch;

struct as_kill_switch *as_kill_switch_new(void) AS_MUST_USE;
struct as_kill_switch *as_kill_switch_free(struct as_kill_switch *kill_switch);

void as_kill_switch_set_file(struct as_kill_switch *kill_switch, const char *path); /* NULL: none */
void as_kill_switch_set_annotation(struct as_kill_switch *kill_switch,
                                   const char *reason); /* NULL: there is none */

/* The present state: one check of the file system. If the file cannot be checked, the last state
 * stays; if it could never be checked, it counts as set; that is logged once. The file goes before
 * the annotation. Texts are valid until the next call. */
struct as_halt as_kill_switch_poll(struct as_kill_switch *kill_switch);

AS_DEFINE_CLEANUP(struct as_kill_switch *, as_kill_switch_free)

#endif
