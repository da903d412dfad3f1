/*
 * alertscaler's own namespace: see the header. Kubernetes mounts the pod's beside its token.
 */
#include <alertscaler/kube/kube_namespace.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "service_account.h"

#define NAMESPACE_MAX 63 /* a DNS label */

static bool is_label(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const size_t size = strlen(text);
    return size > 0 && size <= NAMESPACE_MAX && strspn(text, allowed) == size;
}

static int namespace_check(char *name, const char *where, char **namespace_out,
                           struct as_error *error)
{
    if (!is_label(name)) {
        as_error_set(error, "%s: `%.100s` is not the name of a namespace", where, name);
        free(name);
        return -EINVAL;
    }
    *namespace_out = name;
    return 0;
}

int as_kube_namespace_find(const char *configured, const struct as_access_env *env,
                           char **namespace_out, struct as_error *error)
{
    char *text;
    size_t size;
    if (configured)
        return namespace_check(as_xstrdup(configured), "state.namespace", namespace_out, error);
    const char *dir = env->service_account_dir ? env->service_account_dir : AS_SERVICE_ACCOUNT_DIR;
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/namespace", dir);
    if (as_file_read(path, 4096, &text, &size) != 0) {
        as_error_set(error, "state.namespace is needed: this is no pod that could tell its own");
        return -ENOENT;
    }
    text[strcspn(text, "\r\n")] = '\0';
    return namespace_check(text, path, namespace_out, error);
}
