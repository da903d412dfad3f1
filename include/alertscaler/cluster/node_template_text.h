/*
 * The template of a node group as text, for the state: compact JSON, keys sorted, so that equal
 * templates are equal texts. Amounts as in struct as_resources: millicores, bytes, pieces; those of
 * extended resources under their names, where they are not 0.
 *
 *   {"allocatable":{"cpu":2000,...},"capacity":{...},"free":{...},"labels":{"zone":"a"},
 *    "taints":[{"effect":"NoSchedule","key":"gpu","value":""}]}
 */
#ifndef ALERTSCALER_CLUSTER_NODE_TEMPLATE_TEXT_H
#define ALERTSCALER_CLUSTER_NODE_TEMPLATE_TEXT_H

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/cluster/node_template.h>

/* `names` are those of the template's cluster. */
void as_node_template_encode(const struct as_node_template *template_,
                             const struct as_res_names *names, struct as_buf *out);

/*
 * 0, and a template of source LAST whose texts are memory of the arena; or -EBADMSG with an error.
 * Extended resources that `names` does not have are left out: no pod asks for them.
 */
int as_node_template_decode(const char *text, const struct as_res_names *names,
                            struct as_arena *arena, struct as_node_template *template_out,
                            struct as_error *error) AS_MUST_USE;

#endif
