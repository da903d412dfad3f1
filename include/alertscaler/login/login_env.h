/*
 * The ports that a login uses. All of it is borrowed and outlives the login.
 */
#ifndef ALERTSCALER_LOGIN_LOGIN_ENV_H
#define ALERTSCALER_LOGIN_LOGIN_ENV_H

#include <alertscaler/port/clock.h>
#include <alertscaler/port/http.h>
#include <alertscaler/port/process.h>

struct as_login_env {
    struct as_http *http;
    struct as_loop *loop;
    struct as_process_runner *runner;
    const struct as_clock *clock;
    /* The value of an environment variable, NULL if not set; as getenv. */
    const char *(*get_variable)(const char *name);
};

#endif
