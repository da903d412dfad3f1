/*
 * The kill switch: a file whose mere existence stops all actions, and the annotation
 * alertscaler.io/paused of the leader's Lease, told by who reads that. What is written there is the
 * reason. It is looked at, never written.
 */
#ifndef ALERTSCALER_SRC_APP_DAEMON_KILL_SWITCH_H
#define ALERTSCALER_SRC_APP_DAEMON_KILL_SWITCH_H

#include <alertscaler/base/attr.h>
#include <alertscaler/core/order.h>

struct as_kill_switch;

struct as_kill_switch *as_kill_switch_new(void) AS_MUST_USE;
struct as_kill_switch *as_kill_switch_free(struct as_kill_switch *kill_switch);

void as_kill_switch_set_file(struct as_kill_switch *kill_switch, const char *path); /* NULL: none */
void as_kill_switch_set_annotation(struct as_kill_switch *kill_switch,
                                   const char *reason); /* NULL: there is none */

/* As it is now: one look at the file system. Where the file cannot be looked at, it is as it was,
 * or set where no look at it has succeeded; which is logged once. The file goes first. Texts are
 * good until the next call. */
struct as_halt as_kill_switch_look(struct as_kill_switch *kill_switch);

AS_DEFINE_CLEANUP(struct as_kill_switch *, as_kill_switch_free)

#endif
