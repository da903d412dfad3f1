/*
 * The leader of a single replica: it leads from the first turn on, forever.
 */
#ifndef ALERTSCALER_KUBE_LEADER_ALWAYS_H
#define ALERTSCALER_KUBE_LEADER_ALWAYS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/leader.h>

/* `identity` is copied. */
struct as_leader *as_always_leader_new(const char *identity, struct as_loop *loop) AS_MUST_USE;

#endif
