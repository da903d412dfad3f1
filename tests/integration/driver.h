/*
 * Shared by the drivers of single layers: the real HTTP client, timers, child processes and clock;
 * one JSON command per line on standard input, one JSON answer per line on standard output, in the
 * order in which they end; it closes at the end of its input.
 */
#ifndef ALERTSCALER_TESTS_INTEGRATION_DRIVER_H
#define ALERTSCALER_TESTS_INTEGRATION_DRIVER_H

#include <jansson.h>

#include <alertscaler/http/client.h>
#include <alertscaler/http/loop.h>
#include <alertscaler/port/clock.h>

struct driver {
    struct as_http *http;
    struct as_loop *loop;
    struct as_process_runner *runner;
    struct as_clock clock;
};

/* Borrowed for the whole run. */
struct driver *driver_open(void);
/* Each command leads to one answer, sooner or later. */
void driver_run(void (*carry_out)(const json_t *command));
void driver_answer(json_t *answer); /* takes it over */
void driver_close(void);

/* The value of an option, NULL where it is not there. */
const char *driver_get_option(char **argv, const char *name);
/* "" where there is none. */
const char *driver_get_text(const json_t *command, const char *key);

#endif
