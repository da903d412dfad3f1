/*
 * The libevent adapters of port/clock.h and port/process.h.
 */
#ifndef ALERTSCALER_HTTP_LOOP_H
#define ALERTSCALER_HTTP_LOOP_H

#include <alertscaler/base/attr.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/process.h>

struct event_base;
struct as_event_loop;
struct as_event_processes;

struct as_event_loop *as_event_loop_new(struct event_base *base) AS_MUST_USE;
struct as_event_loop *as_event_loop_free(struct as_event_loop *loop); /* cancels all timers */
struct as_loop *as_event_loop_get_port(struct as_event_loop *loop);   /* borrowed */

struct as_event_processes *as_event_processes_new(struct event_base *base) AS_MUST_USE;
/* Kills the programs that still run, and waits until they have ended. */
struct as_event_processes *as_event_processes_free(struct as_event_processes *processes);
struct as_process_runner *as_event_processes_get_port(
    struct as_event_processes *processes); /* borrowed */

#endif
