/*
 * The text of an errno value: strerror's, or a better one.
 */
#ifndef ALERTSCALER_BASE_ERRNO_TEXT_H
#define ALERTSCALER_BASE_ERRNO_TEXT_H

const char *as_errno_get_text(int code); /* positive or negative */

#endif
