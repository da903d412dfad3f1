/*
 * Who else aims at targets, as last found. In memory alone: it is found again after a start.
 */
#ifndef ALERTSCALER_KUBE_KUBE_RIVALS_H
#define ALERTSCALER_KUBE_KUBE_RIVALS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/record.h>

/* Beyond, the one that changed least recently is forgotten: of a template there may be ever new
 * targets. If it is still there, it is found again. */
#define OTHERS_TARGETS_MAX 10000

struct as_others *as_others_new(void) AS_MUST_USE;
struct as_others *as_others_free(struct as_others *others);

/* Copies what was found. True: it is not what was known. */
bool as_others_take(struct as_others *others, const char *target, const struct as_other *found,
                    size_t count) AS_MUST_USE;
/* NULL and 0: nobody. Valid until the next take. */
const struct as_other *as_others_find(const struct as_others *others, const char *target,
                                      size_t *count_out);

#endif
