/*
 * A credential plugin of a kubeconfig. It runs when there is no credential, when the present one
 * expires soon, and when the server refused it. Only one run at a time; after a failure it waits
 * before the next run.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_EXEC_H
#define ALERTSCALER_SRC_KUBE_KUBE_EXEC_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_documents.h>

#include "kubeconfig.h"

struct as_kube_exec;

/* Borrows both arguments. */
struct as_kube_exec *as_kube_exec_new(const struct as_kubeconfig *config,
                                      const struct as_access_env *env) AS_MUST_USE;
struct as_kube_exec *as_kube_exec_free(struct as_kube_exec *exec);

/* As as_kube_access_get; *generation_out changes with the credential. */
int as_kube_exec_get(struct as_kube_exec *exec,
                     const struct as_kube_exec_credential **credential_out,
                     uint64_t *generation_out, struct as_error *error) AS_MUST_USE;
void as_kube_exec_wait(struct as_kube_exec *exec, struct as_kube_waiter *waiter);

/* Do not use the credential of this generation any more. */
void as_kube_exec_expire(struct as_kube_exec *exec, uint64_t generation);

#endif
