/*
 * The schema of the cluster's CustomResourceDefinition of scaling policies (rules/policy.h). An API
 * server drops keys that its definition lacks, and reports nothing to the program. So the number of
 * the schema, an annotation of the definition, is compared with the number of this program.
 *
 * An older definition is logged once, and is read again until a newer one replaces it. Without the
 * right to read the definition, one line of the log says so.
 */
#ifndef ALERTSCALER_KUBE_POLICY_DEFINITION_H
#define ALERTSCALER_KUBE_POLICY_DEFINITION_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>

struct as_policy_definition;

/* The definition was read. `is_older`: its schema is older than the program's, or has no number. */
typedef void as_policy_definition_read_fn(void *context, bool is_older);

/* Reads the definition in a later turn of the loop. `client` outlives the reader. */
struct as_policy_definition *as_policy_definition_start(struct as_kube_client *client,
                                                        as_policy_definition_read_fn *on_read,
                                                        void *context) AS_MUST_USE;
struct as_policy_definition *as_policy_definition_stop(struct as_policy_definition *definition);

/* Reads it again, at most once a second: it may have changed. */
void as_policy_definition_refresh(struct as_policy_definition *definition);

AS_DEFINE_CLEANUP(struct as_policy_definition *, as_policy_definition_stop)

#endif
