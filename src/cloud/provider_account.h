/*
 * A provider's account: its credentials, and the ops with its API. Credentials are found once for
 * all that wait, renewed before they expire, and kept while they are valid even if a renewal fails.
 */
#ifndef ALERTSCALER_SRC_CLOUD_PROVIDER_ACCOUNT_H
#define ALERTSCALER_SRC_CLOUD_PROVIDER_ACCOUNT_H

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/rules/settings.h>

struct as_account;
struct as_account_call; /* a running op */

/* Borrows all arguments. `cluster`: for a provider that is_kubernetes; else NULL. */
struct as_account *as_account_new(const struct as_group_provider *provider,
                                  const struct as_provider_settings *settings,
                                  const struct as_access_env *env,
                                  struct as_kube_client *cluster) AS_MUST_USE;
/* Cancels all calls. */
struct as_account *as_account_free(struct as_account *account);

/*
 * Carries out an op that as_account_init_op has initialized and whose verb and arguments are
 * set: finds credentials, begins the op, signs and sends its requests, until it has ended. `done`
 * is called exactly once, in a later turn, unless cancelled. A request whose credentials were
 * refused is sent once more with new ones. The caller owns the op and deinits it.
 */
typedef void as_account_done_fn(void *context);
void as_account_init_op(const struct as_account *account, struct as_group_op *op);
struct as_account_call *as_account_start(struct as_account *account, struct as_group_op *op,
                                         as_account_done_fn *done, void *context) AS_MUST_USE;
void as_account_cancel(struct as_account_call *call);

#endif
