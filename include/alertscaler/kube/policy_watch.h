/*
 * The scaling policies (rules/policy.h) of a cluster, by watches: with the labels, the namespaces
 * and the labels of namespaces that `objects` of the configuration selects.
 *
 * Namespaces that are all named without a wildcard have a watch each, for which the rights of Roles
 * in these namespaces are enough. Otherwise one watch has the policies of all namespaces.
 * `namespace_selector` needs a watch of namespaces. No policy is kept in memory.
 *
 * A list that fails (403, 404: no such resource) is never an empty list: the former objects stay,
 * and it is tried again.
 */
#ifndef ALERTSCALER_KUBE_POLICY_WATCH_H
#define ALERTSCALER_KUBE_POLICY_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/rules/settings.h>

/* Namespaces that `namespace_selector` may select; more: a failure, and no change of those known.
 */
#define AS_POLICY_NAMESPACES_MAX 50000

struct as_policy_watch_listener {
    /* The objects of a whole list follow: those of a namespace, or of all namespaces (NULL). What
     * is not put before `list_end` does not exist. A list that fails begins anew, with another
     * list_begin. Lists of different namespaces may overlap, and objects of other namespaces come
     * in between. A list of all namespaces never overlaps with another. A namespace that is no
     * longer selected has an empty list. */
    void (*list_begin)(void *context, const char *namespace);
    /* The object's JSON: new, changed, or as it was. */
    void (*put)(void *context, const char *text, size_t size);
    void (*removed)(void *context, const char *namespace, const char *name);
    void (*list_end)(void *context, const char *namespace);
    /* "list /apis/...: HTTP 403: ...". A retry is planned. May come often. */
    void (*failed)(void *context, const char *message);
};

struct as_policy_watch;

/* `client` and `listener` outlive the watch; the settings are copied. The listener must not stop
 * the watch. Nothing is called in the turn of the start. */
struct as_policy_watch *as_policy_watch_start(struct as_kube_client *client,
                                              const struct as_object_settings *settings,
                                              uint64_t seed,
                                              const struct as_policy_watch_listener *listener,
                                              void *context) AS_MUST_USE;
struct as_policy_watch *as_policy_watch_stop(struct as_policy_watch *watch); /* NULL is allowed */

/* All lists that are needed have been told, and none has begun since. */
bool as_policy_watch_is_synced(const struct as_policy_watch *watch);

AS_DEFINE_CLEANUP(struct as_policy_watch *, as_policy_watch_stop)

#endif
