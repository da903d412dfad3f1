/*
 * The certificate of the admission webhook, in a cluster where nobody else makes one.
 *
 * It is in the Secret `alertscaler-admission` of alertscaler's own namespace. Every replica reads
 * it. The leader makes it, renews it when two thirds of its time are over, and writes the authority
 * into each `caBundle` of the ValidatingWebhookConfiguration `alertscaler`. The names are fixed, so
 * that the rights to change them can be given by `resourceNames`. The names in the certificate are
 * those under which the API server calls: the Services or URLs of that configuration.
 *
 * A renewed authority is in `caBundle` before its certificate is in the Secret, beside the old one:
 * a replica that has not read the Secret again is still trusted.
 */
#ifndef ALERTSCALER_KUBE_WEBHOOK_CERTIFICATE_H
#define ALERTSCALER_KUBE_WEBHOOK_CERTIFICATE_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>

#define AS_WEBHOOK_SECRET        "alertscaler-admission"
#define AS_WEBHOOK_CONFIGURATION "alertscaler"

struct as_webhook_certificate;

struct as_webhook_certificate_config {
    const char *namespace_;           /* copied */
    bool (*is_leader)(void *context); /* may this replica write? */
    /* There is another certificate: PEM, borrowed for the call. */
    void (*changed)(void *context, const char *certificate, const char *key);
    void *context;
};

/* Takes over `access`; `env` is borrowed. The first look is in a later turn of the loop. */
struct as_webhook_certificate *as_webhook_certificate_new(
    const struct as_webhook_certificate_config *config, struct as_kube_access *access,
    const struct as_access_env *env) AS_MUST_USE;
struct as_webhook_certificate *as_webhook_certificate_free(
    struct as_webhook_certificate *certificate);

AS_DEFINE_CLEANUP(struct as_webhook_certificate *, as_webhook_certificate_free)

#endif
