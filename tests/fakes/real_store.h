/*
 * A store in a real API server, with the real HTTP client on its own loop: for the port's suite and
 * the integration tests.
 */
#ifndef ALERTSCALER_TESTS_FAKES_REAL_STORE_H
#define ALERTSCALER_TESTS_FAKES_REAL_STORE_H

#include <alertscaler/base/error.h>
#include <alertscaler/port/store.h>

/* 0, or the negative errno of opening. */
int real_store_open(const char *kubeconfig, const char *namespace_, const char *holder,
                    struct as_store **store_out, struct as_error *error);

#endif
