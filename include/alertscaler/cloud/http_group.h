/*
 * Target adapter: the generic HTTP node groups of one provider (the protocol is in
 * docs/targets.md). The target's field `url` is the address of a group.
 */
#ifndef ALERTSCALER_CLOUD_HTTP_GROUP_H
#define ALERTSCALER_CLOUD_HTTP_GROUP_H

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/port/target.h>
#include <alertscaler/rules/settings.h>

/* Borrows both arguments. End it with the port's close, but not from a callback. */
struct as_target_port *as_http_group_new(const struct as_provider_settings *settings,
                                         const struct as_access_env *env) AS_MUST_USE;

#endif
