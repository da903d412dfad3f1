/*
 * The table of targets: filtered by the parameters `q` (part of a name or id) and `state`, sorted
 * by `sort` and `order`, in pages of 100.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_TARGET_ROWS_H
#define ALERTSCALER_SRC_UI_PAGE_TARGET_ROWS_H

struct api_request;
struct as_buf;
struct as_target_view;

/* The form and the table; the engine must be there. */
void target_rows_print(struct api_request *request);

/* For a target's own page too: "6", "6 -> 8, 5 there"; why it is held, as small signs. */
void target_print_size(struct as_buf *out, const struct as_target_view *target);
void target_print_bounds(struct as_buf *out,
                         const struct as_target_view *target); /* has an entry */
void target_print_signs(const struct api_request *request, const struct as_target_view *target);

#endif
