/*
 * The environment of adapters in the fake world: for tests of the layers from access on.
 */
#ifndef ALERTSCALER_TESTS_FAKES_ACCESS_ENV_H
#define ALERTSCALER_TESTS_FAKES_ACCESS_ENV_H

#include <string.h>

#include <alertscaler/kube/env.h>

#include "world.h"

static struct world world;
static struct as_access_env env;
static const char *variables[8][2]; /* the process environment of the tests */

static inline const char *get_variable(const char *name)
{
    for (size_t i = 0; variables[i][0]; i++)
        if (strcmp(variables[i][0], name) == 0)
            return variables[i][1];
    return NULL;
}

static inline void setup_world(void)
{
    world_init(&world);
    env = (struct as_access_env){
        .http = &world.http,
        .loop = &world.loop,
        .runner = &world.runner,
        .clock = &world.clock,
        .get_variable = get_variable,
    };
}

static inline void teardown_world(void)
{
    world_deinit(&world);
}

#endif
