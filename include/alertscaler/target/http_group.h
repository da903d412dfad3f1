/*
 * Target adapter: the generic HTTP node groups of one provider (docs/targets.md has the protocol).
 * A group's own address is the field `url` of the target.
 */
#ifndef ALERTSCALER_TARGET_HTTP_GROUP_H
#define ALERTSCALER_TARGET_HTTP_GROUP_H

#include <alertscaler/access/env.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/config/settings.h>
#include <alertscaler/port/target.h>

/* Borrows both. Close it with the port's close, not from a callback. */
struct as_target_port *as_http_group_new(const struct as_provider_settings *settings,
                                         const struct as_access_env *env) AS_MUST_USE;

#endif
