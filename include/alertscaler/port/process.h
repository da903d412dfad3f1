/*
 * Port: runs a program chosen by the user (a credential plugin) without blocking. Its standard
 * input is empty, its output is collected up to a limit, and its time is limited.
 */
#ifndef ALERTSCALER_PORT_PROCESS_H
#define ALERTSCALER_PORT_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

struct as_process_request {  /* all borrowed for the call of start only */
    const char *const *argv; /* NULL at the end; argv[0] without a slash is searched in PATH */
    const char *const *env;  /* "NAME=value", NULL at the end; added to our own environment */
    int64_t timeout_us;      /* the program is killed after this time */
    size_t max_output;       /* bytes of standard output; at more the program is killed */
};

enum as_process_outcome {
    AS_PROCESS_EXITED,      /* `status` is its exit status */
    AS_PROCESS_KILLED,      /* by the signal `status`, which we did not send */
    AS_PROCESS_NOT_STARTED, /* `status` is an errno value */
    AS_PROCESS_TIMEOUT,
    AS_PROCESS_TOO_LARGE
};

struct as_process_result { /* valid during the callback */
    enum as_process_outcome outcome;
    int status;
    const char *output; /* NUL-terminated, never NULL */
    size_t output_size;
    const char *error_output; /* the beginning of standard error, never NULL */
};

typedef void as_process_done_fn(void *context, const struct as_process_result *result);
struct as_process;

struct as_process_runner {
    /* `done` is called exactly once, in a later turn of the loop, unless cancelled first. */
    struct as_process *(*start)(struct as_process_runner *self,
                                const struct as_process_request *request, as_process_done_fn *done,
                                void *context)AS_MUST_USE;
    /* Kills the program; `done` is not called afterwards. */
    void (*cancel)(struct as_process_runner *self, struct as_process *process);
};

#endif
