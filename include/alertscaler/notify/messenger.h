/*
 * What alertscaler sends: alerts are posted to Alertmanager's API v2, events to webhooks. An answer
 * 2xx is enough; what else it says is not read.
 */
#ifndef ALERTSCALER_NOTIFY_MESSENGER_H
#define ALERTSCALER_NOTIFY_MESSENGER_H

#include <alertscaler/base/attr.h>
#include <alertscaler/monitoring/monitoring.h>
#include <alertscaler/port/messenger.h>
#include <alertscaler/rules/settings.h>

/* Copies env, borrows the settings and what env points to. End it with the port's close, but not
 * from its own callbacks. */
struct as_messenger *as_receivers_new(const struct as_settings *settings,
                                      const struct as_source_env *env) AS_MUST_USE;

#endif
