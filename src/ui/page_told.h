/*
 * A kept decision, explained as `alertscaler explain` does.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_TOLD_H
#define ALERTSCALER_SRC_UI_PAGE_TOLD_H

#include <alertscaler/tools/explain.h>

#include "page.h"

/* The decision's record is there. Fills from what is kept; free it with told_deinit. False: the
 * record cannot be read. */
bool told_init(const struct api_request *request, const struct kept_decision *decision,
               struct as_explanation *told_out) AS_MUST_USE;
void told_deinit(struct as_explanation *told);

/* Prints the parts; `titles` ends with NULL: those of these titles; NULL: all. */
void told_print(const struct api_request *request, const struct as_explanation *told,
                const char *const *titles);

#endif
