/*
 * The fake world (access_env.h) in a pod of a cluster, with the service account that Kubernetes
 * mounts; only its token is there.
 */
#ifndef ALERTSCALER_TESTS_FAKES_POD_H
#define ALERTSCALER_TESTS_FAKES_POD_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "access_env.h"
#include "files.h"

static char account_dir[] = "/tmp/as-account-XXXXXX", account_token[64]; /* the file's path */

static inline void setup_pod(const char *token)
{
    setup_world();
    cr_assert_not_null(mkdtemp(account_dir));
    snprintf(account_token, sizeof(account_token), "%s/token", account_dir);
    env.service_account_dir = account_dir;
    variables[0][0] = "KUBERNETES_SERVICE_HOST";
    variables[0][1] = "k";
    variables[1][0] = "KUBERNETES_SERVICE_PORT";
    variables[1][1] = "443";
    write_file(account_token, token);
}

static inline void teardown_pod(void)
{
    unlink(account_token);
    rmdir(account_dir);
    teardown_world();
}

#endif
