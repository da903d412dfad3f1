/*
 * Our own namespace: the configured one, else the pod's, else an error that says what to do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/kube_access.h>

#include "access_env.h"
#include "files.h"

static struct as_error error;

Test(kube_namespace, the_configured_one_else_the_pods, .init = setup_world, .fini = teardown_world)
{
    char directory[] = "/tmp/as-namespace-XXXXXX", file[64];
    char *found = NULL;
    cr_assert_not_null(mkdtemp(directory));
    snprintf(file, sizeof(file), "%s/namespace", directory);
    env.service_account_dir = directory;
    cr_expect_eq(as_kube_namespace_find(NULL, &env, &found, &error), -ENOENT);
    cr_expect(strstr(error.text, "state.namespace is needed"));
    write_file(file, "ops\n");
    cr_assert_eq(as_kube_namespace_find(NULL, &env, &found, &error), 0, "%s", error.text);
    cr_expect_str_eq(found, "ops");
    free(found);
    cr_assert_eq(as_kube_namespace_find("other", &env, &found, &error), 0, "%s", error.text);
    cr_expect_str_eq(found, "other");
    free(found);
    unlink(file);
    rmdir(directory);
}

Test(kube_namespace, what_a_path_cannot_have_is_refused, .init = setup_world,
     .fini = teardown_world)
{
    static const char *const rows[] = {"..", "", "a/b", "A", "a b", "x.y"};
    char *found = NULL;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(as_kube_namespace_find(rows[i], &env, &found, &error), -EINVAL, "%s", rows[i]);
        cr_expect(strstr(error.text, "not the name of a namespace"));
    }
}
