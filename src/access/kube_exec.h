/*
 * A credential plugin of a kubeconfig: run when there is no credential, when the present one ends
 * soon, and when the server did not accept it; one run at a time, and not again at once after a
 * failure.
 */
#ifndef ALERTSCALER_SRC_ACCESS_KUBE_EXEC_H
#define ALERTSCALER_SRC_ACCESS_KUBE_EXEC_H

#include <stdint.h>

#include <alertscaler/access/env.h>
#include <alertscaler/access/kube_access.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/wire/kubernetes.h>

#include "kubeconfig.h"

struct as_kube_exec;

/* Borrows both. */
struct as_kube_exec *as_kube_exec_new(const struct as_kubeconfig *config,
                                      const struct as_access_env *env) AS_MUST_USE;
struct as_kube_exec *as_kube_exec_free(struct as_kube_exec *exec);

/* As as_kube_access_get; *generation_out changes with the credential. */
int as_kube_exec_get(struct as_kube_exec *exec,
                     const struct as_kube_exec_credential **credential_out,
                     uint64_t *generation_out, struct as_error *error) AS_MUST_USE;
void as_kube_exec_wait(struct as_kube_exec *exec, struct as_kube_waiter *waiter);

/* The credential of this generation is not to be used any more. */
void as_kube_exec_expire(struct as_kube_exec *exec, uint64_t generation);

#endif
