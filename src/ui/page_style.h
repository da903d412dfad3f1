/*
 * The style sheet of all pages.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_STYLE_H
#define ALERTSCALER_SRC_UI_PAGE_STYLE_H

#include <alertscaler/base/buf.h>

/* Appends `<style>...</style>`. */
void style_print(struct as_buf *out);
/* Appends the header `Content-Security-Policy`: no scripts, no style but this one (by its digest),
 * nothing from elsewhere, forms to ourselves, no frame around it. */
void style_print_policy(struct as_buf *headers);

#endif
