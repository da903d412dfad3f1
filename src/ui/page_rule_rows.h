/*
 * Rules as rows of a table: what they match, what they do, and what they did last.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_RULE_ROWS_H
#define ALERTSCALER_SRC_UI_PAGE_RULE_ROWS_H

struct api_request;
struct as_target_config;

/* The rules that lead to this target; nothing where there are none that may be seen. */
void rule_rows_print_of(struct api_request *request, const struct as_target_config *target);

#endif
